// Training: merges being learned on a corpus, and the merge log of the open tokenizer.

import { ask, saved } from "./api.js";
import {
  allowsMotion,
  amount,
  capital,
  debounced,
  fact,
  field,
  h,
  number,
  percent,
  put,
  rate,
  select,
} from "./dom.js";
import { bar, curve } from "./chart.js";
import { glyphsIn, sharing } from "./characters.js";
import { fileName, spoken, tile, tint, tokenLabel, tokenMap } from "./glyphs.js";
import { Log } from "./log.js";
import { Player } from "./player.js";
import { fillRow, pairMarks } from "./row.js";

const PAIR_ROWS = 8;
const MAX_MERGES = 500;

export const view = { title: "Training", open: (root, app) => new Training(root, app) };

class Training {
  constructor(root, app) {
    this.app = app;
    const { corpora, given_corpus: given } = app.start;
    this.given = given;
    const first = corpora[0];
    this.corpus = h("textarea", {
      id: "corpus",
      class: "editor",
      rows: 5,
      spellcheck: "false",
      readonly: Boolean(saved),
      value: app.state.corpus ?? first.text,
      oninput: debounced(300, () =>
        this.train({ corpus: this.corpus.value, source: undefined, step: undefined })),
    });
    this.merges = h("input", {
      type: "number",
      min: 1,
      max: MAX_MERGES,
      value: app.state.merges ?? first.merges,
      onchange: () => this.train({ merges: this.merges.value }),
    });
    this.recipe = select(
      "Recipe",
      app.start.recipes,
      app.state.recipe ?? first.recipe,
      (recipe) => this.train({ recipe, step: undefined }),
    );
    const intro = h(
      "p",
      { class: "intro" },
      "Find the pair of neighbors that occurs most often, merge it into one token everywhere, ",
      "and repeat. That is all there is to training.",
    );
    this.note = h("p", { class: "note" });
    this.body = h("div", { class: "training-body" });
    this.log = new Log(app);
    put(
      root,
      intro,
      saved ? null : h(
        "div",
        { class: "examples", role: "group", "aria-label": "Corpora" },
        h("span", {}, "Train on"),
        corpora.map((corpus) =>
          h("button", { type: "button", onclick: () => this.choose(corpus) }, corpus.name)
        ),
        given === null ? null : h("button", {
          type: "button",
          id: "given-corpus",
          onclick: () => this.train({ source: "given", step: undefined }),
        }, fileName(given)),
      ),
      h(
        "details",
        { class: "settings", open: false },
        h("summary", {}, "Corpus and recipe"),
        field("One document per line; merges never cross documents", this.corpus),
        h("div", { class: "bar" }, this.recipe, field("Merges", this.merges)),
      ),
      this.note,
      this.body,
      this.log.element,
    );
    this.ready = Promise.all([this.learn(), this.log.show(0)]);
  }

  choose(corpus) {
    this.corpus.value = corpus.text;
    this.merges.value = corpus.merges;
    this.recipe.querySelector("select").value = corpus.recipe;
    this.train({
      corpus: corpus.text,
      source: undefined,
      merges: corpus.merges,
      recipe: corpus.recipe,
      step: undefined,
    });
  }

  train(changes) {
    this.app.go(changes, { redraw: false });
    return this.learn();
  }

  async learn() {
    await this.app.attempt(async () => {
      const corpus = this.corpus.value;
      const merges = Math.max(1, Math.min(MAX_MERGES, Math.round(Number(this.merges.value)) || 1));
      const isGiven = this.given !== null && this.app.state.source === "given";
      const name = isGiven ? fileName(this.given) : null;
      if (isGiven) this.note.textContent = `Counting ${name}…`;
      const answer = await ask("training", {
        ...(isGiven ? { source: "given" } : { corpus }),
        merges,
        recipe: this.recipe.querySelector("select").value,
      });
      if (!this.body.isConnected) return; // another view has been opened
      this.app.clearError();
      this.note.textContent = isGiven
        ? `${capital(amount(answer.total_bytes, "byte"))} of ${name}`
        : this.app.start.corpora.find((known) => known.text === corpus)?.note ?? "";
      this.draw(answer);
    });
  }

  // ---------------------------------------------------------------- steps

  draw(answer) {
    this.answer = answer;
    this.tokens = tokenMap(answer.tokens);
    this.pairs = h("div", { class: "pairs" });
    this.words = h("ol", { class: "corpus" });
    this.learned = h("p", { class: "tiles learned" });
    this.numbers = h("p", { class: "counts" });
    this.explanation = h("p", { class: "step-text" });
    this.chart = h("div", {});
    this.player?.stop();
    const { steps } = answer;
    this.player = new Player(
      steps.length,
      this.app.state.step ?? 0,
      (step, before) => this.show(step, before),
      "merge",
    );
    put(
      this.body,
      this.numbers,
      h(
        "section",
        { class: "card" },
        this.player.element,
        this.explanation,
        h(
          "div",
          { class: "two" },
          h("div", {}, h("h2", {}, "Pairs by count"), this.pairs),
          h(
            "div",
            {},
            h("h2", {}, `The corpus: ${amount(answer.total_pretokens, "distinct pre-token")}`),
            this.words,
          ),
        ),
      ),
      h(
        "div",
        { class: "two" },
        h(
          "section",
          { class: "card" },
          h("h2", {}, "The vocabulary grows"),
          h("p", { class: "hint" }, "In the order learned; select one to jump to its merge."),
          this.learned,
        ),
        h(
          "section",
          { class: "card" },
          h("h2", {}, "The corpus shrinks: more bytes per token"),
          this.chart,
        ),
      ),
    );
  }

