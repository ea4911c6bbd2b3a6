// Why: one pre-token from bytes to tokens, merge by merge, and what longest match would give.

import { ask, saved } from "./api.js";
import { amount, debounced, h, number, put } from "./dom.js";
import {
  fromHex,
  glyphs,
  spoken,
  tint,
  tokenButton,
  tokenLabel,
  tokenMap,
  visible,
} from "./glyphs.js";
import { Player, slide } from "./player.js";
import { drawTree } from "./tree.js";

const MORE_ROWS = 6;

export const view = { title: "Why", open: (root, app) => new Why(root, app) };

class Why {
  constructor(root, app) {
    this.app = app;
    this.input = h("input", {
      id: "word",
      class: "word",
      type: "text",
      spellcheck: "false",
      autocomplete: "off",
      "aria-label": "Word",
      readonly: Boolean(saved),
      oninput: debounced(120, () => {
        app.go({ word: this.input.value || undefined, at: undefined, step: undefined }, {
          redraw: false,
        });
        this.explain();
      }),
    });
    this.sentence = h("div", {
      class: "sentence",
      role: "group",
      "aria-label": "Words of the text",
    });
    this.body = h("div", { class: "why-body" });
    put(
      root,
      h(
        "p",
        { class: "intro" },
        "Encoding replays training: of all pairs that can merge, the one learned first merges ",
        "first, until no pair can.",
      ),
      h(
        "div",
        { class: "why-top" },
        h(
          "label",
          { class: "field wide" },
          h("span", {}, "A word, including the space before it"),
          this.input,
        ),
      ),
      this.sentence,
      this.body,
    );
    this.ready = this.explain();
  }

  // What to explain: an offset in the text, a word typed here, or a surprising word.
  question() {
    const { state } = this.app;
    if (state.at === undefined && state.word === undefined && state.text) state.at = 0;
    const tokenizer = state.tok ?? 0;
    if (state.at !== undefined) {
      return { tokenizer, text: this.app.text, at: state.at, special: state.special !== "no" };
    }
    return { tokenizer, text: state.word ?? "", at: 0, special: state.special !== "no" };
  }

  async explain() {
    await this.app.attempt(async () => {
      const question = this.question();
      const answer = await ask("why", question);
      if (!this.body.isConnected) return; // another view has been opened
      this.app.clearError();
      const word = fromHex(answer.word);
      if (document.activeElement !== this.input) this.input.value = new TextDecoder().decode(word);
      this.drawSentence(answer);
      this.draw(answer, word);
    });
  }

  // The surrounding words of the text; each links to its explanation.
  drawSentence(answer) {
    if (this.app.state.at === undefined) {
      put(this.sentence);
      return;
    }
    put(
      this.sentence,
      answer.around.map(([at, hex]) => {
        const bytes = fromHex(hex);
        return [
          h("button", {
            type: "button",
            class: "of-text",
            "aria-current": at === answer.start ? "true" : undefined,
            "aria-label": `why ${spoken(bytes)}`,
            onclick: () => this.choose(at),
          }, glyphs(bytes)),
          bytes.includes(10) ? h("br") : document.createElement("wbr"),
        ];
      }),
    );
  }

  async choose(at) {
    this.app.go({ at, word: undefined, step: undefined }, { redraw: false });
    await this.explain();
    this.sentence.querySelector("[aria-current]")?.focus();
  }

  draw(answer, word) {
    const pretoken = answer.pretokens[0];
    if (!pretoken) {
      put(this.body, h("p", { class: "note" }, "Empty text has no tokens. Type a word."));
      return;
    }
    this.tokens = tokenMap(answer.tokens);
    this.steps = pretoken.steps;
    if (!this.steps.length) {
      put(
        this.body,
        h(
          "p",
          { class: "note" },
          "This is a special token: it is recognized before the text is split, and never merged.",
        ),
        this.panelTile(pretoken.ids[0]),
      );
      return;
    }
    this.parts = partKeys(this.steps);
    this.row = h("div", { class: "parts", role: "img" });
    this.explanation = h("p", { class: "step-text" });
    this.table = h("div", { class: "ranks" });
    this.player?.stop();
    this.player = new Player(
      this.steps.length - 1,
      this.app.state.step ??
        (this.app.state.word || this.app.state.at !== undefined ? this.steps.length - 1 : 0),
      (step) => this.show(step),
      "merge",
    );
    const box = h("div", { class: "tree-box" });
    const tree = { nodes: pretoken.tree.nodes, roots: pretoken.tree.roots };
    put(
      this.body,
      this.verdict(pretoken, word),
      h(
        "section",
        { class: "card", "aria-label": "Merges" },
        this.row,
        this.player.element,
        this.explanation,
        this.table,
      ),
      h(
        "div",
        { class: "two" },
        h(
          "section",
          { class: "card" },
          h("h2", {}, "The merge tree"),
          h(
            "p",
            { class: "hint" },
            "The number above each box is the rank of its merge. Drag to pan; + and − zoom, 0 fits.",
          ),
          box,
        ),
        this.greedy(pretoken),
      ),
    );
    requestAnimationFrame(() => drawTree(box, tree, this.tokens, `Merge tree of ${visible(word)}`));
  }

