// A merge tree as a drawing: zoom with the wheel or + and -, pan by dragging or arrows, 0 fits.

import { put, s } from "./dom.js";
import { tint, visible } from "./glyphs.js";

const ROW = 62;
const GAP = 14;
const CHARACTER = 9;
const MARGIN = 12;
const BOX = 28;

// `tree` has nodes [id, left, right, rank] with children before parents, and roots.
export function drawTree(box, tree, tokens, title) {
  const { nodes, roots } = tree;
  const shown = nodes.map(([id]) => shorten(visible(tokens.get(id) ?? new Uint8Array())));
  const { x, y, width, height } = lay(nodes, roots, shown);
  const svg = s(
    "svg",
    { role: "img", "aria-label": title, tabindex: 0, class: "tree" },
    s("title", {}, title),
  );
  const lines = s("g", { class: "lines" });
  const labels = s("g", {});
  nodes.forEach(([id, left, right, rank], place) => {
    for (const child of [left, right]) {
      if (child === null) continue;
      const middle = (y[place] + y[child]) / 2;
      lines.append(
        s("path", {
          d: `M${x[place]} ${y[place] + BOX / 2}C${x[place]} ${middle} ${x[child]} ${middle} ${
            x[child]
          } ${y[child] - BOX / 2}`,
        }),
      );
    }
    const half = boxWidth(shown[place]) / 2;
    labels.append(
      s(
        "g",
        {
          transform: `translate(${x[place]} ${y[place]})`,
          class: `node ${tint(id)}${left === null ? " leaf" : ""}`,
        },
        s("title", {}, `id ${id}${rank === null ? "" : `, rank ${rank}`}`),
        s("rect", { x: -half, y: -BOX / 2, width: 2 * half, height: BOX, rx: 5 }),
        s("text", { y: 5 }, shown[place]),
        rank === null ? null : s("text", { y: -BOX / 2 - 5, class: "rank" }, rank),
      ),
    );
  });
  svg.append(lines, labels);
  put(box, svg);
  new Camera(svg, box, width, height);
}

const shorten = (text) => (text.length > 24 ? `${text.slice(0, 23)}…` : text);
const boxWidth = (text) => Math.max(30, [...text].length * CHARACTER + 16);

// Leaves side by side in the order of their bytes, parents over the middle of their children.
function lay(nodes, roots, shown) {
  const x = new Array(nodes.length).fill(0);
  const depth = new Array(nodes.length).fill(0);
  for (let place = nodes.length - 1; place >= 0; place--) {
    for (const child of [nodes[place][1], nodes[place][2]]) {
      if (child !== null) depth[child] = depth[place] + 1;
    }
  }
  let at = MARGIN;
  for (const root of roots) {
    const stack = [[root, false]];
    while (stack.length) {
      const [place, done] = stack.pop();
      const [, left, right] = nodes[place];
      if (left === null) {
        x[place] = at + boxWidth(shown[place]) / 2;
        at += boxWidth(shown[place]) + GAP;
      } else if (done) x[place] = (x[left] + x[right]) / 2;
      else stack.push([place, true], [right, false], [left, false]);
    }
    at += GAP;
  }
  // A parent may be wider than its children: what stands out on the left moves all to the right.
  const left = Math.min(...nodes.map((_, place) => x[place] - boxWidth(shown[place]) / 2));
  const shift = Math.max(0, MARGIN - left);
  const right = Math.max(...nodes.map((_, place) => x[place] + boxWidth(shown[place]) / 2));
  return {
    x: x.map((value) => value + shift),
    y: depth.map((value) => MARGIN + BOX + value * ROW),
    width: right + shift + MARGIN,
    height: MARGIN + 2 * BOX + Math.max(...depth) * ROW,
  };
}

class Camera {
  constructor(svg, box, width, height) {
    Object.assign(this, { svg, box, width, height });
    this.fit();
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.altKey && document.activeElement !== svg) return; // the page scrolls
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

  // The whole tree, but never larger than life.
  fit() {
    const scale = Math.max(
      this.width / Math.max(1, this.box.clientWidth),
      this.height / Math.max(1, this.box.clientHeight),
      1,
    );
    const wide = this.box.clientWidth * scale, high = this.box.clientHeight * scale;
    this.view = [(this.width - wide) / 2, Math.min(0, (this.height - high) / 2), wide, high];
    this.apply();
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
