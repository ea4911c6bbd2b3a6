// Tokens in a row, as in a list of steps: in the direction of their text, characters in one piece.

import { glyphsIn, sharing, spokenIn } from "./characters.js";
import { tokenLine } from "./direction.js";
import { h, put } from "./dom.js";
import { tint } from "./glyphs.js";

// Fill a container with a row of tokens. `make(n, bytes, start, end)` returns the node of token n,
// which is bytes `start` to `end` of the row.
export function fillRow(container, tokens, make) {
  const ends = [];
  let size = 0;
  for (const token of tokens) ends.push(size += token.length);
  const bytes = new Uint8Array(size);
  tokens.forEach((token, n) => bytes.set(token, ends[n] - token.length));
  const { direction, nodes } = tokenLine(bytes, 0, ends, make);
  container.dir = direction;
  return put(container, nodes);
}

// The classes of parts that a merge joins: a pair is marked once, from left to right.
export function pairMarks(ids, merge) {
  const marks = ids.map(() => "");
  for (let n = 0; merge && n + 1 < ids.length; n++) {
    if (ids[n] !== merge.left || ids[n + 1] !== merge.right) continue;
    marks[n++] = " next first";
    marks[n] = " next";
  }
  return marks;
}

// A row of tiles; `onclick(id)` makes them buttons.
export function tileRow(ids, tokens, onclick) {
  const make = (n, ...range) =>
    h(onclick ? "button" : "span", {
      ...(onclick
        ? {
          type: "button",
          "aria-label": `token ${spokenIn(...range)}, id ${ids[n]}`,
          onclick: () => onclick(ids[n]),
        }
        : {}),
      class: `tile ${tint(ids[n])}${sharing(...range)}`,
      title: `id ${ids[n]}`,
    }, glyphsIn(...range));
  const empty = new Uint8Array();
  return fillRow(h("span", { class: "row" }), ids.map((id) => tokens.get(id) ?? empty), make);
}
