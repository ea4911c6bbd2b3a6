// Tokens: text split into tokens. Type or drop text; select a token to see it in the side panel.

import { ask, MAX_BYTES, saved, unpacked } from "./api.js";
import { amount, debounced, fact, h, number, percent, put, rate, segmented } from "./dom.js";
import { glyphsIn, joins, sharing, spokenIn, wholeCharacters } from "./characters.js";
import { tokenLine } from "./direction.js";
import { glyphs, hexBytes, tint, utf8, visible } from "./glyphs.js";
import { blocksOf, LazyBlocks } from "./lazy.js";
import { NO_WORD, whyAt } from "./why.js";

const BLOCK_TOKENS = 700;
const WAIT_MILLISECONDS = 40;
const LONG_TEXT_WAIT_MILLISECONDS = 150; // about the time between keystrokes
const LONG_TEXT = 50_000;
const LINE_PIXELS = 40;

export const view = { title: "Tokens", open: (root, app) => new Tokens(root, app) };

class Tokens {
  constructor(root, app) {
    this.app = app;
    this.mode = app.state.show ?? "text";
    this.selected = -1;
    this.latest = 0;
    this.draw(root);
    this.ready = this.encode();
  }

  // ---------------------------------------------------------------- drawing

  draw(root) {
    const { app } = this;
    this.editor = h("textarea", {
      id: "text",
      class: "editor",
      rows: 3,
      spellcheck: "false",
      autocomplete: "off",
      dir: "auto",
      placeholder: "Type text or drop a file here",
      readonly: Boolean(saved),
      value: app.text,
      "aria-label": "Text to encode",
      oninput: () => this.typed(),
      onpaste: (event) => this.pasted(event),
    });
    this.counts = h("p", { class: "counts", id: "counts" });
    this.note = h("p", { class: "note" });
    this.hero = h("div", {
      class: "hero",
      id: "tokens",
      role: "listbox",
      tabindex: 0,
      "aria-label": "Tokens",
      "aria-orientation": "horizontal",
      onkeydown: (event) => this.moved(event),
      onclick: (event) => this.clicked(event),
      onpointerover: (event) => this.hovered(event),
      onpointerleave: () => this.hovered(null),
    });
    this.status = h("p", { class: "status", id: "status" });
    this.blocks = new LazyBlocks(this.hero, (index, element) => this.fill(index, element));
    this.special = h("input", {
      type: "checkbox",
      checked: app.state.special_text !== "text",
      onchange: () => {
        const special_text = this.special.checked ? undefined : "text";
        app.go({ special_text, sel: undefined }, { redraw: false });
        this.encode();
      },
    });
    const tools = h(
      "div",
      { class: "bar" },
      segmented(
        "What is shown",
        [["text", "Text"], ["ids", "With ids"], ["bytes", "With bytes"]],
        this.mode,
        (mode) => {
          this.mode = mode;
          app.go({ show: mode === "text" ? undefined : mode }, { redraw: false });
          this.layOut();
        },
      ),
      h("label", { class: "check" }, this.special, " special tokens"),
      h("span", { class: "spacer" }),
      h("button", { type: "button", id: "copy", onclick: () => this.copy() }, "Copy ids"),
    );
    put(
      root,
      saved ? null : h(
        "div",
        { class: "examples", role: "group", "aria-label": "Examples" },
        h("span", {}, "Look at"),
        app.start.examples.map((example) =>
          h("button", { type: "button", onclick: () => this.load(example.text) }, example.name)
        ),
      ),
      h("section", { class: "typing", "aria-label": "Text" }, this.editor),
      this.counts,
      tools,
      this.hero,
      this.note,
      this.status,
    );
    root.addEventListener("dragover", (event) => event.preventDefault());
    root.addEventListener("drop", (event) => this.dropped(event));
    this.encodeSoon = debounced(WAIT_MILLISECONDS, () => this.encode());
    this.encodeLater = debounced(LONG_TEXT_WAIT_MILLISECONDS, () => this.encode());
    this.fit();
  }

