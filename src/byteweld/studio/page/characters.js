// Tokens in their text. A character that several tokens share is drawn across all of them, each
// token showing its slice of the character with its own bytes below.

import { h } from "./dom.js";
import { characterLength, glyphs, hexBytes, pieces, spoken } from "./glyphs.js";

const MAX_GROUP = 8; // bytes; two of the longest characters, and as wide as a phone with ids

const isContinuation = (byte) => (byte & 0xc0) === 0x80;

// The character that contains the byte at an offset, as [start, end]; null if the byte is invalid.
function characterAt(bytes, at) {
  let start = at;
  while (start > 0 && start > at - 3 && isContinuation(bytes[start])) start--;
  const end = start + characterLength(bytes, start);
  return end > at ? [start, end] : null;
}

// The bytes from `start` to `end` in order, as {from, to, character}. `character` is the extent of
// the character that a part shares with other tokens, and null for the rest.
function parts(bytes, start, end) {
  const found = [];
  let from = start, to = end;
  if (start >= end) return found;
  const first = isContinuation(bytes[start]) ? characterAt(bytes, start) : null;
  if (first) {
    from = Math.min(end, first[1]);
    found.push({ from: start, to: from, character: first });
  }
  const last = from < end ? characterAt(bytes, end - 1) : null;
  const isShared = last !== null && last[1] > end;
  if (isShared) to = last[0];
  if (from < to) found.push({ from, to, character: null });
  if (isShared) found.push({ from: to, to: end, character: last });
  return found;
}

// Whether a token starts inside a character, so that it is drawn next to the token before it.
export const joins = (bytes, start) =>
  start > 0 && isContinuation(bytes[start]) && characterAt(bytes, start) !== null;

// Tokens in groups that stay on one line, as [first, end]: a token that starts inside a character
// is in the group of the token before it, unless the group gets too long. Token n ends at
// `ends[n]`, and the first of them starts at `start`.
export function groups(bytes, start, ends) {
  const found = [];
  let from = start; // of the last group
  for (let n = 0; n < ends.length; n++) {
    const at = n ? ends[n - 1] : start;
    if (n && ends[n] - from <= MAX_GROUP && joins(bytes, at)) found[found.length - 1][1] = n + 1;
    else {
      found.push([n, n + 1]);
      from = at;
    }
  }
  return found;
}

// The bytes of a token and the rest of the characters that it shares.
export function wholeCharacters(bytes, start, end) {
  const found = parts(bytes, start, end);
  return bytes.subarray(
    found[0]?.character?.[0] ?? start,
    found[found.length - 1]?.character?.[1] ?? end,
  );
}

// The classes of a token's element: whether it shares a character, and with the token before it.
export function sharing(bytes, start, end) {
  if (!parts(bytes, start, end).some(({ character }) => character)) return "";
  return joins(bytes, start) ? " split joins" : " split";
}

// The text of a token as nodes. With `breaks`, real newlines and tabs follow their marks.
export function glyphsIn(bytes, start, end, breaks = false) {
  return parts(bytes, start, end).flatMap(({ from, to, character }) =>
    character
      ? [slice(bytes, from, to, character)]
      : glyphs(bytes.subarray(from, to), breaks)
  );
}

function slice(bytes, from, to, [start, end]) {
  const [[shown, kind]] = pieces(bytes.subarray(start, end));
  return h("span", {
    class: `slice of${end - start} at${from - start} n${to - from}${
      kind === "code" ? " long" : ""
    }`,
    "data-character": shown, // drawn by the style sheet: each slice shows its part of it
  }, h("i", { class: "byte" }, hexBytes(bytes.subarray(from, to))));
}

// What a screen reader says.
export function spokenIn(bytes, start, end) {
  return parts(bytes, start, end).map(({ from, to, character }) => {
    if (!character) return spoken(bytes.subarray(from, to));
    const words = to - from === 1 ? "byte" : "bytes";
    const [[shown]] = pieces(bytes.subarray(...character));
    return `${words} ${hexBytes(bytes.subarray(from, to))} of ${shown}`;
  }).join(", ");
}