  panelTile(id) {
    return tokenButton(id, this.tokens.get(id), () => this.app.panel.show(id));
  }

  verdict(pretoken, word) {
    const merges = this.steps.length - 1;
    return h(
      "p",
      { class: "lead" },
      h("span", { class: "tile plain" }, glyphs(word)),
      ` is ${amount(word.length, "byte")}. `,
      pretoken.looked_up !== null && pretoken.looked_up !== undefined
        ? `This tokenizer looks up whole pre-tokens before merging, and this one is a token${
          same(pretoken.ids, pretoken.merged_ids)
            ? ". Merging gives the same"
            : "; merging would give the parts below instead"
        }: `
        : `${amount(merges, "merge")} later it is ${amount(pretoken.ids.length, "token")}: `,
      pretoken.ids.map((id) => this.panelTile(id)),
    );
  }

  // ---------------------------------------------------------------- a step

  show(step) {
    const { parts, pairs, total_pairs: total } = this.steps[step];
    const chosen = this.steps[step].chosen === null ? null : pairs[0];
    slide(this.row, (child) => child.dataset.key, () => {
      put(
        this.row,
        parts.map((id, index) =>
          h(
            "span",
            {
              class: `part ${tint(id)}${
                chosen && (index === chosen.at || index === chosen.at + 1) ? " next" : ""
              }${chosen && index === chosen.at ? " first" : ""}`,
              "data-key": this.parts[step][index],
            },
            h("span", {}, glyphs(this.tokens.get(id))),
            h("small", {}, id),
          )
        ),
      );
    });
    this.row.setAttribute(
      "aria-label",
      `Parts after ${amount(step, "merge")}: ${
        parts.map((id) => spoken(this.tokens.get(id))).join(", ")
      }`,
    );
    put(
      this.explanation,
      chosen
        ? [
          h("b", {}, `Of ${amount(total, "pair")} that can merge, `),
          "rank ",
          h("b", {}, number(chosen.rank)),
          " is the lowest: ",
          this.label(chosen.left),
          " + ",
          this.label(chosen.right),
          " → ",
          this.label(chosen.new),
        ]
        : h("b", {}, "No more pairs can merge. These are the tokens."),
    );
    put(
      this.table,
      pairs.length
        ? h(
          "table",
          {},
          h("caption", { class: "visually-hidden" }, "Pairs that can merge at this step"),
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              h("th", {}, "pair"),
              h("th", {}, "becomes"),
              h("th", { class: "n" }, "rank"),
              h("td", {}),
            ),
          ),
          h(
            "tbody",
            {},
            pairs.slice(0, MORE_ROWS).map((pair, index) =>
              h(
                "tr",
                { class: index ? "" : "winner" },
                h("td", {}, this.label(pair.left), " ", this.label(pair.right)),
                h("td", {}, this.label(pair.new)),
                h("td", { class: "n" }, number(pair.rank)),
                h("td", {}, index ? "" : "← lowest: merges next"),
              )
            ),
          ),
        )
        : null,
      total > MORE_ROWS
        ? h("p", { class: "hint" }, `and ${amount(total - MORE_ROWS, "more pair")}`)
        : null,
    );
    if (step !== (this.app.state.step ?? -1)) this.app.go({ step }, { redraw: false });
  }

  label(id) {
    return tokenLabel(id, this.tokens.get(id));
  }

  greedy(pretoken) {
    const line = (ids) =>
      h(
        "p",
        { class: "tiles" },
        ids.map((id) => this.panelTile(id)),
        h("span", { class: "hint" }, amount(ids.length, "token")),
      );
    const differs = pretoken.greedy_differs_at;
    const first = pretoken.greedy_ids[0];
    return h(
      "section",
      { class: "card greedy" },
      h("h2", {}, "What about greedy longest match?"),
      h(
        "dl",
        {},
        h("dt", {}, "BPE, lowest rank first"),
        h("dd", {}, line(pretoken.ids)),
        h("dt", {}, "longest token from the left"),
        h("dd", {}, line(pretoken.greedy_ids)),
      ),
      differs === null || differs === undefined
        ? h(
          "p",
          {},
          "Here, both agree. They can differ: BPE never asks which token is longest, only which merge was learned first.",
        )
        : h(
          "p",
          { class: "different" },
          h("b", {}, `They differ from byte ${differs} on. `),
          "Longest match takes ",
          this.label(first),
          differs === 0
            ? " because it is the longest token that matches. BPE never builds it: merges of lower rank have already joined those bytes to other neighbors."
            : " first and continues from there; BPE has already merged other neighbors.",
        ),
    );
  }

  key(event) {
    this.player?.key(event);
  }

  update() {
    return this.explain();
  }

  close() {
    this.player?.stop();
  }
}

const same = (ids, others) =>
  ids.length === others.length && ids.every((id, index) => id === others[index]);

// A key for each part of each step; a part that stays has the same key, so that it can slide.
function partKeys(steps) {
  let next = 0;
  let keys = steps[0].parts.map(() => next++);
  return steps.map((step) => {
    const now = keys;
    if (step.chosen !== null) {
      keys = [...keys.slice(0, step.chosen), next++, ...keys.slice(step.chosen + 2)];
    }
    return now;
  });
}
