// The page: a vocabulary is dropped or chosen, and the studio's Tokens view shows text with it.

import { ApiError, ask, facts, isText, isVocabulary, upload } from "./api.js";
import { patternName } from "./chooser.js";
import { amount, dialogTop, field, h, put } from "./dom.js";
import { fileName } from "./glyphs.js";
import { Panel } from "./panel.js";
import { restoreTheme, themeButton } from "./theme.js";
import { view as tokens } from "./tokens.js";

const SIDECAR = ".byteweld.json";
const byId = (id) => document.getElementById(id);

class App {
  state = {};
  start = { examples: facts.examples, tokenizers: [] };
  current = null;
  panel = new Panel(byId("panel"), this);

  open() {
    restoreTheme();
    addEventListener("keydown", (event) => this.key(event));
    // Before the view, which takes every dropped file for text.
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", (event) => this.dropped(event), { capture: true });
    this.drawHeader();
    put(byId("main"), this.welcome());
  }

  get tokenizer() {
    return this.start.tokenizers[0];
  }

  get text() {
    return this.state.text ?? this.start.examples[0].text;
  }

  // Change the state. The studio's other views are not here: what they would explain of a token is in
  // the panel.
  go(changes) {
    if (changes.view) {
      byId("panel").querySelector("button")?.focus();
      return;
    }
    this.state = { ...this.state, ...changes };
  }

  async show() {
    this.current?.close();
    this.panel.close(false);
    this.drawHeader();
    document.title = `Tokens · ${this.tokenizer.name} · byteweld`;
    const root = put(byId("main"));
    root.className = "view-tokens";
    await this.attempt(async () => {
      this.current = tokens.open(root, this);
      await this.current.ready;
    });
  }

  // ---------------------------------------------------------------- messages

