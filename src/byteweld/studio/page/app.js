// The page: its state, address and header, and the open view.

import { ApiError, ask, saved, savePage, takeToken } from "./api.js";
import { amount, debounced, h, put } from "./dom.js";
import { openChooser, patternName } from "./chooser.js";
import { Panel } from "./panel.js";
import { openShortcuts } from "./shortcuts.js";
import { store, stored } from "./storage.js";
import { restoreTheme, themeButton } from "./theme.js";
import { view as how } from "./how.js";
import { view as tokens } from "./tokens.js";
import { view as why } from "./why.js";
import { view as training } from "./training.js";
import { view as bytes } from "./bytes.js";
import { view as vocabulary } from "./vocabulary.js";
import { view as compare } from "./compare.js";

const VIEWS = { how, tokens, why, training, bytes, vocabulary, compare };
const MAX_ADDRESS_TEXT = 2000;
const NUMBERS = new Set(
  ["tok", "sel", "at", "token", "step", "why_step", "first", "how_step", "how_walk"],
);
const VISITED = "byteweld-visited"; // stored after the first visit, which starts with How it works

const byId = (id) => document.getElementById(id);

class App {
  state = {};
  start = null;
  current = null;
  panel = new Panel(byId("panel"), this);
  // Browsers limit how often the URL may change, and a slider moves faster than that.
  writeAddress = debounced(150, () => history.replaceState(null, "", this.address(this.state)));

  async open() {
    if (!saved) takeToken();
    if (!saved) restoreTheme();
    this.start = await ask("start");
    this.state = saved ? JSON.parse(saved.state) : this.fromAddress();
    if (!saved && stored(VISITED) === null) {
      store(VISITED, "yes");
      history.replaceState(null, "", this.address(this.state)); // so that a reload stays here
    }
    addEventListener("hashchange", () => this.navigated());
    addEventListener("keydown", (event) => this.key(event));
    this.drawHeader();
    await this.show();
  }

  get tokenizer() {
    return this.start.tokenizers[this.state.tok ?? 0] ?? this.start.tokenizers[0];
  }

  // The text that all views share; by default, the first example.
  get text() {
    return this.state.text ?? this.start.examples[0].text;
  }

  // ---------------------------------------------------------------- state and address

  fromAddress() {
    const state = {};
    const given = new URLSearchParams(location.hash.slice(1));
    for (const [key, value] of given) {
      if (!NUMBERS.has(key)) state[key] = value;
      else if (/^\d{1,10}$/.test(value)) state[key] = Number(value);
    }
    if (!Object.hasOwn(VIEWS, state.view ?? "")) {
      state.view = stored(VISITED) === null ? "how" : this.start.first_view;
    }
    if (state.view === "why" && state.why_step === undefined) {
      // As addresses were written when Why and Training had one step in common.
      state.why_step = state.step;
      delete state.step;
    }
    if (!(state.tok in this.start.tokenizers)) delete state.tok;
    for (const key of given.getAll("long")) {
      if (this.state[key] !== undefined) state[key] = this.state[key];
    }
    delete state.long;
    return state;
  }

  address(state) {
    const shown = new URLSearchParams();
    for (const [key, value] of Object.entries(state)) {
      if (value === undefined || value === null || key === "long") continue;
      if (typeof value === "string" && value.length > MAX_ADDRESS_TEXT) shown.append("long", key);
      else shown.set(key, value);
    }
    return `#${shown}`;
  }

  // Change the state. A new view or tokenizer adds an entry to the browser's history.
  go(changes, { redraw = true } = {}) {
    const before = this.state;
    this.state = { ...before, ...changes };
    for (const key of Object.keys(this.state)) {
      if (this.state[key] === undefined) delete this.state[key];
    }
    const step = before.view !== this.state.view || before.tok !== this.state.tok;
    if (!saved && step) history.pushState(null, "", this.address(this.state));
    else if (!saved) this.writeAddress();
    if (!redraw) return null;
    if (step) return this.show();
    return this.current?.update?.(changes);
  }

  navigated() {
    if (saved) return;
    this.state = this.fromAddress();
    this.show();
  }

