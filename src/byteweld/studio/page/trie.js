// Draws a trie as SVG, from left to right, and marks a path in it.

import { amount, s } from "./dom.js";
import { hexByte, tint, visible } from "./glyphs.js";
import { Drawing } from "./tree.js";

const COLUMN = 62;
const ROW = 34;
const BOX = 26;
const MARGIN = 14;
const CHARACTER = 9;

// `nodes` are [parent, byte, token], parents first; `hidden` nodes are not drawn.
export function drawTrie(box, nodes, hidden) {
  const { x, y, width, height } = layOut(nodes);
  const lines = nodes.map(([parent], n) => {
    if (!n) return null;
    const from = `M${x[parent] + BOX / 2} ${y[parent]}`;
    const to = `${x[n] - BOX / 2} ${y[n]}`;
    return s("path", { d: `${from}C${x[n] - 18} ${y[parent]} ${x[n] - 22} ${y[n]} ${to}` });
  });
  const boxes = nodes.map(([, byte, token], n) => {
    const text = n ? visible(Uint8Array.of(byte)) : "";
    const wide = Math.max(BOX, [...text].length * CHARACTER + 8);
    return s(
      "g",
      {
        transform: `translate(${x[n]} ${y[n]})`,
        class: `node ${token === null ? "inner" : tint(token)}`,
      },
      s(
        "title",
        {},
        n ? `byte ${hexByte(byte)}${token === null ? "" : `, token ${token}`}` : "root",
      ),
      n
        ? s("rect", { x: -wide / 2, y: -BOX / 2, width: wide, height: BOX, rx: 13 })
        : s("circle", { r: 7 }),
      n ? s("text", { y: 5 }, text) : null,
    );
  });
  const title = `Trie with ${amount(nodes.length, "node")}${
    hidden ? `; ${amount(hidden, "more node")} not drawn` : ""
  }`;
  const svg = s(
    "svg",
    { role: "img", "aria-label": title, class: "tree trie" },
    s("title", {}, title),
    s("g", {}, lines),
    s("g", {}, boxes),
  );
  const drawing = new Drawing(svg, box, width, height);
  return {
    // Mark the path to a node, and the token that is taken, if any.
    mark(node, token) {
      const path = new Set();
      for (let n = node; n !== null; n = nodes[n][0]) path.add(n);
      boxes.forEach((each, n) => {
        each.classList.toggle("on", path.has(n));
        each.classList.toggle("here", n === node);
        each.classList.toggle("taken", token !== null && path.has(n) && nodes[n][2] === token);
        lines[n]?.classList.toggle("on", path.has(n));
      });
      drawing.reveal(x[node], y[node]);
    },
  };
}

// A column per depth; leaves in rows, parents between their first and last child.
function layOut(nodes) {
  const children = nodes.map(() => []);
  const depth = nodes.map(() => 0);
  nodes.forEach(([parent], n) => {
    if (parent === null) return;
    children[parent].push(n);
    depth[n] = depth[parent] + 1;
  });
  const y = new Array(nodes.length).fill(0);
  let row = 0;
  const stack = [[0, false]];
  while (stack.length) {
    const [n, done] = stack.pop();
    if (!children[n].length) y[n] = MARGIN + BOX / 2 + ROW * row++;
    else if (done) y[n] = (y[children[n][0]] + y[children[n].at(-1)]) / 2;
    else stack.push([n, true], ...children[n].toReversed().map((child) => [child, false]));
  }
  return {
    x: depth.map((value) => MARGIN + BOX / 2 + value * COLUMN),
    y,
    width: 2 * MARGIN + BOX + Math.max(...depth) * COLUMN,
    height: 2 * MARGIN + BOX + Math.max(0, row - 1) * ROW,
  };
}