  // Make the editor as tall as its text, up to a fifth of the screen.
  fit() {
    const { editor } = this;
    const most = Math.max(90, innerHeight * 0.22);
    if (editor.value.length > LONG_TEXT) {
      // Wrapping and measuring this much text would take the browser a second.
      editor.wrap = "off";
      editor.style.setProperty("height", `${most}px`);
      return;
    }
    editor.wrap = "soft";
    editor.style.setProperty("height", "auto");
    editor.style.setProperty("height", `${Math.min(editor.scrollHeight + 2, most)}px`);
  }

  // ---------------------------------------------------------------- text

  typed() {
    this.fit();
    if (this.editor.value.length > LONG_TEXT) this.encodeLater();
    else this.encodeSoon();
  }

  pasted(event) {
    const more = event.clipboardData?.getData("text").length ?? 0;
    if (this.editor.value.length + more > LONG_TEXT) this.editor.wrap = "off";
  }

  load(text) {
    if (text.length > LONG_TEXT) this.editor.wrap = "off";
    this.editor.value = text;
    this.fit();
    return this.encode();
  }

  async dropped(event) {
    const file = event.dataTransfer?.files?.[0];
    if (!file || saved) return;
    event.preventDefault();
    const bytes = new Uint8Array(await file.slice(0, MAX_BYTES).arrayBuffer());
    const isPart = file.size > MAX_BYTES;
    let text;
    try {
      // `stream` drops an incomplete last character.
      text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isPart });
    } catch {
      this.app.showError(
        `${file.name} is not UTF-8 text; drop it on the Bytes view to see its bytes`,
      );
      return;
    }
    await this.load(text);
    if (isPart) this.app.showError(`${file.name} is too long; only its first megabyte is shown`);
  }

  async encode() {
    const text = this.editor.value;
    const mine = ++this.latest;
    await this.app.attempt(async () => {
      const answer = await ask("tokens", {
        tokenizer: this.app.state.tok ?? 0,
        text,
        special_text: this.special.checked ? "special" : "text",
      });
      if (mine !== this.latest) return; // a newer request is running
      this.app.clearError();
      const changed = text !== this.app.text;
      if (changed) this.app.go({ text, sel: undefined, ...NO_WORD }, { redraw: false });
      this.take(text, answer);
      const selected = changed ? undefined : this.app.state.sel;
      if (selected !== undefined && selected < this.ids.length) await this.select(selected);
      else {
        this.selected = -1;
        this.describe(-1);
        this.app.panel.close(false);
      }
    });
  }

  take(text, { ids, lengths, characters, special }) {
    this.bytes = utf8.encode(text);
    this.characters = characters;
    this.ids = unpacked(ids);
    this.specialIndices = new Set(special);
    this.ends = unpacked(lengths);
    for (let index = 1; index < this.ends.length; index++) this.ends[index] += this.ends[index - 1];
    this.firsts = blocksOf(this.bytes, this.ends, BLOCK_TOKENS);
    this.drawCounts();
    this.layOut();
  }

  layOut() {
    this.hero.className = `hero show-${this.mode}`;
    const width = Math.max(20, Math.floor(this.hero.clientWidth / 13));
    const heights = [];
    for (let block = 0; block + 1 < this.firsts.length; block++) {
      const size = this.start(this.firsts[block + 1]) - this.start(this.firsts[block]);
      heights.push(Math.ceil(size / width) * LINE_PIXELS);
    }
    this.blocks.show(heights);
    this.note.textContent = this.noteText();
    this.noteText() ? this.note.removeAttribute("hidden") : this.note.setAttribute("hidden", "");
  }

  noteText() {
    return this.app.start.examples.find((example) => example.text === this.app.text)?.note ?? "";
  }

  start(index) {
    return index ? this.ends[index - 1] : 0;
  }

  bytesOf(index) {
    return this.bytes.subarray(this.start(index), this.ends[index]);
  }

  // A block is divided into lines, each with its own direction. A token with text after its
  // newline does not end a line, since its element cannot be in two.
  fill(block, element) {
    const end = this.firsts[block + 1];
    for (let first = this.firsts[block], index = first; index < end; index++) {
      const bytes = this.bytesOf(index);
      const endsLine = this.mode === "text" ? bytes.at(-1) === 10 : bytes.includes(10);
      if (!endsLine && index + 1 < end) continue;
      element.append(this.line(first, index + 1));
      first = index + 1;
    }
  }

  line(first, end) {
    const ends = this.ends.subarray(first, end);
    const make = (n, ...range) => {
      // Allow line breaks before a space, so that a token with its space stays in one piece.
      const canBreak = this.bytes[range[1]] === 32 || this.mode !== "text";
      const token = this.token(first + n, range);
      return canBreak && !joins(this.bytes, range[1])
        ? [document.createElement("wbr"), token]
        : [token];
    };
    const { direction, nodes } = tokenLine(this.bytes, this.start(first), ends, make);
    return h("div", { class: "line", dir: direction, role: "presentation" }, nodes);
  }

  token(index, range) {
    const id = this.ids[index];
    const special = this.specialIndices.has(index);
    const text = glyphsIn(...range, this.mode === "text");
    return h(
      "span",
      {
        class: `t ${special ? "special" : tint(id)}${sharing(...range)}${
          index === this.selected ? " selected" : ""
        }`,
        id: `t${index}`,
        role: "option",
        "aria-selected": String(index === this.selected),
        "aria-label": `${spokenIn(...range)}, id ${id}${special ? ", special token" : ""}`,
      },
      this.mode === "text" ? text : h("span", { class: "text" }, text),
      this.mode === "text"
        ? null
        : h("small", {}, this.mode === "ids" ? id : hexBytes(this.bytesOf(index))),
    );
  }

  drawCounts() {
    const { length } = this.ids;
    const size = this.bytes.length;
    const saving = size ? 1 - length / size : 0;
    put(
      this.counts,
      h("b", { id: "count" }, number(length)),
      ` ${length === 1 ? "token" : "tokens"}`,
      h("span", {}, size ? ` — ${percent(saving)} fewer than bytes` : ""),
      h(
        "span",
        { class: "more" },
        fact(rate(length ? size / length : null), "bytes per token"),
        fact(number(this.characters), this.characters === 1 ? "character" : "characters"),
        fact(number(size), size === 1 ? "byte" : "bytes"),
      ),
    );
  }

  // ---------------------------------------------------------------- selecting

  clicked(event) {
    const token = event.target.closest?.(".t");
    if (token && getSelection().isCollapsed) this.select(Number(token.id.slice(1)));
  }

  moved(event) {
    const last = this.ids.length - 1;
    const now = this.selected;
    // The direction of the run that the token is in.
    const from = document.getElementById(`t${now}`)?.closest("[dir]");
    const [ahead, back] = from?.dir === "rtl"
      ? ["ArrowLeft", "ArrowRight"]
      : ["ArrowRight", "ArrowLeft"];
    const to = {
      [ahead]: now + 1,
      [back]: now < 0 ? 0 : now - 1,
      Home: 0,
      End: last,
      ArrowDown: this.aboveOrBelow(1),
      ArrowUp: this.aboveOrBelow(-1),
    }[event.key];
    if (event.key === "Enter" && now >= 0) {
      event.preventDefault();
      this.app.go(whyAt(this.start(now)));
    }
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.select(Math.max(0, Math.min(last, to)));
  }

  // Return the token above or below the selected one.
  aboveOrBelow(direction) {
    const from = document.getElementById(`t${this.selected}`);
    if (!from) return 0;
    const { left, top, height } = from.getClientRects()[0];
    for (let lines = 1; lines < 4; lines++) {
      const under = document.elementFromPoint(
        left + 2,
        top + height / 2 + direction * lines * height,
      );
      const token = under?.closest?.(".t");
      if (token && token !== from) return Number(token.id.slice(1));
    }
    return this.selected;
  }

  async select(index) {
    this.mark(this.selected, false);
    this.selected = index;
    const block = this.firsts.findIndex((first) => first > index) - 1;
    this.blocks.ensure(block);
    this.mark(index, true);
    this.reveal(index);
    this.hero.setAttribute("aria-activedescendant", `t${index}`);
    this.describe(index);
    this.app.go({ sel: index }, { redraw: false });
    await this.app.panel.show(this.ids[index], {
      part: this.partOf(index),
      index,
      total: this.ids.length,
      from: this.start(index),
      to: this.ends[index],
      times: this.ids.reduce((count, id) => count + (id === this.ids[index] ? 1 : 0), 0),
      before: index ? [this.ids[index - 1], this.bytesOf(index - 1)] : null,
      after: index + 1 < this.ids.length ? [this.ids[index + 1], this.bytesOf(index + 1)] : null,
      onclose: () => {
        this.mark(this.selected, false);
        this.selected = -1;
        this.same(null);
      },
      next: () => this.select(this.nextOf(index)),
      step: (by) => this.select(Math.max(0, Math.min(this.ids.length - 1, this.selected + by))),
    });
    this.same(this.ids[index]);
    this.reveal(index); // the panel may have covered it
  }

  reveal(index) {
    document.getElementById(`t${index}`)?.scrollIntoView({ block: "nearest" });
  }

  nextOf(index) {
    const later = this.ids.indexOf(this.ids[index], index + 1);
    return later < 0 ? this.ids.indexOf(this.ids[index]) : later;
  }

  // Return the whole characters around a token that starts or ends inside one.
  partOf(index) {
    const whole = wholeCharacters(this.bytes, this.start(index), this.ends[index]);
    return whole.length > this.bytesOf(index).length ? visible(whole) : "";
  }

  mark(index, on) {
    const token = document.getElementById(`t${index}`);
    token?.classList.toggle("selected", on);
    token?.setAttribute("aria-selected", String(on));
  }

  hovered(event) {
    const token = event?.target.closest?.(".t");
    const index = token ? Number(token.id.slice(1)) : this.selected;
    this.describe(index);
    this.same(index >= 0 ? this.ids[index] : null);
  }

  // Mark the visible occurrences of a token.
  same(id) {
    for (const token of this.hero.querySelectorAll(".same")) token.classList.remove("same");
    if (id === null || id === undefined) return;
    for (const token of this.hero.querySelectorAll(".t")) {
      if (this.ids[Number(token.id.slice(1))] === id) token.classList.add("same");
    }
  }

  describe(index) {
    if (index < 0 || index >= this.ids.length) {
      put(
        this.status,
        h(
          "span",
          { class: "hint" },
          "Click a token or use the arrow keys to select it; Enter explains it.",
        ),
      );
      return;
    }
    const bytes = this.bytesOf(index);
    put(
      this.status,
      h("span", { class: `tile ${tint(this.ids[index])}` }, glyphs(bytes)),
      h("span", {}, "id ", h("b", {}, this.ids[index])),
      h(
        "span",
        {},
        amount(bytes.length, "byte"),
        " ",
        h("code", {}, hexBytes(bytes.subarray(0, 24))),
      ),
      h("span", {}, `bytes ${number(this.start(index))}–${number(this.ends[index])}`),
      this.partOf(index) ? h("span", {}, "part of ", h("b", {}, this.partOf(index))) : null,
      h("span", {}, `token ${number(index + 1)} of ${number(this.ids.length)}`),
    );
  }

  async copy() {
    const text = this.ids.join(", ");
    try {
      await navigator.clipboard.writeText(`[${text}]`);
      this.app.announce(`${amount(this.ids.length, "id")} copied`);
      document.getElementById("copy").textContent = "Copied";
    } catch {
      this.app.showError(
        "the browser does not allow copying here; `byteweld encode` prints the ids",
      );
    }
    setTimeout(() => {
      const button = document.getElementById("copy");
      if (button) button.textContent = "Copy ids";
    }, 1500);
  }

  update() {
    if (this.app.text !== this.editor.value) this.load(this.app.text);
  }

  prefetch() {
    return this.app.panel.prefetch(this.ids);
  }

  close() {
    this.latest++; // ignore late answers
    this.blocks.close();
  }
}