  async show() {
    const view = VIEWS[this.state.view] ?? tokens;
    this.current?.close?.();
    this.panel.close(false);
    this.drawHeader();
    document.title = `${view.title} · ${this.tokenizer.name} · byteweld studio`;
    const root = put(byId("main"));
    root.className = `view-${this.state.view}`;
    root.setAttribute("aria-busy", "true"); // the style sheet shows what is missing
    let opened;
    await this.attempt(async () => {
      opened = this.current = view.open(root, this);
      await opened.ready;
    });
    if (opened === this.current) root.removeAttribute("aria-busy");
  }

  // Run work; API errors are shown on the page instead of thrown.
  async attempt(work) {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.showError(error.message);
    }
  }

  showError(message) {
    this.clearError();
    document.querySelector(".skeleton")?.remove();
    byId("main").prepend(h("p", { class: "error", id: "error", role: "alert" }, message));
  }

  clearError() {
    byId("error")?.remove();
  }

  // Announce something to screen readers.
  announce(words) {
    put(byId("announcement"), words);
  }

  // ---------------------------------------------------------------- header

  drawHeader() {
    const { name, tokens: size, pattern, fingerprint } = this.tokenizer;
    put(
      byId("top"),
      h("h1", { class: "brand" }, h("b", {}, "byteweld"), " studio"),
      h(
        "button",
        {
          type: "button",
          class: "tokenizer",
          id: "tokenizer",
          "aria-haspopup": "dialog",
          disabled: Boolean(saved),
          title: `pattern ${pattern}\nfingerprint ${fingerprint}`,
          onclick: () => openChooser(this),
        },
        h("strong", {}, name),
        h("span", {}, amount(size, "token")),
        h("span", { class: "wide" }, patternName(pattern)),
        h("code", { class: "wide" }, fingerprint.slice(0, 8)),
      ),
      h(
        "span",
        { class: "tools" },
        h("button", {
          type: "button",
          id: "shortcuts",
          "aria-haspopup": "dialog",
          "aria-label": "Keyboard shortcuts",
          title: "Keyboard shortcuts (?)",
          onclick: () => openShortcuts(),
        }, h("kbd", {}, "?"), h("span", { class: "wide" }, " Shortcuts")),
        themeButton(this),
        saved ? h("span", { class: "stamp" }, "saved page") : h("button", {
          type: "button",
          id: "save",
          title: "Save this view and its data as one HTML file",
          onclick: () => this.save(),
        }, "Save", h("span", { class: "wide" }, " as page")),
      ),
    );
    put(
      byId("views"),
      Object.entries(VIEWS).map(([key, view], n) =>
        h("a", {
          href: this.address({ ...this.state, view: key, sel: undefined }),
          "data-key": n + 1,
          "aria-keyshortcuts": n + 1,
          "aria-current": key === this.state.view ? "page" : undefined,
          onclick: (event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey) return;
            event.preventDefault();
            this.go({ view: key, sel: undefined });
          },
        }, view.title)
      ),
    );
    byId("views").querySelector("[aria-current]")?.scrollIntoView({
      block: "nearest",
      inline: "nearest",
    });
  }

  // ---------------------------------------------------------------- keys, saving

  key(event) {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.ctrlKey ||
      event.metaKey || event.altKey;
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") this.panel.close(true);
    if (typing) return;
    const names = Object.keys(VIEWS);
    const nth = Number(event.key) - 1;
    if (event.key >= "1" && event.key <= "9" && names[nth]) {
      this.go({ view: names[nth], sel: undefined });
    } else if (event.key === "?") {
      openShortcuts();
    } else if (event.key === "/") {
      const first = document.querySelector("#main input, #main textarea");
      if (first) {
        event.preventDefault();
        first.focus();
      }
    } else this.current?.key?.(event);
  }

  async save() {
    await this.attempt(async () => {
      const title = `${VIEWS[this.state.view].title} · ${this.tokenizer.name}`;
      const page = await savePage({ ...this.state, text: this.state.text }, title, async () => {
        await ask("start");
        await this.show();
        await this.panel.ready;
        await this.current.prefetch?.(); // details that a reader may open later
      });
      const link = h("a", {
        href: URL.createObjectURL(new Blob([page], { type: "text/html" })),
        download: `byteweld-${this.state.view}.html`,
      });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      this.announce("Page saved.");
    });
  }
}

export const app = new App();
app.open().catch((error) => {
  app.showError(error instanceof ApiError ? error.message : `the page failed: ${error.message}`);
  if (!(error instanceof ApiError)) throw error;
});