  show(step, before) {
    const { answer } = this;
    const next = answer.steps[step];
    const done = answer.steps[step - 1];
    this.drawNumbers(step);
    this.drawPairs(next);
    this.drawCorpus(
      done ? done.corpus : answer.corpus,
      next,
      done && step === before + 1 ? done.merge.new : null,
    );
    this.drawLearned(step);
    const points = answer.tokens_after.map((
      tokens,
      n,
    ) => [n, tokens ? answer.total_bytes / tokens : 0]);
    if (points.length > 1) {
      put(
        this.chart,
        curve(points, {
          label: "Bytes per token of the corpus after each merge",
          xUnit: "merges",
          yUnit: "bytes per token",
          at: points[step],
          onpick: (n) => this.player.go(n),
        }),
      );
    }
    if (next) {
      const { merge } = next;
      put(
        this.explanation,
        h("b", {}, "Next: "),
        this.label(merge.left),
        " + ",
        this.label(merge.right),
        " → ",
        this.label(merge.new),
        ` occurs ${amount(merge.pair_count, "time")}. `,
        next.total_tied
          ? h(
            "span",
            { class: "tie" },
            `A tie with ${amount(next.total_tied, "other pair")}. ${capital(next.why)}.`,
          )
          : "No other pair occurs as often.",
      );
    } else {put(
        this.explanation,
        h("b", {}, `Stopped after ${amount(answer.steps.length, "merge")}: `),
        {
          "size": "the vocabulary has the requested size.",
          "no pairs": "every pre-token is a single token.",
          "min frequency": `the best pair occurs fewer than ${
            amount(answer.min_frequency, "time")
          }.`,
        }[answer.stopped],
      );}
    if (step !== (this.app.state.step ?? 0)) {
      this.app.go({ step: step || undefined }, { redraw: false });
    }
  }

  drawNumbers(step) {
    const { tokens_after: after, total_bytes: size, first_size: first } = this.answer;
    put(
      this.numbers,
      h("b", { id: "corpus-tokens" }, number(after[step])),
      " tokens in the corpus",
      h(
        "span",
        {},
        step
          ? ` — ${percent(1 - after[step] / after[0])} fewer than its ${number(size)} bytes`
          : " — one for each byte",
      ),
      h(
        "span",
        { class: "more" },
        fact(rate(after[step] ? size / after[step] : null), "bytes per token"),
        fact(number(first + step), `in the vocabulary, ${number(step)} learned`),
      ),
    );
  }

  drawPairs(next) {
    if (!next) {
      put(this.pairs, h("p", { class: "hint" }, "No pairs left."));
      return;
    }
    const best = next.pairs[0].count;
    put(
      this.pairs,
      h(
        "table",
        {},
        h("caption", { class: "visually-hidden" }, "Pair counts before this merge"),
        h(
          "tbody",
          {},
          next.pairs.slice(0, PAIR_ROWS).map((row, index) =>
            h(
              "tr",
              { class: index ? "" : "winner" },
              h("td", {}, this.label(row.left), " ", this.label(row.right)),
              h("td", { class: "bar-cell" }, bar(row.count / best)),
              h("td", { class: "n" }, number(row.count)),
              h("td", {}, index ? (row.count === best ? "tie" : "") : "← wins"),
            )
          ),
        ),
      ),
      next.total_pairs > PAIR_ROWS
        ? h("p", { class: "hint" }, `and ${amount(next.total_pairs - PAIR_ROWS, "more pair")}`)
        : null,
    );
  }

  drawCorpus(rows, next, fresh) {
    put(
      this.words,
      rows.map((row) => {
        const marks = pairMarks(row.parts, next?.merge);
        const parts = fillRow(
          h("span", { class: "word-parts" }),
          row.parts.map((id) => this.tokens.get(id) ?? new Uint8Array()),
          (n, ...range) => {
            const id = row.parts[n];
            const kind = marks[n] || (id === fresh ? " fresh" : "");
            return h("span", {
              class: `part small ${tint(id)}${sharing(...range)}${kind}`,
              title: `id ${id}`,
            }, glyphsIn(...range));
          },
        );
        if (row.total_parts > row.parts.length) parts.append("…");
        return h(
          "li",
          {},
          h("span", { class: "times" }, `${number(row.count)} ×`),
          parts,
        );
      }),
      this.answer.total_pretokens > rows.length
        ? h(
          "li",
          { class: "hint" },
          `and ${number(this.answer.total_pretokens - rows.length)} more`,
        )
        : null,
    );
    if (fresh === null || !allowsMotion()) return;
    for (const part of this.words.querySelectorAll(".fresh")) {
      part.animate([{ letterSpacing: "0.5em", opacity: 0.5 }, { letterSpacing: "0", opacity: 1 }], {
        duration: 320,
        easing: "ease-out",
      });
    }
  }

  drawLearned(step) {
    put(
      this.learned,
      this.answer.merges.map((merge, n) =>
        tile(merge.new, this.tokens.get(merge.new), {
          class: n < step ? "" : "later",
          title: `merge ${n + 1}, id ${merge.new}, count ${number(merge.pair_count)}`,
          "aria-label": `merge ${n + 1}: ${spoken(this.tokens.get(merge.new))}`,
          onclick: () => this.player.go(n + 1),
        })
      ),
    );
  }

  label(id) {
    return tokenLabel(id, this.tokens.get(id) ?? new Uint8Array());
  }

  key(event) {
    this.player?.key(event);
  }

  update() {
    return this.learn();
  }

  close() {
    this.player?.stop();
  }
}
