// The side panel: the details of a token. All views share it.

import { ask } from "./api.js";
import { amount, h, number, put } from "./dom.js";
import {
  fromHex,
  glyphs,
  hexByte,
  spoken,
  tile,
  tint,
  tokenButton,
  tokenMap,
  visible,
} from "./glyphs.js";
import { drawTree } from "./tree.js";
import { whyAt } from "./why.js";

const MAX_PREFETCHED = 100;
const REASONS = {
  "cut": "The pattern splits its bytes before anything is merged.",
  "part": "It starts or ends inside a character, so its bytes alone become other tokens.",
  "never merged": "Other merges of its bytes come first.",
  "changed": "The normalizer changes its bytes.",
};

export class Panel {
  constructor(element, app) {
    this.element = element;
    this.app = app;
    this.context = null;
    this.ready = null;
  }

  ask(id) {
    return ask("token", { tokenizer: this.app.state.tok ?? 0, id });
  }

  // Fetch the details of some tokens, so that a saved page has them.
  async prefetch(ids) {
    for (const id of [...new Set(ids)].slice(0, MAX_PREFETCHED)) await this.ask(id);
  }

  // Show a token; `context` describes its occurrence in the text, if any.
  show(id, context = {}) {
    this.context = context;
    this.ready = this.app.attempt(async () => {
      const answer = await this.ask(id);
      if (this.context === context) this.draw(answer, context);
    });
    return this.ready;
  }

  close(byUser) {
    if (this.element.hidden) return;
    this.element.hidden = true;
    put(this.element);
    document.getElementById("stage").classList.remove("with-panel");
    const { context } = this;
    this.context = null;
    if (byUser) {
      context?.onclose?.();
      this.app.go({ sel: undefined, token: undefined }, { redraw: false });
    }
  }

  draw(answer, context) {
    const bytes = fromHex(answer.bytes);
    const tokens = tokenMap(answer.tokens);
    const link = (id) =>
      tokenButton(id, tokens.get(id) ?? new Uint8Array(), () => this.follow(id));
    const wasOpen = !this.element.hidden;
    this.element.hidden = false;
    document.getElementById("stage").classList.add("with-panel");
    put(
      this.element,
      h(
        "div",
        { class: "panel-top" },
        context.step
          ? h("button", {
            type: "button",
            "aria-label": "Previous token",
            onclick: () => context.step(-1),
          }, "←")
          : null,
        context.step
          ? h("button", {
            type: "button",
            "aria-label": "Next token",
            onclick: () => context.step(1),
          }, "→")
          : null,
        h("span", { class: "spacer" }),
        h("button", {
          type: "button",
          class: "close",
          "aria-label": "Close",
          onclick: () => this.close(true),
        }, "✕"),
      ),
      h("h2", { class: `big ${answer.special ? "special" : tint(answer.id)}` }, glyphs(bytes)),
      this.facts(answer, context),
      answer.unreachable
        ? h(
          "p",
          { class: "warning" },
          h(
            "b",
            {},
            answer.unreachable === "part" ? "Occurs only in longer text. " : "Unreachable. ",
          ),
          REASONS[answer.unreachable],
          answer.alone.length ? [" Its bytes alone become ", answer.alone.map(link)] : "",
        )
        : null,
      h("h3", {}, amount(answer.length, "byte")),
      h(
        "ol",
        { class: "byte-row" },
        Array.from(bytes.subarray(0, 48), (byte) =>
          h(
            "li",
            {},
            h("code", {}, hexByte(byte)),
            h(
              "span",
              {},
              byte > 32 && byte < 127 ? String.fromCharCode(byte) : byte === 32 ? "·" : "",
            ),
          )),
      ),
      this.tree(answer, tokens, bytes),
      this.used(answer, link),
      answer.total_inside
        ? [
          h("h3", {}, `Part of ${amount(answer.total_inside, "longer token")}`),
          h(
            "p",
            { class: "tiles" },
            answer.inside.map(link),
            more(answer.total_inside - answer.inside.length),
          ),
        ]
        : null,
      context.before || context.after
        ? [
          h("h3", {}, "Next to it in this text"),
          h(
            "p",
            { class: "tiles" },
            context.before
              ? tile(...context.before, {
                onclick: () => context.step(-1),
                "aria-label": `previous: ${spoken(context.before[1])}`,
              })
              : null,
            h("b", { class: "hint" }, "‹ this ›"),
            context.after
              ? tile(...context.after, {
                onclick: () => context.step(1),
                "aria-label": `next: ${spoken(context.after[1])}`,
              })
              : null,
          ),
        ]
        : null,
      h("h3", {}, "Next to it in the vocabulary"),
      h(
        "p",
        { class: "tiles" },
        answer.near.map((id) => (id === answer.id ? h("b", {}, link(id)) : link(id))),
      ),
    );
    if (!wasOpen) this.element.scrollTop = 0;
    this.app.announce(
      `${spoken(bytes)}, id ${answer.id}, ${amount(answer.length, "byte")}` +
        (answer.rank === null ? "" : `, rank ${answer.rank}`),
    );
  }