  async attempt(work) {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.showError(error.message);
    }
  }

  showError(message) {
    byId("error")?.remove();
    byId("main").prepend(h("p", { class: "error", id: "error", role: "alert" }, message));
  }

  clearError() {
    byId("error")?.remove();
  }

  announce(words) {
    put(byId("announcement"), words);
  }

  // ---------------------------------------------------------------- opening a vocabulary

  welcome() {
    return [
      h("h2", { class: "lead" }, "See how a tokenizer splits your text"),
      h(
        "p",
        { class: "intro" },
        "Drop a vocabulary anywhere on this page, or choose one. Everything happens in this page: ",
        "it has no server and its policy forbids any connection.",
      ),
      h("div", { class: "card drop-here" }, this.chooser()),
      h("h3", {}, "Where to find one"),
      h(
        "ul",
        { class: "sources" },
        h("li", {}, h("code", {}, "tokenizer.json"), " is among the files of most models that are published."),
        h(
          "li",
          {},
          "Rank files of OpenAI's encodings, Llama 3 and Qwen are recognized, with their patterns and special tokens.",
        ),
        h("li", {}, h("code", {}, "byteweld train"), " makes one from your own text."),
      ),
    ];
  }

  chooser() {
    return field(
      "A tokenizer.json of byte-level BPE, or a rank file (.tiktoken); either may be a .gz",
      h("input", {
        type: "file",
        id: "vocabulary-file",
        multiple: true,
        onchange: (event) => this.take([...event.target.files]),
      }),
    );
  }

  // A dropped vocabulary is opened; with one open, any other file is text.
  async dropped(event) {
    const files = [...(event.dataTransfer?.files ?? [])];
    if (!files.length) return;
    event.preventDefault();
    event.stopPropagation();
    if (!this.current || await isVocabulary(files[0])) await this.take(files);
    else if (!await isText(files[0])) this.refuse(files[0], "is neither a vocabulary nor UTF-8 text");
    else await this.current.dropped({ dataTransfer: { files }, preventDefault() {} });
  }

  // Open the first file that is not a sidecar.
  async take(files, pattern = null) {
    const file = files.find(({ name }) => !name.endsWith(SIDECAR));
    const sidecar = files.find(({ name }) => name.endsWith(SIDECAR));
    if (!file) {
      if (files.length) this.refuse(files[0], "is not a vocabulary; choose the file beside it, too");
      return;
    }
    this.announce(`Opening ${fileName(file.name)}`);
    byId("main").setAttribute("aria-busy", "true");
    try {
      const answer = await upload(file, { sidecar, pattern });
      if (answer.needs_pattern) {
        this.askForPattern(files);
        return;
      }
      byId("choose").close();
      this.start.tokenizers = [{ ...answer, name: fileName(file.name) }];
      const { text, show, special_text } = this.state;
      this.state = { text, show, special_text };
      await this.show();
      this.announce(`${fileName(file.name)} is open: ${amount(answer.tokens, "token")}`);
      byId("text").focus();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.refuse(file, error.message);
    } finally {
      byId("main").removeAttribute("aria-busy");
    }
  }

  refuse(file, message) {
    const words = `${fileName(file.name)}: ${message}`;
    const place = byId("choose-error");
    if (!byId("choose").open || !place) return this.showError(words);
    put(place, words);
    place.hidden = false;
  }

  // Show a dialog with some content.
  dialog(title, ...content) {
    const dialog = byId("choose");
    put(
      dialog,
      dialogTop(title, dialog),
      content,
      h("p", { class: "error", role: "alert", hidden: true, id: "choose-error" }),
    );
    dialog.setAttribute("aria-label", title);
    if (!dialog.open) dialog.showModal();
  }

  // A rank file does not say how text is split.
  askForPattern(files) {
    const names = Object.keys(facts.engine.patterns);
    const choice = h(
      "select",
      { id: "pattern" },
      names.map((name) => h("option", { value: name }, name)),
      h("option", { value: "" }, "no pattern"),
    );
    const regex = h("input", { type: "text", id: "regex", spellcheck: "false", autocomplete: "off" });
    const pattern = () =>
      regex.value ? { regex: regex.value } : choice.value ? { name: choice.value } : "none";
    this.dialog(
      "Which pattern?",
      h(
        "p",
        {},
        "This rank file is not one of the well-known ones, and rank files do not say how text is split. ",
        "With another pattern than the one it was trained with, the ids are wrong.",
      ),
      h(
        "form",
        {
          onsubmit: (event) => {
            event.preventDefault();
            this.take(files, pattern());
          },
        },
        field("Pattern", choice),
        field("or a regular expression", regex),
        h("p", {}, h("button", { type: "submit", id: "use-pattern", class: "go" }, "Open")),
      ),
      h(
        "p",
        { class: "hint" },
        "Special tokens are not in the file either, so they are plain text here. If byteweld wrote the ",
        `file, choose the file ending with ${SIDECAR} together with it: it has both.`,
      ),
    );
  }

  // ---------------------------------------------------------------- header

  drawHeader() {
    const { name, tokens: size, pattern } = this.tokenizer ?? {};
    put(
      byId("top"),
      h("h1", { class: "brand" }, h("b", {}, "byteweld"), " tokens"),
      this.tokenizer
        ? h(
          "button",
          {
            type: "button",
            class: "tokenizer",
            id: "tokenizer",
            "aria-haspopup": "dialog",
            title: `pattern ${pattern}`,
            onclick: () => this.dialog("Open another vocabulary", this.chooser()),
          },
          h("strong", {}, name),
          h("span", {}, amount(size, "token")),
          h("span", { class: "wide" }, patternName(pattern)),
        )
        : null,
      h("span", { class: "tools" }, themeButton(this)),
    );
  }

  key(event) {
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.ctrlKey ||
      event.metaKey || event.altKey;
    if (event.key === "Escape" && !byId("choose").open) this.panel.close(true);
    if (!isTyping && event.key === "/" && byId("text")) {
      event.preventDefault();
      byId("text").focus();
    }
  }
}

const app = new App();
app.open();

// For the browser's console: `await byteweld.encode("some text")`, `await byteweld.token(256)`.
globalThis.byteweld = {
  async encode(text, { special_text = "special" } = {}) {
    const { ids, lengths } = await ask("tokens", { text, special_text });
    return { ids: Array.from(ids), lengths: Array.from(lengths) };
  },
  token: (id) => ask("token", { id }),
};
