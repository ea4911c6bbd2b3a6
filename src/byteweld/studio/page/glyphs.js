// Tokens as visible text: no character is invisible or acts on the page. The rules are those of
// render.py; a test checks that both agree.

import { h } from "./dom.js";

const MARKS = { " ": "·", "\n": "⏎", "\t": "⇥" };
const TAKEN = new Set("·⏎⇥⟨⟩⟦⟧◌");
const HIDDEN = /^[\p{C}\p{Z}]$/u;
const COMBINING = /^\p{M}/u;
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const TINTS = 10;
const SHORT = 24; // bytes

export const utf8 = new TextEncoder();

export function fromHex(hex) {
  const bytes = new Uint8Array(hex.length / 2);
  for (let n = 0; n < bytes.length; n++) bytes[n] = parseInt(hex.slice(2 * n, 2 * n + 2), 16);
  return bytes;
}

export const hexByte = (byte) => byte.toString(16).padStart(2, "0");
export const hexBytes = (bytes) => Array.from(bytes, hexByte).join(" ");

export function decode(bytes) {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}

// The length of the character that starts at an offset; 0 if none does.
export function characterLength(bytes, at) {
  const first = bytes[at];
  if (first < 0x80) return 1;
  const length = first < 0xc2
    ? 0
    : first < 0xe0
    ? 2
    : first < 0xf0
    ? 3
    : first < 0xf5
    ? 4
    : 0;
  return length && at + length <= bytes.length && decode(bytes.subarray(at, at + length)) !== null
    ? length
    : 0;
}

// Bytes as a list of [shown, kind]; the kind is "" (plain text), "mark", "byte" or "code".
export function pieces(bytes) {
  const whole = decode(bytes);
  const found = [];
  const push = (shown, kind) => {
    const last = found[found.length - 1];
    if (last && last[1] === kind && kind === "") last[0] += shown;
    else found.push([shown, kind]);
  };
  const character = (c) => {
    if (c in MARKS) push(MARKS[c], "mark");
    else if (TAKEN.has(c) || HIDDEN.test(c)) {
      push(`⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`, "code");
    } else push(c, "");
  };
  if (whole !== null) { for (const c of whole) character(c); }
  else {
    for (let at = 0; at < bytes.length;) {
      const length = characterLength(bytes, at);
      if (length) character(decode(bytes.subarray(at, at + length)));
      else push(`⟨${hexByte(bytes[at])}⟩`, "byte");
      at += length || 1;
    }
  }
  if (found.length && COMBINING.test(found[0][0])) found[0][0] = `◌${found[0][0]}`;
  return found;
}

export const visible = (bytes) => pieces(bytes).map(([shown]) => shown).join("");

// A file name without characters that are invisible or act on the page; spaces are spaces.
export const fileName = (name) =>
  pieces(utf8.encode(name)).map(([shown]) => (shown === "·" ? " " : shown)).join("");

export const tint = (id) => `c${(id * 7 + 3) % TINTS}`;

// Bytes as nodes. With `breaks`, real newlines and tabs follow their marks.
export function glyphs(bytes, breaks = false) {
  const nodes = [];
  for (const [shown, kind] of pieces(bytes)) {
    nodes.push(kind ? h("i", { class: kind }, shown) : document.createTextNode(shown));
    if (breaks && shown === "⏎") nodes.push(document.createTextNode("\n"));
    if (breaks && shown === "⇥") nodes.push(document.createTextNode("\t"));
  }
  return nodes;
}

// The text of a token as nodes; only the start of a long one.
export function shortGlyphs(bytes) {
  return bytes.length > SHORT ? [...glyphs(bytes.slice(0, SHORT)), "…"] : glyphs(bytes);
}

// A token by itself, in a list or a sentence.
export const tile = (id, bytes, properties) => tileOf(id, glyphs(bytes), properties);
export const shortTile = (id, bytes, properties) => tileOf(id, shortGlyphs(bytes), properties);

function tileOf(id, nodes, properties = {}) {
  const kind = properties.class ? ` ${properties.class}` : "";
  return h(properties.onclick ? "button" : "span", {
    ...properties,
    ...(properties.onclick ? { type: "button" } : {}),
    class: `tile ${tint(id)}${kind}`,
  }, nodes);
}

// A token inside a sentence.
export const tokenLabel = (id, bytes) => tile(id, bytes, { title: `id ${id}` });

// A token as a button, labeled for screen readers.
export const tokenButton = (id, bytes, onclick) =>
  tile(id, bytes, { title: `id ${id}`, "aria-label": `token ${spoken(bytes)}, id ${id}`, onclick });

// The bytes of tokens by id, from an answer's hex by id.
export const tokenMap = (tokens) =>
  new Map(
    Object.entries(tokens).map(([id, token]) => [Number(id), fromHex(token.bytes ?? token)]),
  );

// What a screen reader says: spaces and newlines as words.
export function spoken(bytes) {
  const words = { "·": " space ", "⏎": " newline ", "⇥": " tab " };
  return pieces(bytes).map(([shown, kind]) => (kind === "mark" ? words[shown] : shown)).join("")
    .trim();
}