  facts(answer, context) {
    const count = answer.makes[0]?.[4];
    const rows = [
      ["id", number(answer.id)],
      [
        "rank",
        answer.rank === null
          ? (answer.special
            ? "none: special tokens are never merged"
            : "none: single bytes are not built by merges")
          : `${number(answer.rank)}: ${ordinal(answer.rank + 1)} merge`,
      ],
      count === null || count === undefined
        ? null
        : ["count", `${number(count)} when it was learned`],
      ["kind", answer.special ? "special token" : answer.script],
      context.part ? ["part of", context.part] : null,
      context.times
        ? ["occurs", [
          `${amount(context.times, "time")} in this text`,
          context.times > 1
            ? [
              " ",
              h("button", {
                type: "button",
                class: "again",
                onclick: () => context.next(),
              }, "next"),
            ]
            : null,
        ]]
        : null,
      context.to === undefined ? null : [
        "position",
        `bytes ${number(context.from)}–${number(context.to)}, token ${
          number(context.index + 1)
        } of ${number(context.total)}`,
      ],
    ];
    const links = h(
      "p",
      { class: "links" },
      context.from === undefined ? null : h("button", {
        type: "button",
        class: "go",
        id: "why-here",
        onclick: () => this.app.go(whyAt(context.from)),
      }, "Why this token?"),
      this.app.state.view === "vocabulary" ? null : h("button", {
        type: "button",
        class: "go",
        onclick: () => this.app.go({ view: "vocabulary", token: answer.id, sel: undefined }),
      }, "Show in vocabulary"),
    );
    return [
      h(
        "dl",
        { class: "facts" },
        rows.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
      ),
      links,
    ];
  }

  tree(answer, tokens, bytes) {
    if (!answer.tree || answer.tree.nodes.length < 3) return null;
    const box = h("div", { class: "tree-box small" });
    requestAnimationFrame(() =>
      drawTree(box, answer.tree, tokens, `Merge tree of ${visible(bytes)}`)
    );
    return [h("h3", {}, "How merges build it"), box];
  }

  used(answer, link) {
    const row = ([rank, left, right, made]) =>
      h(
        "li",
        {},
        h("span", { class: "rank" }, number(rank)),
        link(left),
        h("span", { class: "plus" }, "+"),
        link(right),
        h("span", { class: "plus" }, "→"),
        link(made),
      );
    const list = (words, rows, total) =>
      rows.length
        ? [
          h("h3", {}, words),
          h("ol", { class: "merges" }, rows.slice(0, 8).map(row)),
          more(total - Math.min(8, rows.length)),
        ]
        : null;
    return [
      list(
        answer.makes.length > 1 ? `Built by ${amount(answer.makes.length, "merge")}` : "Built by",
        answer.makes,
        answer.makes.length,
      ),
      list(
        `Left part of ${amount(answer.total_left, "merge")}`,
        answer.as_left,
        answer.total_left,
      ),
      list(
        `Right part of ${amount(answer.total_right, "merge")}`,
        answer.as_right,
        answer.total_right,
      ),
    ];
  }

  follow(id) {
    if (this.app.state.view === "vocabulary") this.app.go({ token: id }, { redraw: false });
    this.show(id, this.app.state.view === "vocabulary" ? { onclose: this.context?.onclose } : {});
  }
}

const more = (
  count,
) => (count > 0 ? h("span", { class: "hint" }, ` and ${number(count)} more`) : null);

function ordinal(value) {
  const tens = value % 100;
  const ending = tens > 10 && tens < 14
    ? "th"
    : ({ 1: "st", 2: "nd", 3: "rd" }[value % 10] ?? "th");
  return `the ${number(value)}${ending}`;
}
