// Draws a merge tree as SVG. The wheel, + and - zoom; dragging and arrow keys pan; 0 fits the tree.

import { put, s } from "./dom.js";
import { tint, visible } from "./glyphs.js";

const ROW = 62;
const GAP = 14;
const CHARACTER = 9;
const MARGIN = 12;
const BOX = 28;

// `tree` has roots, and nodes [id, left, right, rank] with children before parents. `most` limits
// how much a large tree shrinks to fit. Returns its camera.
export function drawTree(box, tree, tokens, title, most = Infinity) {
  const { nodes, roots } = tree;
  const shown = nodes.map(([id]) => shorten(visible(tokens.get(id) ?? new Uint8Array())));
  const { x, y, width, height } = layOut(nodes, roots, shown);
  const svg = s(
    "svg",
    { role: "img", "aria-label": title, tabindex: 0, class: "tree" },
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
  put(box, svg);
  return new Camera(svg, box, width, height, most);
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

export class Camera {
  // `most` limits how much a large drawing shrinks to fit; the rest is panned.
  constructor(svg, box, width, height, most = Infinity) {
    Object.assign(this, { svg, box, width, height, most });
    this.fit();
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.altKey && document.activeElement !== svg) return; // scroll the page
      event.preventDefault();
      this.zoom(
        event.deltaY < 0 ? 1.15 : 1 / 1.15,
        event.offsetX / svg.clientWidth,
        event.offsetY / svg.clientHeight,
      );
    }, { passive: false });
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      this.from = [event.clientX, event.clientY];
    });
    svg.addEventListener("pointermove", (event) => {
      if (!this.from) return;
      const scale = this.view[2] / svg.clientWidth;
      this.move((this.from[0] - event.clientX) * scale, (this.from[1] - event.clientY) * scale);
      this.from = [event.clientX, event.clientY];
    });
    for (const end of ["pointerup", "pointercancel"]) {
      svg.addEventListener(end, () => {
        this.from = null;
      });
    }
    svg.addEventListener("dblclick", () => this.fit());
    svg.addEventListener("keydown", (event) => {
      const step = this.view[2] / 10;
      const known = {
        "+": () => this.zoom(1.2),
        "=": () => this.zoom(1.2),
        "-": () => this.zoom(1 / 1.2),
        "0": () => this.fit(),
        ArrowLeft: () => this.move(-step, 0),
        ArrowRight: () => this.move(step, 0),
        ArrowUp: () => this.move(0, -step),
        ArrowDown: () => this.move(0, step),
      }[event.key];
      if (!known) return;
      event.preventDefault();
      event.stopPropagation();
      known();
    });
  }

  // Fit the whole tree, but never enlarge it.
  fit() {
    const needed = Math.max(
      this.width / Math.max(1, this.box.clientWidth),
      this.height / Math.max(1, this.box.clientHeight),
      1,
    );
    const scale = Math.min(needed, this.most);
    const wide = this.box.clientWidth * scale, high = this.box.clientHeight * scale;
    const left = Math.min((this.width - wide) / 2, needed > scale ? 0 : Infinity);
    this.view = [left, Math.min(0, (this.height - high) / 2), wide, high];
    this.apply();
  }

  // Pan if a point is near an edge or outside.
  reveal(x, y) {
    const [left, top, wide, high] = this.view;
    const near = 40;
    const right = Math.max(0, x + near - left - wide) + Math.min(0, x - near - left);
    const down = Math.max(0, y + near - top - high) + Math.min(0, y - near - top);
    this.move(wide < this.width ? right : 0, high < this.height ? down : 0);
  }

  zoom(factor, atX = 0.5, atY = 0.5) {
    const [x, y, wide, high] = this.view;
    const bounded = Math.min(Math.max(wide / factor, 60), 20000) / wide;
    this.view = [
      x + wide * atX * (1 - bounded),
      y + high * atY * (1 - bounded),
      wide * bounded,
      high * bounded,
    ];
    this.apply();
  }

  move(right, down) {
    this.view[0] += right;
    this.view[1] += down;
    this.apply();
  }

  apply() {
    this.svg.setAttribute("viewBox", this.view.map((value) => value.toFixed(1)).join(" "));
  }
}
