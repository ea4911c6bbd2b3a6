// The merge log of the open tokenizer: all merges, with counts and a curve if it has a report.

import { ask } from "./api.js";
import { curve } from "./chart.js";
import { amount, capital, field, h, number, put } from "./dom.js";
import { tokenButton, tokenMap } from "./glyphs.js";

const ROWS = 100;
const UNKNOWN = "This tokenizer has no training report, so there are no counts. " +
  "byteweld writes a report next to each tokenizer it trains.";
const NO_LIST = "This tokenizer merges by id and has no merge list.";

export class Log {
  constructor(app) {
    this.app = app;
    this.element = h("section", { class: "card log", "aria-label": "The tokenizer's training" });
  }

  // Show the merges from rank `first` on.
  async show(first) {
    const tokenizer = this.app.state.tok ?? 0;
    const answer = await ask("log", { tokenizer, first, rows: ROWS });
    this.tokens = tokenMap(answer.tokens);
    put(
      this.element,
      h("h2", {}, `A full-size tokenizer: ${answer.name}`),
      h(
        "div",
        { class: "log-two" },
        h("div", {}, this.summary(answer), this.curve(answer)),
        answer.total ? h("div", {}, this.pages(answer), this.table(answer)) : null,
      ),
    );
  }

  go(first, total) {
    return this.app.attempt(() => this.show(Math.max(0, Math.min(total - 1, first))));
  }

  summary({ training, total }) {
    if (!training) return h("p", { class: "hint" }, total ? UNKNOWN : NO_LIST);
    const distinct = number(training.distinct_pretokens);
    return h(
      "p",
      {},
      `Recipe ${training.recipe}. ${capital(training.summary)}. The corpus had `,
      h("b", {}, amount(training.total_bytes, "byte")),
      ` in ${amount(training.total_pretokens, "pre-token")}, ${distinct} of them distinct.`,
    );
  }

  curve({ training, total }) {
    if (!training || training.curve.length < 2) return null;
    const base = training.base_size;
    return curve(training.curve.map(([merges, , perToken]) => [base + merges, perToken]), {
      label: "Bytes per token against the size of the vocabulary",
      xUnit: "tokens in the vocabulary",
      yUnit: "bytes per token of its training corpus",
      onpick: (size) => this.go(size - base, total),
    });
  }

  pages({ first, total }) {
    const page = (words, to, isEnabled) =>
      h(
        "button",
        { type: "button", disabled: !isEnabled, onclick: () => this.go(to, total) },
        words,
      );
    const jump = h("input", {
      type: "number",
      min: 0,
      max: total - 1,
      value: first,
      "aria-label": "First rank shown",
      onchange: () => this.go(Math.round(Number(jump.value)) || 0, total),
    });
    return h(
      "div",
      { class: "bar" },
      page("← Earlier", first - ROWS, first > 0),
      page("Later →", first + ROWS, first + ROWS < total),
      field("From rank", jump),
      h("span", { class: "hint" }, `of ${amount(total, "merge")}`),
    );
  }

  table({ rows }) {
    const names = ["rank", "pair", "becomes", "id", "count"];
    const head = names.map((name) =>
      h("th", { class: name === "pair" || name === "becomes" ? "" : "n" }, name)
    );
    const row = ([rank, left, right, made, count]) =>
      h(
        "tr",
        {},
        h("td", { class: "n" }, number(rank)),
        h("td", {}, this.link(left), " ", this.link(right)),
        h("td", {}, this.link(made)),
        h("td", { class: "n" }, number(made)),
        h("td", { class: "n" }, count === null ? "–" : number(count)),
      );
    return h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Merges" },
      h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows.map(row))),
    );
  }

  link(id) {
    return tokenButton(id, this.tokens.get(id), () => this.app.panel.show(id));
  }
}
