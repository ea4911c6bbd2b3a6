// Bytes: which byte values text uses, what ASCII-only would save, and GPT-2's letters.

import { ask, saved } from "./api.js";
import { amount, fact, h, number, percent, put, segmented } from "./dom.js";
import { fileName, hexByte } from "./glyphs.js";

const NAMES = { 0: "NUL", 9: "TAB", 10: "LF", 13: "CR", 27: "ESC", 32: "space", 127: "DEL" };
const CHUNK = 1 << 22; // of a file, in bytes
const STEP = 8; // ratio of counts from one heat level to the next
const HEATS = ["unused", "cold", "warm", "hot", "very hot"];
const ROWS = [
  "control characters, tab, newlines",
  "control characters",
  "space and symbols",
  "digits and symbols",
  "@ and uppercase letters",
  "uppercase letters and symbols",
  "` and lowercase letters",
  "lowercase letters and symbols, DEL",
  ...Array(4).fill("continuation byte of a UTF-8 character"),
  ...Array(3).fill("first byte of a UTF-8 character"),
  "first of four bytes, or never in UTF-8",
];

export const view = { title: "Bytes", open: (root, app) => new Bytes(root, app) };

class Bytes {
  constructor(root, app) {
    this.app = app;
    this.mode = app.state.cells ?? "characters";
    this.picked = app.state.byte ? parseInt(app.state.byte, 16) : null;
    const sentences = Object.values(app.start.sentences).join("\n");
    this.fallback = sentences; // if the user entered no text: many languages use many byte values
    const sources = [
      ["Your text", () => app.state.text ?? app.text],
      [`One sentence, ${Object.keys(app.start.sentences).length} languages`, () => sentences],
      ["English only", () => app.start.sentences.English],
      [
        "A drawing (SVG)",
        () => app.start.corpora.find((corpus) => corpus.text.includes("<svg"))?.text ?? "",
      ],
    ];
    const picker = (id, properties) => {
      const input = h("input", {
        type: "file",
        id,
        class: "visually-hidden",
        tabindex: -1,
        "aria-hidden": "true",
        onchange: () => this.read(input.files),
        ...properties,
      });
      return input;
    };
    const files = picker("byte-file", { multiple: true });
    const folder = picker("byte-folder", { webkitdirectory: true });
    this.title = h("p", { class: "counts" });
    this.grid = h("div", { class: "heat-box" });
    this.detail = h("div", { class: "byte-detail" });
    this.facts = h("section", { class: "card" });
    put(
      root,
      h(
        "p",
        { class: "intro" },
        "All text is bytes. A vocabulary starts with these 256 values; every other token is ",
        "learned by merging neighbors that often occur together.",
      ),
      saved ? null : h(
        "div",
        { class: "examples", role: "group", "aria-label": "Texts" },
        h("span", {}, "Count"),
        sources.map(([name, text]) =>
          h("button", {
            type: "button",
            onclick: () =>
              this.choose({
                bytes_text: text() === app.state.text ? undefined : text(),
                byte_counts: undefined,
              }),
          }, name)
        ),
        h("button", { type: "button", onclick: () => files.click() }, "Files…"),
        h("button", { type: "button", onclick: () => folder.click() }, "A folder…"),
        files,
        folder,
      ),
      this.title,
      h(
        "div",
        { class: "bar" },
        segmented(
          "What the cells show",
          [["characters", "Characters"], ["letters", "GPT-2's letters"], ["counts", "Counts"]],
          this.mode,
          (mode) => {
            this.mode = mode;
            app.go({ cells: mode === "characters" ? undefined : mode }, { redraw: false });
            this.draw();
          },
        ),
      ),
      h(
        "div",
        { class: "two heat" },
        h("section", { class: "card" }, this.grid),
        h("div", {}, this.detail, this.facts),
      ),
    );
    root.addEventListener("dragover", (event) => event.preventDefault());
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      if (!saved) this.read(event.dataTransfer?.files ?? []);
    });
    this.ready = this.count();
  }

  // Count the bytes of files here, chunk by chunk: they may be of any size.
  async read(files) {
    const turn = this.turn = Symbol("turn");
    const chosen = [...files];
    const total = chosen.reduce((sum, file) => sum + file.size, 0);
    const counts = new Array(256).fill(0);
    let done = 0;
    for (const file of chosen) {
      for (let at = 0; at < file.size; at += CHUNK) {
        let chunk;
        try {
          chunk = new Uint8Array(await file.slice(at, at + CHUNK).arrayBuffer());
        } catch {
          this.app.showError(
            `${fileName(file.name)} cannot be read; choose a file, or a folder with the button`,
          );
          return;
        }
        if (turn !== this.turn || !this.grid.isConnected) return;
        for (const byte of chunk) counts[byte] += 1;
        done += chunk.length;
        if (done < total) put(this.title, `counting: ${percent(done / total)}`);
      }
    }
    if (!chosen.length) return;
    const name = chosen.length === 1 ? chosen[0].name : amount(chosen.length, "file");
    await this.choose({ byte_counts: JSON.stringify({ name, counts }), bytes_text: undefined });
  }

  choose(changes) {
    this.turn = null;
    this.app.go(changes, { redraw: false });
    return this.count();
  }

  async count() {
    await this.app.attempt(async () => {
      const { byte_counts: counted, bytes_text: chosen, text } = this.app.state;
      this.files = counted ? JSON.parse(counted) : null;
      this.answer = await ask(
        "bytes",
        this.files ? { counts: this.files.counts } : { text: chosen ?? text ?? this.fallback },
      );
      if (!this.grid.isConnected) return; // another view has been opened
      this.app.clearError();
      this.most = Math.max(...this.answer.counts);
      this.draw();
    });
  }

  heat(count) {
    if (!count) return 0;
    const below = this.most / count;
    for (let level = 4; level > 1; level--) if (below < STEP ** (5 - level) / 2) return level;
    return 1;
  }

  draw() {
    const { counts, bytes, outside, letters } = this.answer;
    const used = counts.filter(Boolean).length;
    put(
      this.title,
      h("b", {}, number(bytes)),
      bytes === 1 ? " byte" : " bytes",
      h(
        "span",
        {},
        this.files ? ` of ${fileName(this.files.name)}` : "",
      ),
      h("span", {}, ` — ${number(used)} of 256 values used`),
      h(
        "span",
        { class: "more" },
        fact(bytes ? percent(outside / bytes) : "–", "outside printable ASCII"),
      ),
    );
    const head = h(
      "tr",
      {},
      h("td", {}),
      Array.from(
        { length: 16 },
        (_, n) => h("th", { scope: "col" }, `_${n.toString(16).toUpperCase()}`),
      ),
    );
    const rows = Array.from(
      { length: 16 },
      (_, row) =>
        h(
          "tr",
          { title: ROWS[row] },
          h("th", { scope: "row" }, `${row.toString(16).toUpperCase()}_`),
          Array.from({ length: 16 }, (_, column) => this.cell(16 * row + column, letters)),
        ),
    );
    put(
      this.grid,
      h(
        "table",
        {
          class: "heat-map",
          role: "grid",
          "aria-label": "Byte values",
          onkeydown: (event) => this.moved(event),
        },
        h("thead", {}, head),
        h("tbody", {}, rows),
      ),
      h(
        "p",
        { class: "legend" },
        HEATS.map((name, level) => h("span", {}, h("i", { class: `heat${level}` }), name)),
        h("span", {}, h("i", { class: "edge" }), "the 98 bytes of ASCII-only"),
      ),
    );
    this.pick(this.picked ?? this.surprise(), false);
    this.drawFacts();
  }

  // By default, the most common byte outside ASCII, whose count is often a surprise.
  surprise() {
    const { counts } = this.answer;
    const high = counts.slice(128);
    return Math.max(...high) ? 128 + high.indexOf(Math.max(...high)) : counts.indexOf(this.most);
  }

  cell(byte, letters) {
    const { counts, ascii } = this.answer;
    const plain = NAMES[byte] ?? (byte > 32 && byte < 127 ? String.fromCharCode(byte) : "");
    const shown = this.mode === "counts"
      ? short(counts[byte])
      : this.mode === "letters"
      ? letters[byte]
      : plain;
    return h(
      "td",
      { role: "gridcell" },
      h("button", {
        type: "button",
        id: `b${byte}`,
        tabindex: -1,
        class: `heat${this.heat(counts[byte])}${ascii.includes(byte) ? " edge" : ""}${
          shown.length > 2 ? " tight" : ""
        }`,
        "aria-label": `byte ${hexByte(byte)} ${plain}, ${amount(counts[byte], "time")}, ${
          HEATS[this.heat(counts[byte])]
        }`,
        onclick: () => this.pick(byte, true),
        onpointerenter: () => this.describe(byte),
        onpointerleave: () => this.describe(this.picked),
      }, shown),
    );
  }

  moved(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 16, ArrowUp: -16 }[event.key];
    if (!by) return;
    event.preventDefault();
    this.pick((this.picked + by + 256) % 256, true);
    document.getElementById(`b${this.picked}`).focus();
  }

  pick(byte, byUser) {
    const before = document.getElementById(`b${this.picked}`);
    before?.setAttribute("tabindex", "-1");
    before?.classList.remove("picked");
    this.picked = byte;
    const cell = document.getElementById(`b${byte}`);
    cell.setAttribute("tabindex", "0");
    cell.classList.add("picked");
    if (byUser) this.app.go({ byte: hexByte(byte) }, { redraw: false });
    this.describe(byte);
  }

  describe(byte) {
    const { counts, bytes, letters, ascii } = this.answer;
    const name = NAMES[byte] ??
      (byte > 32 && byte < 127 ? String.fromCharCode(byte) : ROWS[byte >> 4]);
    put(
      this.detail,
      h("p", { class: "lead" }, h("code", {}, `0x${hexByte(byte).toUpperCase()}`), ` ${name}`),
      h(
        "dl",
        { class: "facts" },
        h("dt", {}, "occurs"),
        h(
          "dd",
          {},
          `${amount(counts[byte], "time")}${
            bytes ? `, ${percent(counts[byte] / bytes)} of all bytes` : ""
          }`,
        ),
        h("dt", {}, "value"),
        h("dd", {}, `${byte}, binary ${byte.toString(2).padStart(8, "0")}`),
        h("dt", {}, "GPT-2"),
        h(
          "dd",
          {},
          h("span", { class: "letter" }, letters[byte]),
          letters[byte] === String.fromCharCode(byte)
            ? " represents itself"
            : ` represents it in tokenizer.json (U+${
              letters[byte].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")
            })`,
        ),
        h("dt", {}, "ASCII-only"),
        h("dd", {}, ascii.includes(byte) ? "has a token for it" : "has no token for it"),
      ),
    );
  }

  drawFacts() {
    const { outside, bytes, base_full: full, base_ascii: small } = this.answer;
    const merges = (size, base) => size - base;
    put(
      this.facts,
      h("h2", {}, "What ASCII-only would save"),
      h(
        "p",
        {},
        `A vocabulary needs a token for each byte it may encounter: ${full} with four special tokens, but only ${small} with --ascii-only. In a vocabulary of 320 tokens, that leaves `,
        h("b", {}, `${merges(320, small)} merges instead of ${merges(320, full)}`),
        "; among 32,768 tokens, it hardly matters.",
      ),
      bytes === 0 ? null : outside
        ? h(
          "p",
          { class: "warning" },
          h("b", {}, "This text does not qualify: "),
          `${amount(outside, "byte")} ${
            outside === 1 ? "is" : "are"
          } not a tab, a newline or in 0x20 to 0x7E.`,
        )
        : h(
          "p",
          { class: "fits" },
          h("b", {}, "This text qualifies: "),
          "every byte is a tab, a newline or in 0x20 to 0x7E.",
        ),
    );
  }

  update() {
    return this.count();
  }
}

const short = (
  count,
) => (count < 1000
  ? String(count || "")
  : count < 1e6
  ? `${Math.round(count / 1000)}k`
  : `${Math.round(count / 1e6)}M`);
