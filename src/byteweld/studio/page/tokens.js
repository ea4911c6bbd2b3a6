// Tokens: a text as it is cut. Type, drop, select; the side panel says what a token is and why.

import { ask, MOST_BYTES, saved, unpacked } from "./api.js";
import { amount, fact, h, number, percent, put, rate, segmented, settled } from "./dom.js";
import { decode, glyphs, hexBytes, spoken, tint, utf8, visible } from "./glyphs.js";
import { LazyBlocks } from "./lazy.js";

const BLOCK_TOKENS = 700;
const WAIT_MILLISECONDS = 40;
const LONG_WAIT_MILLISECONDS = 150; // as long as between two keys: typing goes before counting
const LONG_TEXT = 50_000;
const LINE_PIXELS = 40;

export const view = { title: "Tokens", open: (root, app) => new Tokens(root, app) };

class Tokens {
  constructor(root, app) {
    this.app = app;
    this.mode = app.state.show ?? "text";
    this.selected = -1;
    this.asked = 0;
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
      placeholder: "Type or drop text here",
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
    this.blocks = new LazyBlocks(this.hero, (place, element) => this.fill(place, element));
    this.special = h("input", {
      type: "checkbox",
      checked: app.state.special !== "no",
      onchange: () => {
        app.go({ special: this.special.checked ? undefined : "no", sel: undefined }, {
          redraw: false,
        });
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
          this.lay();
        },
      ),
      h("label", { class: "check" }, this.special, " special tokens"),
      h("span", { class: "spring" }),
      h("button", { type: "button", id: "copy", onclick: () => this.copy() }, "Copy ids"),
    );
    add(root, [
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
    ]);
    root.addEventListener("dragover", (event) => event.preventDefault());
    root.addEventListener("drop", (event) => this.dropped(event));
    this.later = settled(WAIT_MILLISECONDS, () => this.encode());
    this.muchLater = settled(LONG_WAIT_MILLISECONDS, () => this.encode());
    this.fit();
  }

