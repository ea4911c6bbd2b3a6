// Why: each pre-token of a text from bytes to tokens, merge by merge, and what longest match gives.

import { ask, saved, unpacked } from "./api.js";
import { glyphsIn, joins, sharing, spokenIn } from "./characters.js";
import { tokenLine } from "./direction.js";
import { amount, debounced, h, number, put } from "./dom.js";
import {
  fromHex,
  glyphs,
  tint,
  tokenButton,
  tokenLabel,
  tokenMap,
  utf8,
  visible,
} from "./glyphs.js";
import { blocksOf, LazyBlocks } from "./lazy.js";
import { Player, slide } from "./player.js";
import { fillRow, tileRow } from "./row.js";
import { drawTree } from "./tree.js";

const MORE_ROWS = 6;
const BLOCK_PRETOKENS = 300;
const LINE_PIXELS = 30;
const MAX_PREFETCHED = 40;
const MAX_PRETOKEN_BYTES = 200; // to step through; the server has the same limit
const MAX_SHOWN_BYTES = 1000; // of a pre-token in the list; without a pattern, it is the whole text
const EXAMPLES = [" tokenizer", " unbelievable", "untokenizes 1234567 words", "naïve 🙂"];

// Changes of the state: nothing is chosen here, so that the shared text is explained; and the
// pre-token at a byte of the shared text is chosen.
export const NO_WORD = { word: undefined, at: undefined, why_step: undefined };
export const whyAt = (at) => ({ ...NO_WORD, view: "why", at });

export const view = { title: "Why", open: (root, app) => new Why(root, app) };

