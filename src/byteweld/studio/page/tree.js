// Draws a merge tree as SVG, in a box that scrolls. Dragging and arrow keys scroll; + and - zoom.

import { put, s } from "./dom.js";
import { tint, visible } from "./glyphs.js";

const ROW = 62;
const GAP = 14;
const CHARACTER = 9;
const MARGIN = 12;
const BOX = 28;
const KEY_PIXELS = 60; // that an arrow key scrolls
const MAX_SCALE = 3;
const NEAR = 40; // pixels

// `tree` has roots, and nodes [id, left, right, rank] with children before parents.
export function drawTree(box, tree, tokens, title) {
  const { nodes, roots } = tree;
  const shown = nodes.map(([id]) => shorten(visible(tokens.get(id) ?? new Uint8Array())));
  const { x, y, width, height } = layOut(nodes, roots, shown);
  const svg = s(
    "svg",
    { role: "img", "aria-label": title, class: "tree" },
    s("title", {}, title),
  );
  const lines = s("g", { class: "lines" });
  const labels = s("g", {});
  nodes.forEach(([id, left, right, rank], index) => {
    for (const child of [left, right]) {
      if (child === null) continue;
      const middle = (y[index] + y[child]) / 2;
      lines.append(
        s("path", {
          d: `M${x[index]} ${y[index] + BOX / 2}C${x[index]} ${middle} ${x[child]} ${middle} ${
            x[child]
          } ${y[child] - BOX / 2}`,
        }),
      );
    }
    const half = boxWidth(shown[index]) / 2;
    labels.append(
      s(
        "g",
        {
          transform: `translate(${x[index]} ${y[index]})`,
          class: `node ${tint(id)}${left === null ? " leaf" : ""}`,
        },
        s("title", {}, `id ${id}${rank === null ? "" : `, rank ${rank}`}`),
        s("rect", { x: -half, y: -BOX / 2, width: 2 * half, height: BOX, rx: 5 }),
        s("text", { y: 5 }, shown[index]),
        rank === null ? null : s("text", { y: -BOX / 2 - 5, class: "rank" }, rank),
      ),
    );
  });
  svg.append(lines, labels);
  const drawing = new Drawing(svg, box, width, height);
  // Start at the first root, which is above the middle of its leaves.
  if (roots.length) box.scrollTo(Math.max(0, x[roots[0]] - box.clientWidth / 2), 0);
  return drawing;
}

const shorten = (text) => (text.length > 24 ? `${text.slice(0, 23)}…` : text);
export const leafWidth = (bytes) => boxWidth(shorten(visible(bytes))) + GAP;
const boxWidth = (text) => Math.max(30, [...text].length * CHARACTER + 16);

// Leaves in the order of their bytes, parents centered above their children.
function layOut(nodes, roots, shown) {
  const x = new Array(nodes.length).fill(0);
  const depth = new Array(nodes.length).fill(0);
  for (let index = nodes.length - 1; index >= 0; index--) {
    for (const child of [nodes[index][1], nodes[index][2]]) {
      if (child !== null) depth[child] = depth[index] + 1;
    }
  }
  let at = MARGIN;
  for (const root of roots) {
    const stack = [[root, false]];
    while (stack.length) {
      const [index, done] = stack.pop();
      const [, left, right] = nodes[index];
      if (left === null) {
        x[index] = at + boxWidth(shown[index]) / 2;
        at += boxWidth(shown[index]) + GAP;
      } else if (done) x[index] = (x[left] + x[right]) / 2;
      else stack.push([index, true], [right, false], [left, false]);
    }
    at += GAP;
  }
  // A parent may be wider than its children: shift everything right by its overhang on the left.
  const left = Math.min(...nodes.map((_, index) => x[index] - boxWidth(shown[index]) / 2));
  const shift = Math.max(0, MARGIN - left);
  const right = Math.max(...nodes.map((_, index) => x[index] + boxWidth(shown[index]) / 2));
  return {
    x: x.map((value) => value + shift),
    y: depth.map((value) => MARGIN + BOX + value * ROW),
    width: right + shift + MARGIN,
    height: MARGIN + 2 * BOX + Math.max(...depth) * ROW,
  };
}

// A drawing in a box that scrolls. It never shrinks, so that its text stays readable.
export class Drawing {
  constructor(svg, box, width, height) {
    Object.assign(this, { svg, box, width, height, scale: 1 });
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "Drawing; arrow keys scroll it");
    box.onpointerdown = (event) => {
      if (event.pointerType !== "mouse") return; // a finger scrolls anyway
      this.from = [event.clientX, event.clientY];
    };
    box.onpointermove = (event) => {
      if (!this.from) return;
      if (!event.buttons) {
        this.from = null;
        return;
      }
      box.scrollBy(this.from[0] - event.clientX, this.from[1] - event.clientY);
      this.from = [event.clientX, event.clientY];
    };
    box.onkeydown = (event) => this.key(event);
    put(box, svg);
    this.zoom(1);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = this.box.clientWidth * 0.8;
    const act = {
      "+": () => this.zoom(this.scale * 1.25),
      "=": () => this.zoom(this.scale * 1.25),
      "-": () => this.zoom(this.scale / 1.25),
      "0": () => this.zoom(1),
      ArrowLeft: () => this.box.scrollBy(-KEY_PIXELS, 0),
      ArrowRight: () => this.box.scrollBy(KEY_PIXELS, 0),
      ArrowUp: () => this.box.scrollBy(0, -KEY_PIXELS),
      ArrowDown: () => this.box.scrollBy(0, KEY_PIXELS),
      PageUp: () => this.box.scrollBy(-page, 0),
      PageDown: () => this.box.scrollBy(page, 0),
      Home: () => this.box.scrollTo(0, 0),
      End: () => this.box.scrollTo(this.box.scrollWidth, this.box.scrollTop),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  // Change the scale, and keep the center where it is.
  zoom(scale) {
    const { box, svg } = this;
    const x = (box.scrollLeft + box.clientWidth / 2) / this.scale;
    const y = (box.scrollTop + box.clientHeight / 2) / this.scale;
    this.scale = Math.max(1, Math.min(MAX_SCALE, scale));
    svg.setAttribute("width", this.width * this.scale);
    svg.setAttribute("height", this.height * this.scale);
    box.scrollTo(x * this.scale - box.clientWidth / 2, y * this.scale - box.clientHeight / 2);
  }

  // Scroll if a point is near an edge or outside.
  reveal(x, y) {
    const { box, scale } = this;
    const outside = (at, from, size) =>
      Math.max(0, at + NEAR - from - size) + Math.min(0, at - NEAR - from);
    box.scrollBy(
      outside(x * scale, box.scrollLeft, box.clientWidth),
      outside(y * scale, box.scrollTop, box.clientHeight),
    );
  }
}
