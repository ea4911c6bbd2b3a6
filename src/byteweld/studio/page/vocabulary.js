// Vocabulary: search, sort and filter tokens; lengths, scripts and unreachable tokens.

import { ask, saved } from "./api.js";
import { bars } from "./chart.js";
import { amount, debounced, h, number, percent, put, segmented, select } from "./dom.js";
import { fromHex, spoken, tile } from "./glyphs.js";

const PAGE = 60;
const REASONS = {
  "cut": "unreachable: split by the pattern",
  "part": "only in longer text",
  "never merged": "unreachable: never produced",
  "changed": "unreachable: changed by the normalizer",
};
const PLACEHOLDERS = {
  text: "Search, such as est",
  bytes: "Bytes, such as e2 82",
  id: "Ids, such as 300-320",
  rank: "Ranks, such as 0-19",
  regex: "Regex, such as ^\\s+$",
};
const DEFAULTS = {
  by: "text",
  query: "",
  sort: "length",
  descending: "yes",
  only: "all",
  script: "",
  min: "",
  max: "",
};

export const view = { title: "Vocabulary", open: (root, app) => new Vocabulary(root, app) };

class Vocabulary {
  constructor(root, app) {
    this.app = app;
    this.rows = [];
    this.latest = 0;
    this.query = h("input", {
      id: "query",
      class: "word",
      type: "search",
      placeholder: PLACEHOLDERS[this.setting("by")],
      spellcheck: "false",
      autocomplete: "off",
      readonly: Boolean(saved),
      "aria-label": "Search",
      value: this.setting("query"),
      oninput: debounced(100, () => this.set({ query: this.query.value })),
    });
    const bound = (name, words) =>
      h(
        "label",
        { class: "field short" },
        h("span", {}, words),
        h("input", {
          type: "number",
          min: 1,
          value: this.setting(name),
          oninput: debounced(200, (event) => this.set({ [name]: event.target.value })),
        }),
      );
    this.summary = h("p", { class: "counts" });
    this.list = h("tbody", {});
    this.more = h("button", { type: "button", onclick: () => this.find(false) }, "More");
    this.lengths = h("div", {});
    this.scripts = h("div", {});
    this.quick = h("div", { class: "examples", role: "group", "aria-label": "Look at" });
    this.note = h("p", { class: "note" });
    put(
      root,
      this.quick,
      h(
        "div",
        { class: "bar search" },
        this.query,
        segmented(
          "Search by",
          [["text", "Text"], ["bytes", "Bytes"], ["id", "Id"], ["rank", "Rank"], [
            "regex",
            "Regex",
          ]],
          this.setting("by"),
          (by) => this.set({ by }),
        ),
      ),
      h(
        "div",
        { class: "bar filters" },
        select(
          "Sort",
          [["length", "length"], ["id", "id"], ["rank", "rank"], ["text", "bytes"]],
          this.setting("sort"),
          (sort) => this.set({ sort }),
        ),
        select(
          "Order",
          [["yes", "descending"], ["no", "ascending"]],
          this.setting("descending"),
          (descending) => this.set({ descending }),
        ),
        select(
          "Only",
          [
            ["all", "all tokens"],
            ["learned", "learned"],
            ["special", "special"],
            ["unreachable", "unreachable"],
            ["partial", "only in longer text"],
            ["bytes", "single bytes"],
          ],
          this.setting("only"),
          (only) => this.set({ only }),
        ),
        bound("min", "Min bytes"),
        bound("max", "Max bytes"),
      ),
      this.summary,
      this.note,
      h(
        "div",
        { class: "two list" },
        h(
          "section",
          { class: "card" },
          h(
            "table",
            { class: "vocab" },
            h("caption", { class: "visually-hidden" }, "Tokens"),
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                h("th", {}, "token"),
                h("th", { class: "n" }, "id"),
                h("th", { class: "n" }, "bytes"),
                h("th", { class: "n" }, "rank"),
                h("th", {}, "kind"),
              ),
            ),
            this.list,
          ),
          this.more,
        ),
        h(
          "div",
          {},
          h("section", { class: "card" }, h("h2", {}, "Scripts and kinds"), this.scripts),
          h("section", { class: "card" }, h("h2", {}, "Lengths in bytes"), this.lengths),
        ),
      ),
    );
    this.ready = this.open();
  }

  async open() {
    await this.find(true);
    if (this.app.state.token !== undefined) await this.select(this.app.state.token);
  }

  setting(name) {
    return this.app.state[`v_${name}`] ?? DEFAULTS[name];
  }

  set(settings) {
    const changes = {};
    for (const [name, value] of Object.entries(settings)) {
      changes[`v_${name}`] = value === DEFAULTS[name] ? undefined : value;
    }
    this.app.go(changes, { redraw: false });
    for (const [name, value] of Object.entries(settings)) {
      if (name === "query" && this.query.value !== value) this.query.value = value;
      if (name === "by") this.query.placeholder = PLACEHOLDERS[value];
    }
    return this.find(true);
  }

  question(first) {
    const size = (name, fallback) => Math.max(0, Math.round(Number(this.setting(name))) || fallback);
    return {
      tokenizer: this.app.state.tok ?? 0,
      query: this.setting("query"),
      by: this.setting("by"),
      sort: this.setting("sort"),
      descending: this.setting("descending") === "yes",
      only: this.setting("only"),
      script: this.setting("script"),
      min_bytes: size("min", 0),
      max_bytes: size("max", 2 ** 31),
      first,
      rows: PAGE,
    };
  }

  async find(fromStart) {
    const mine = ++this.latest;
    await this.app.attempt(async () => {
      const answer = await ask("vocabulary", this.question(fromStart ? 0 : this.rows.length));
      if (mine !== this.latest) return;
      this.app.clearError();
      this.rows = fromStart ? answer.rows : [...this.rows, ...answer.rows];
      if (fromStart) {
        put(
          this.list,
          answer.total ? null : h(
            "tr",
            {},
            h("td", { colspan: 5, class: "hint" }, "No tokens match. Try a shorter search or fewer filters."),
          ),
        );
      }
      this.list.append(...answer.rows.map((row) => this.row(row)));
      this.more.hidden = this.rows.length >= answer.total || Boolean(saved);
      put(
        this.more,
        `${number(Math.min(PAGE, answer.total - this.rows.length))} more of ${
          number(answer.total - this.rows.length)
        }`,
      );
      this.drawSummary(answer);
    });
  }

  row(row) {
    const bytes = fromHex(row.bytes);
    return h(
      "tr",
      { class: row.unreachable && row.unreachable !== "part" ? "odd" : "", "data-id": row.id },
      h(
        "td",
        {},
        tile(row.id, bytes, {
          class: row.special ? "special" : "",
          "aria-label": `token ${spoken(bytes)}, id ${row.id}`,
          onclick: () => this.select(row.id),
        }),
      ),
      h("td", { class: "n" }, number(row.id)),
      h("td", { class: "n" }, number(row.length)),
      h("td", { class: "n" }, row.rank === null ? "–" : number(row.rank)),
      h(
        "td",
        {},
        row.special ? "special token" : row.unreachable ? REASONS[row.unreachable] : row.script,
      ),
    );
  }

  select(id) {
    this.app.go({ token: id }, { redraw: false });
    return this.app.panel.show(id, { onclose: () => {} });
  }

  drawSummary(answer) {
    put(
      this.summary,
      h("b", { id: "found" }, number(answer.total)),
      answer.total === 1 ? " token" : " tokens",
      h(
        "span",
        {},
        answer.total === answer.all
          ? " — the whole vocabulary"
          : ` — ${percent(answer.total / answer.all)} of ${number(answer.all)}`,
      ),
    );
    this.note.textContent =
      "Whatever a corpus repeats becomes a token, however odd; the longest come first. " +
      (answer.unreachable
        ? `${amount(answer.unreachable, "token")} ${
          answer.unreachable === 1 ? "is" : "are"
        } unreachable: encoding ${
          answer.unreachable === 1 ? "its" : "their"
        } own bytes gives other tokens.`
        : "All tokens are reachable.");
    this.note.hidden = Object.keys(DEFAULTS).some((name) => this.setting(name) !== DEFAULTS[name]);
    const quick = (words, settings) =>
      h("button", { type: "button", onclick: () => this.search(settings) }, words);
    put(
      this.quick,
      saved ? null : [
        h("span", {}, "Look at"),
        quick("Longest", { sort: "length", descending: "yes" }),
        quick("Last learned", { sort: "rank", descending: "yes", only: "learned" }),
        quick("Spaces only", { by: "regex", query: "^ +$", sort: "length" }),
        quick("Words in all caps", { by: "regex", query: "^ ?[A-Z]{4,}$" }),
        quick("Partial characters", { script: "part of a character" }),
        quick(
          answer.unreachable
            ? `${amount(answer.unreachable, "unreachable token")}`
            : "No unreachable tokens",
          { only: "unreachable", sort: "id", descending: "no" },
        ),
        answer.partial
          ? quick(`${number(answer.partial)} only in longer text`, {
            only: "partial",
            sort: "id",
            descending: "no",
          })
          : null,
        answer.specials
          ? quick(amount(answer.specials, "special token"), {
            only: "special",
            sort: "id",
            descending: "no",
          })
          : null,
      ],
    );
    const chosen = this.setting("script");
    put(
      this.scripts,
      bars(
        answer.scripts.map(([name, value]) => ({
          name,
          value,
          on: name === chosen,
          onclick: saved ? undefined : () => this.set({ script: name === chosen ? "" : name }),
        })),
        { label: "Tokens by script", limit: 12 },
      ),
    );
    put(
      this.lengths,
      bars(grouped(answer.lengths).map(([name, value]) => ({ name, value })), {
        label: "Tokens by length",
        limit: 20,
      }),
    );
  }

  // Start a new search; the controls are redrawn with it.
  search(settings) {
    const changes = Object.fromEntries(
      Object.keys(DEFAULTS).map((name) => [`v_${name}`, undefined]),
    );
    for (const [name, value] of Object.entries(settings)) {
      if (value !== DEFAULTS[name]) changes[`v_${name}`] = value;
    }
    this.app.go({ ...changes, token: undefined }, { redraw: false });
    this.app.show();
  }

  close() {
    this.latest++; // ignore late answers
  }

  prefetch() {
    return this.app.panel.prefetch(this.rows.map((row) => row.id));
  }

  update(changes) {
    return "token" in changes && changes.token !== undefined
      ? this.select(changes.token)
      : this.find(true);
  }
}

// Lengths individually up to 16, then by powers of two.
function grouped(lengths) {
  const found = new Map();
  for (const [length, count] of lengths) {
    const power = length <= 16 ? 0 : 2 ** Math.floor(Math.log2(length - 1));
    const name = power ? `${power + 1}–${2 * power}` : String(length);
    found.set(name, (found.get(name) ?? 0) + count);
  }
  return [...found];
}
