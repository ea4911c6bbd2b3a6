// The order in which the tokens of a line are drawn. A line runs in the direction of its first
// letter. Its tokens are isolated from each other (by the style sheet) and follow in their order,
// except that neighbors which run the other way, such as the parts of a number in an Arabic line,
// keep their own direction.

import { groups, wholeCharacters } from "./characters.js";
import { h } from "./dom.js";

const RIGHT_TO_LEFT =
  /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const LETTER = /\p{L}/u;
const NUMBER = /\p{N}/u;
const decoder = new TextDecoder(); // invalid bytes have no direction

// What a token contains: the direction of its first letter, or else whether it has digits.
export function kindOf(bytes) {
  const text = decoder.decode(bytes);
  const letter = LETTER.exec(text);
  const kind = letter
    ? (RIGHT_TO_LEFT.test(letter[0]) ? "rtl" : "ltr")
    : NUMBER.test(text)
    ? "number"
    : "neutral";
  return { kind, hasSpace: /\s/.test(text) };
}

// The direction of a line of tokens.
export const directionOf = (kinds) =>
  kinds.find(({ kind }) => kind === "ltr" || kind === "rtl")?.kind ?? "ltr";

// The runs of tokens that go against a line's direction, as [first, end].
function runs(kinds, direction) {
  const against = ({ kind }) =>
    direction === "ltr" ? kind === "rtl" : kind === "ltr" || kind === "number";
  const found = [];
  for (let first = 0; first < kinds.length; first++) {
    if (!against(kinds[first])) continue;
    let last = first;
    let hasSpace = false; // since the last token of the run
    for (let next = first + 1; next < kinds.length; next++) {
      hasSpace ||= kinds[next].hasSpace;
      if (against(kinds[next])) {
        // Two numbers are two runs, as in running text.
        const isNumber = kinds[last].kind === "number" || kinds[next].kind === "number";
        if (isNumber && hasSpace) break;
        last = next;
        hasSpace = false;
      } else if (kinds[next].kind !== "neutral") break;
    }
    if (last > first) found.push([first, last + 1]);
    first = last;
  }
  return found;
}

// The nodes of a line, one (or a list) for each token, with each run in its own element.
export function arranged(nodes, kinds, direction) {
  const other = direction === "ltr" ? "rtl" : "ltr";
  const result = [];
  let at = 0;
  for (const [first, end] of runs(kinds, direction)) {
    result.push(nodes.slice(at, first));
    result.push(h("span", { class: "run", dir: other }, nodes.slice(first, end)));
    at = end;
  }
  result.push(nodes.slice(at));
  return result.flat(2); // spread as arguments, very many would not fit the stack
}

// A line of tokens, as {direction, nodes}. Token n ends at `ends[n]` of the bytes, and the first
// starts at `start`; `make(n, bytes, start, end)` returns its node (or a list).
export function tokenLine(bytes, start, ends, make) {
  const nodes = [];
  const kinds = [];
  for (const [first, end] of groups(bytes, start, ends)) {
    const from = first ? ends[first - 1] : start;
    kinds.push(kindOf(wholeCharacters(bytes, from, ends[end - 1])));
    const tokens = [];
    for (let n = first; n < end; n++) {
      tokens.push(make(n, bytes, n ? ends[n - 1] : start, ends[n]));
    }
    // The first may come with a place for a line break, which belongs before the group.
    const [before, ...rest] = tokens.flat();
    if (end - first === 1) nodes.push(tokens[0]);
    else if (before.localName === "wbr") nodes.push([before, h("span", { class: "whole" }, rest)]);
    else nodes.push(h("span", { class: "whole" }, before, rest));
  }
  const direction = directionOf(kinds);
  return { direction, nodes: arranged(nodes, kinds, direction) };
}
