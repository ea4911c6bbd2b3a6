// The script of a token's first letter, or the kind of its characters, from Python's table.

import { decode, fromHex } from "./glyphs.js";

export class Kinds {
  // `lengths` are those of runs of characters of the same kind; `which` are indices of `names`.
  constructor({ names, lengths, which, weak }) {
    Object.assign(this, { names, which, weak });
    let end = 0;
    this.ends = lengths.map((length) => (end += length));
  }

  ofCharacter(code) {
    let low = 0, high = this.ends.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle] > code) high = middle;
      else low = middle + 1;
    }
    return this.names[this.which[low]];
  }

  // As `script_of` in evaluation/__init__.py.
  ofToken(hex) {
    const text = decode(fromHex(hex));
    if (text === null) return "part of a character";
    const found = Array.from(text, (character) => this.ofCharacter(character.codePointAt(0)));
    const strong = found.find((kind) => !this.weak.includes(kind));
    return strong ?? this.weak.find((kind) => found.includes(kind)) ?? "space";
  }
}