  // As tall as its text, up to a fifth of the screen.
  fit() {
    const { editor } = this;
    const most = Math.max(90, innerHeight * 0.22);
    if (editor.value.length > LONG_TEXT) {
      // Wrapping and measuring so much text would take the browser a second.
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
    if (this.editor.value.length > LONG_TEXT) this.muchLater();
    else this.later();
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
    const bytes = new Uint8Array(await file.slice(0, MOST_BYTES).arrayBuffer());
    const isPart = file.size > MOST_BYTES;
    let text;
    try {
      // Of a part, the last character may be cut: it is left out.
      text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isPart });
    } catch {
      this.app.complain(
        `${file.name} is not UTF-8 text; drop it on the Bytes view to see what it is`,
      );
      return;
    }
    await this.load(text);
    if (isPart) this.app.complain(`${file.name} is longer: this is its first megabyte`);
  }

  async encode() {
    const text = this.editor.value;
    const mine = ++this.asked;
    await this.app.tried(async () => {
      const answer = await ask("tokens", {
        tokenizer: this.app.state.tok ?? 0,
        text,
        special: this.special.checked,
      });
      if (mine !== this.asked) return; // a newer text is on its way
      this.app.content();
      const changed = text !== this.app.text;
      if (changed) this.app.go({ text, sel: undefined, at: undefined }, { redraw: false });
      this.take(text, answer);
      const wanted = changed ? undefined : this.app.state.sel;
      if (wanted !== undefined && wanted < this.ids.length) await this.select(wanted);
      else {
        this.selected = -1;
        this.tell(-1);
        this.app.panel.close(false);
      }
    });
  }

  take(text, { ids, lengths, characters, special }) {
    this.bytes = utf8.encode(text);
    this.characters = characters;
    this.ids = unpacked(ids);
    this.special_places = new Set(special);
    this.ends = unpacked(lengths);
    for (let place = 1; place < this.ends.length; place++) this.ends[place] += this.ends[place - 1];
    this.cut();
    this.drawCounts();
    this.lay();
  }

  // Blocks of tokens that end with a line where they can.
  cut() {
    this.firsts = [0];
    let lineEnd = 0;
    for (let place = 0; place < this.ids.length; place++) {
      if (this.bytes[this.ends[place] - 1] === 10) lineEnd = place + 1;
      const first = this.firsts[this.firsts.length - 1];
      if (place + 1 - first < BLOCK_TOKENS) continue;
      const cut = lineEnd > first ? lineEnd : place + 1 - first >= 2 * BLOCK_TOKENS ? place + 1 : 0;
      if (cut) this.firsts.push(cut);
    }
    this.firsts.push(this.ids.length);
  }

  lay() {
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

  start(place) {
    return place ? this.ends[place - 1] : 0;
  }

  bytesOf(place) {
    return this.bytes.subarray(this.start(place), this.ends[place]);
  }

  fill(block, element) {
    for (let place = this.firsts[block]; place < this.firsts[block + 1]; place++) {
      const bytes = this.bytesOf(place);
      const special = this.special_places.has(place);
      const token = h("span", {
        class: `t ${special ? "special" : tint(this.ids[place])}${
          place === this.selected ? " selected" : ""
        }`,
        id: `t${place}`,
        role: "option",
        "aria-selected": String(place === this.selected),
        "aria-label": `${spoken(bytes)}, id ${this.ids[place]}${special ? ", special token" : ""}`,
      }, this.mode === "text" ? glyphs(bytes, true) : h("span", {}, glyphs(bytes)));
      if (this.mode !== "text") {
        token.append(h("small", {}, this.mode === "ids" ? this.ids[place] : hexBytes(bytes)));
      }
      // A line may break before a space, so that a token with its space stays in one piece.
      if (bytes[0] === 32 || this.mode !== "text") element.append(document.createElement("wbr"));
      element.append(token);
      if (this.mode !== "text" && bytes.includes(10)) element.append(document.createElement("br"));
    }
  }

  drawCounts() {
    const { length } = this.ids;
    const size = this.bytes.length;
    const saving = size ? 1 - length / size : 0;
    put(
      this.counts,
      h("b", { id: "count" }, number(length)),
      ` ${length === 1 ? "token" : "tokens"}`,
      h("span", {}, size ? ` — ${percent(saving)} fewer than its bytes` : ""),
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
    const to = {
      ArrowRight: now + 1,
      ArrowLeft: now < 0 ? 0 : now - 1,
      Home: 0,
      End: last,
      ArrowDown: this.beside(1),
      ArrowUp: this.beside(-1),
    }[event.key];
    if (event.key === "Enter" && now >= 0) {
      event.preventDefault();
      this.app.go({ view: "why", at: this.start(now) });
    }
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.select(Math.max(0, Math.min(last, to)));
  }

  // The token above or below the selected one.
  beside(direction) {
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

  async select(place) {
    this.mark(this.selected, false);
    this.selected = place;
    const block = this.firsts.findIndex((first) => first > place) - 1;
    this.blocks.ensure(block);
    this.mark(place, true);
    this.reveal(place);
    this.hero.setAttribute("aria-activedescendant", `t${place}`);
    this.tell(place);
    this.app.go({ sel: place }, { redraw: false });
    await this.app.panel.show(this.ids[place], {
      part: this.partOf(place),
      place,
      total: this.ids.length,
      from: this.start(place),
      to: this.ends[place],
      times: this.ids.reduce((count, id) => count + (id === this.ids[place] ? 1 : 0), 0),
      before: place ? [this.ids[place - 1], this.bytesOf(place - 1)] : null,
      after: place + 1 < this.ids.length ? [this.ids[place + 1], this.bytesOf(place + 1)] : null,
      onclose: () => {
        this.mark(this.selected, false);
        this.selected = -1;
        this.same(null);
      },
      next: () => this.select(this.nextOf(place)),
      step: (by) => this.select(Math.max(0, Math.min(this.ids.length - 1, this.selected + by))),
    });
    this.same(this.ids[place]);
    this.reveal(place); // the panel may have covered it
  }

  reveal(place) {
    document.getElementById(`t${place}`)?.scrollIntoView({ block: "nearest" });
  }

  nextOf(place) {
    const later = this.ids.indexOf(this.ids[place], place + 1);
    return later < 0 ? this.ids.indexOf(this.ids[place]) : later;
  }

  // The characters of a token that begins or ends inside one.
  partOf(place) {
    if (decode(this.bytesOf(place)) !== null) return "";
    const inside = (at) => (this.bytes[at] & 0xc0) === 0x80;
    let from = this.start(place), to = this.ends[place];
    while (from > 0 && inside(from)) from--;
    while (to < this.bytes.length && inside(to)) to++;
    return visible(this.bytes.subarray(from, to));
  }

  mark(place, on) {
    const token = document.getElementById(`t${place}`);
    token?.classList.toggle("selected", on);
    token?.setAttribute("aria-selected", String(on));
  }

  hovered(event) {
    const token = event?.target.closest?.(".t");
    const place = token ? Number(token.id.slice(1)) : this.selected;
    this.tell(place);
    this.same(place >= 0 ? this.ids[place] : null);
  }

  // The other places of a token that are on the screen.
  same(id) {
    for (const token of this.hero.querySelectorAll(".same")) token.classList.remove("same");
    if (id === null || id === undefined) return;
    for (const token of this.hero.querySelectorAll(".t")) {
      if (this.ids[Number(token.id.slice(1))] === id) token.classList.add("same");
    }
  }

  tell(place) {
    if (place < 0 || place >= this.ids.length) {
      put(
        this.status,
        h(
          "span",
          { class: "hint" },
          "Select a token: click it, or use the arrow keys. Enter shows why.",
        ),
      );
      return;
    }
    const bytes = this.bytesOf(place);
    put(
      this.status,
      h("span", { class: `tile ${tint(this.ids[place])}` }, glyphs(bytes)),
      h("span", {}, "id ", h("b", {}, this.ids[place])),
      h(
        "span",
        {},
        amount(bytes.length, "byte"),
        " ",
        h("code", {}, hexBytes(bytes.subarray(0, 24))),
      ),
      h("span", {}, `bytes ${number(this.start(place))}–${number(this.ends[place])}`),
      this.partOf(place) ? h("span", {}, "part of ", h("b", {}, this.partOf(place))) : null,
      h("span", {}, `token ${number(place + 1)} of ${number(this.ids.length)}`),
    );
  }

  async copy() {
    const text = this.ids.join(", ");
    try {
      await navigator.clipboard.writeText(`[${text}]`);
      this.app.say(`${amount(this.ids.length, "id")} copied`);
      document.getElementById("copy").textContent = "Copied";
    } catch {
      this.app.complain(
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

  keep() {
    return this.app.panel.keep(this.ids);
  }

  close() {
    this.asked++; // an answer that comes late is nobody's
    this.blocks.close();
  }
}

function add(root, children) {
  for (const child of children) if (child) root.append(child);
}