class Why {
  constructor(root, app) {
    this.app = app;
    this.latest = 0;
    this.input = h("textarea", {
      id: "word",
      class: "editor",
      rows: 2,
      spellcheck: "false",
      autocomplete: "off",
      dir: "auto",
      placeholder: "Type a word or a sentence",
      readonly: Boolean(saved),
      oninput: debounced(120, () => {
        app.go({ ...NO_WORD, word: this.input.value }, { redraw: false });
        this.explain();
      }),
    });
    this.count = h("p", { class: "hint", id: "pretoken-count" });
    this.list = h("div", {
      class: "sentence",
      role: "group",
      "aria-label": "Pre-tokens",
      onkeydown: (event) => this.moved(event),
      onclick: (event) => this.clicked(event),
    });
    this.blocks = new LazyBlocks(this.list, (index, element) => this.fill(index, element), true);
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
          h("span", {}, "Text to explain; a space belongs to the word after it"),
          this.input,
        ),
      ),
      h("div", { class: "choosing" }, this.count, this.list),
      this.body,
    );
    this.ready = this.explain();
  }

  // What to explain: the text typed here, the shared text, or (undefined) a surprising word.
  get text() {
    const { word, at, text } = this.app.state;
    return word ?? (at === undefined ? text : this.app.text);
  }

  get asking() {
    return {
      tokenizer: this.app.state.tok ?? 0,
      special_text: this.app.state.special_text ?? "special",
    };
  }

  async explain() {
    const mine = ++this.latest;
    await this.app.attempt(async () => {
      const { text } = this;
      const question = text === undefined ? this.asking : { ...this.asking, text };
      const listed = await ask("pretokens", question);
      if (mine !== this.latest) return; // another view has been opened, or there is newer text
      this.app.clearError();
      this.take(text ?? listed.text, listed);
      await this.explainChosen();
    });
  }

  take(text, { bytes, lengths, special }) {
    this.given = text;
    if (document.activeElement !== this.input) this.input.value = text;
    this.bytes = bytes === null ? utf8.encode(text) : fromHex(bytes);
    this.ends = unpacked(lengths);
    for (let n = 1; n < this.ends.length; n++) this.ends[n] += this.ends[n - 1];
    this.specialIndices = new Set(special);
    this.chosen = this.indexAt(this.app.state.at ?? 0);
    this.drawList();
  }

  start(index) {
    return index ? this.ends[index - 1] : 0;
  }

  // The pre-token at a byte, or the last one.
  indexAt(at) {
    let low = 0, high = Math.max(0, this.ends.length - 1);
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle] > at) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  // ---------------------------------------------------------------- the pre-tokens

  drawList() {
    const { length } = this.ends;
    put(
      this.count,
      length > 1
        ? `${amount(length, "pre-token")}: the pattern splits the text before anything merges. ` +
          "Choose one:"
        : "",
    );
    this.firsts = blocksOf(this.bytes, this.ends, BLOCK_PRETOKENS);
    const perLine = Math.max(20, Math.floor(this.list.clientWidth / 9));
    this.blocks.show(
      this.firsts.slice(1).map((end, block) =>
        LINE_PIXELS *
        Math.ceil((this.start(end) - this.start(this.firsts[block])) / perLine)
      ),
    );
    this.reveal();
  }

  fill(block, element) {
    const end = this.firsts[block + 1];
    for (let first = this.firsts[block], index = first; index < end; index++) {
      const bytes = this.bytes.subarray(this.start(index), this.ends[index]);
      if (!bytes.includes(10) && index + 1 < end) continue;
      const from = first; // each line has its own
      const make = (n, ...range) => [
        document.createElement("wbr"),
        this.pretoken(from + n, range),
      ];
      const ends = this.ends.subarray(from, index + 1);
      const { direction, nodes } = tokenLine(this.bytes, this.start(from), ends, make);
      element.append(h("div", { dir: direction }, nodes));
      first = index + 1;
    }
  }

  pretoken(index, [bytes, start, end]) {
    const isChosen = index === this.chosen;
    const range = [bytes, start, shownEnd(bytes, start, end)];
    const rest = end - range[2];
    const more = rest ? ` … ${amount(rest, "more byte")}` : null;
    return h("button", {
      type: "button",
      class: `of-text${this.specialIndices.has(index) ? " special" : ""}`,
      id: `p${index}`,
      tabindex: isChosen ? 0 : -1, // one stop for the Tab key; arrow keys move within
      "aria-current": isChosen ? "true" : undefined,
      "aria-label": `why ${spokenIn(...range)}${more ?? ""}`,
    }, glyphsIn(...range), more && h("small", {}, more));
  }

  clicked(event) {
    const button = event.target.closest?.(".of-text");
    if (button) this.choose(Number(button.id.slice(1)));
  }

  moved(event) {
    const last = this.ends.length - 1;
    const isRtl = event.target.closest("[dir]").dir === "rtl";
    const to = {
      [isRtl ? "ArrowLeft" : "ArrowRight"]: this.chosen + 1,
      [isRtl ? "ArrowRight" : "ArrowLeft"]: this.chosen - 1,
      Home: 0,
      End: last,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.choose(Math.max(0, Math.min(last, to)));
  }

  async choose(index) {
    this.mark(false);
    this.chosen = index;
    const word = this.text === undefined ? { word: this.given } : {};
    this.app.go({ ...word, at: this.start(index), why_step: undefined }, { redraw: false });
    this.reveal();
    this.mark(true)?.focus({ preventScroll: true });
    await this.app.attempt(async () => {
      await this.explainChosen();
      this.app.clearError();
    });
  }

  mark(isChosen) {
    const button = document.getElementById(`p${this.chosen}`);
    if (!button) return null;
    button.tabIndex = isChosen ? 0 : -1;
    if (isChosen) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
    return button;
  }

  // Scroll the list, but not the page.
  reveal() {
    this.blocks.ensure(this.firsts.findIndex((first) => first > this.chosen) - 1);
    const button = document.getElementById(`p${this.chosen}`);
    if (!button) return;
    const box = this.list.getBoundingClientRect(), at = button.getBoundingClientRect();
    if (at.bottom > box.bottom) this.list.scrollTop += at.bottom - box.bottom + 4;
    else if (at.top < box.top) this.list.scrollTop += at.top - box.top - 4;
  }

  // ---------------------------------------------------------------- one of them

  question(index) {
    return { ...this.asking, text: this.given, at: this.start(index) };
  }

  async explainChosen() {
    this.player?.stop();
    if (!this.ends.length) {
      this.drawNothing();
      return;
    }
    const mine = ++this.latest;
    try {
      const answer = await ask("why", this.question(this.chosen));
      if (mine === this.latest) this.draw(answer, fromHex(answer.word));
    } catch (error) {
      if (mine === this.latest) put(this.body);
      throw error;
    }
  }

  drawNothing() {
    put(
      this.body,
      h(
        "div",
        { class: "card nothing" },
        h("h2", {}, "Nothing to explain yet"),
        h(
          "p",
          {},
          "Type a word above, and every merge that turns its bytes into tokens appears here.",
        ),
        saved ? null : h(
          "div",
          { class: "examples", role: "group", "aria-label": "Examples" },
          h("span", {}, "Or try"),
          EXAMPLES.map((word) =>
            h("button", {
              type: "button",
              onclick: () => {
                this.app.go({ ...NO_WORD, word }, { redraw: false });
                this.explain();
              },
            }, visible(utf8.encode(word)))
          ),
        ),
      ),
    );
  }

  draw(answer, word) {
    const pretoken = answer.pretokens[0];
    this.tokens = tokenMap(answer.tokens);
    this.steps = pretoken.steps;
    if (!this.steps.length) {
      put(
        this.body,
        h(
          "p",
          { class: "note" },
          "This is a special or added token: it is recognized before the text is split, and never ",
          "merged.",
        ),
        this.panelTile(pretoken.ids[0]),
      );
      return;
    }
    this.parts = partKeys(this.steps);
    this.row = h("div", { class: "parts", role: "img" });
    this.explanation = h("p", { class: "step-text" });
    this.table = h("div", { class: "ranks" });
    this.player = new Player(
      this.steps.length - 1,
      this.app.state.why_step ?? 0,
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
            "The number above each box is the rank of its merge. Scroll, drag or use the arrow ",
            "keys to move; + and − zoom.",
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
      this.tiles(pretoken.ids),
    );
  }

  tiles(ids) {
    return tileRow(ids, this.tokens, (id) => this.app.panel.show(id));
  }

  // ---------------------------------------------------------------- a step

  show(step) {
    const { parts, pairs, total_pairs: total } = this.steps[step];
    const chosen = this.steps[step].chosen === null ? null : pairs[0];
    slide(this.row, () => {
      const words = [];
      fillRow(this.row, parts.map((id) => this.tokens.get(id)), (index, ...range) => {
        words.push(spokenIn(...range));
        return h(
          "span",
          {
            class: `part ${tint(parts[index])}${sharing(...range)}${
              chosen && (index === chosen.at || index === chosen.at + 1) ? " next" : ""
            }${chosen && index === chosen.at ? " first" : ""}`,
            "data-key": this.parts[step][index],
          },
          h("span", { class: "text" }, glyphsIn(...range)),
          h("small", {}, parts[index]),
        );
      });
      this.row.setAttribute(
        "aria-label",
        `Parts after ${amount(step, "merge")}: ${words.join(", ")}`,
      );
    });
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
    if (step !== (this.app.state.why_step ?? 0)) {
      this.app.go({ why_step: step || undefined }, { redraw: false });
    }
  }

  label(id) {
    return tokenLabel(id, this.tokens.get(id));
  }

  greedy(pretoken) {
    const line = (ids) =>
      h(
        "p",
        { class: "tiles" },
        this.tiles(ids),
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

  // Explain the pre-tokens next to the chosen one, too, so that a saved page can show them.
  async prefetch() {
    const first = Math.max(0, this.chosen - MAX_PREFETCHED / 2);
    const last = Math.min(this.ends.length, first + MAX_PREFETCHED);
    for (let index = first; index < last; index++) {
      if (this.ends[index] - this.start(index) > MAX_PRETOKEN_BYTES) continue;
      await ask("why", this.question(index));
    }
  }

  close() {
    this.latest++; // ignore late answers
    this.player?.stop();
    this.blocks.close();
  }
}

// Where what is shown of a pre-token ends: between two characters, if it is too long.
function shownEnd(bytes, start, end) {
  if (end - start <= MAX_SHOWN_BYTES) return end;
  let last = start + MAX_SHOWN_BYTES;
  while (joins(bytes, last)) last--;
  return last;
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
