// Three ways to encode with one vocabulary: longest match by hash table, by trie, and BPE.

import { ask, saved } from "./api.js";
import { glyphsIn, sharing } from "./characters.js";
import { amount, debounced, h, put } from "./dom.js";
import { fromHex, glyphs, spoken, tokenLabel, tokenMap, utf8 } from "./glyphs.js";
import { Player } from "./player.js";
import { fillRow, tileRow } from "./row.js";
import { drawTrie } from "./trie.js";

export class Match {
  // `question` returns the fields of the request that say what was learned.
  constructor(app, question) {
    Object.assign(this, { app, question });
    this.input = h("input", {
      id: "match-text",
      class: "word",
      type: "text",
      spellcheck: "false",
      autocomplete: "off",
      readonly: Boolean(saved),
      oninput: debounced(150, () =>
        this.choose({ how_text: this.input.value || undefined, how_vocabulary: undefined })),
    });
    this.words = h("div", { class: "examples", role: "group", "aria-label": "Words" });
    this.ways = h("div", { class: "ways" });
    this.verdict = h("div", { class: "verdict" });
    this.box = h("div", { class: "tree-box" });
    this.step = h("p", { class: "step-text" });
    this.text = h("div", { class: "walk-text", role: "img" });
    this.walk = h("div", {});
    this.legend = h("p", { class: "legend" });
    this.element = h(
      "div",
      { class: "matching" },
      h(
        "p",
        {},
        "Which tokens is a text made of? Two obvious ways take the longest token that fits at ",
        "each position. Their answer can be wrong: BPE repeats the merges in the order learned.",
      ),
      h(
        "label",
        { class: "field wide" },
        h("span", {}, "Text to encode, with the vocabulary after the last merge"),
        this.input,
      ),
      this.words,
      this.ways,
      this.verdict,
      h("h3", {}, "The trie, and a walk through it"),
      this.text,
      this.walk,
      this.step,
      this.box,
      this.legend,
    );
  }

  choose(changes) {
    this.app.go({ ...changes, how_walk: undefined }, { redraw: false });
    return this.app.attempt(async () => {
      await this.encode();
      this.app.clearError();
    });
  }

  async encode() {
    const { how_text: text, how_vocabulary: vocabulary } = this.app.state;
    const { workers: _, ...learned } = this.question();
    const turn = this.turn = Symbol("turn");
    const answer = vocabulary === "abc"
      ? await ask("match", { vocabulary })
      : await ask("match", { ...learned, text: text ?? "" });
    if (!this.element.isConnected || turn !== this.turn) return;
    this.answer = answer;
    this.tokens = tokenMap(answer.tokens);
    this.bytes = utf8.encode(answer.text);
    if (document.activeElement !== this.input) this.input.value = answer.text;
    this.drawWords();
    this.drawWays();
    this.drawVerdict();
    this.drawWalk();
  }

  drawWords() {
    if (saved) return;
    const { words } = this.answer;
    put(
      this.words,
      h("span", {}, words.length ? "They differ on" : "Try"),
      words.map((hex) => {
        const bytes = fromHex(hex);
        return h("button", {
          type: "button",
          "aria-label": `encode ${spoken(bytes)}`,
          onclick: () =>
            this.choose({ how_text: new TextDecoder().decode(bytes), how_vocabulary: undefined }),
        }, glyphs(bytes));
      }),
      h("button", {
        type: "button",
        onclick: () => this.choose({ how_text: undefined, how_vocabulary: "abc" }),
      }, "abc, with only the merges b + c and a + b"),
      this.app.state.how_vocabulary
        ? h("button", {
          type: "button",
          onclick: () => this.choose({ how_text: undefined, how_vocabulary: undefined }),
        }, "Back to your vocabulary")
        : null,
    );
  }

  // ---------------------------------------------------------------- the three

  drawWays() {
    const { hash, trie, bpe, longest } = this.answer;
    put(
      this.ways,
      this.way(
        "Hash table",
        `At each position, look up the longest piece that can be a token, here up to ${
          amount(longest, "byte")
        }; then one byte less, until a token is found.`,
        hash.ids,
        [amount(hash.probes, "lookup"), `${amount(hash.hashed_bytes, "byte")} hashed`],
      ),
      this.way(
        "256-way trie",
        "At each position, follow the bytes from node to node as far as they go, and take the " +
          "last token on the way. The same answer, one byte per step.",
        trie.ids,
        [amount(trie.steps.length, "step")],
      ),
      this.way(
        "BPE",
        "Look up the rank of each pair of neighbors, merge the lowest, and look up its new " +
          "neighbors. This is the right answer.",
        bpe.ids,
        [amount(bpe.lookups, "lookup"), amount(bpe.merges, "merge")],
        true,
      ),
    );
  }

  way(name, words, ids, work, right = false) {
    return h(
      "section",
      { class: `way${right ? " right" : ""}` },
      h("h3", {}, name),
      h("p", { class: "tiles" }, tileRow(ids, this.tokens)),
      h("p", { class: "ids" }, h("code", {}, ids.length ? ids.join(" ") : "no tokens")),
      h("p", { class: "work" }, work.map((each) => h("span", {}, each))),
      h("p", { class: "hint" }, words),
    );
  }

  label(id) {
    return tokenLabel(id, this.tokens.get(id));
  }

  drawVerdict() {
    const { differs, pretokens, bpe, trie } = this.answer;
    const words = differs.slice(0, 3).map((n) =>
      h("span", { class: "tile plain" }, glyphs(fromHex(pretokens[n])))
    );
    put(
      this.verdict,
      differs.length
        ? h(
          "p",
          { class: "different" },
          h("b", {}, "Longest match is wrong here. "),
          "It splits ",
          words.map((word, n) => [n ? ", " : "", word]),
          differs.length > 3 ? ` and ${amount(differs.length - 3, "more word")}` : "",
          " in another way than BPE: it takes the longest token even if merges that were learned ",
          "earlier have joined those bytes to other neighbors.",
        )
        : h(
          "p",
          {},
          bpe.ids.length
            ? [
              `All three agree on this text: ${amount(trie.ids.length, "token")}. They do not `,
              this.answer.words.length ? "always; choose a word above." : "always: see abc.",
            ]
            : "Type some text.",
        ),
    );
  }

  // ---------------------------------------------------------------- the walk

  drawWalk() {
    const { trie } = this.answer;
    this.player?.stop();
    const walk = trie.steps;
    this.starts = startsOf(walk, this.tokens);
    this.drawing = drawTrie(this.box, trie.nodes, trie.hidden);
    this.player = new Player(
      walk.length,
      this.app.state.how_walk ?? 0,
      (step) => this.showStep(step),
      "step",
    );
    put(this.walk, this.player.element);
    put(
      this.legend,
      h("span", {}, h("i", { class: "c6" }), "a token ends here"),
      h("span", {}, h("i", { class: "inner" }), "on the way to one"),
      trie.hidden
        ? h("span", {}, `${amount(trie.hidden, "more node")} not drawn`)
        : null,
    );
  }

  showStep(step) {
    const { trie } = this.answer;
    const now = step ? trie.steps[step - 1] : null;
    const at = now ? now[0] : 0;
    const from = now ? this.starts[step - 1] : 0;
    // The node before a byte that leads nowhere is that of the step before it.
    const stays = now && now[1] === null ? trie.steps[step - 2]?.[1] ?? 0 : null;
    const node = now ? now[1] ?? stays : 0;
    this.drawing.mark(node, now?.[2] ?? null);
    const read = this.bytes.slice(at, at + 1);
    const soFar = this.bytes.slice(from, now?.[1] === null ? at : at + 1);
    put(
      this.step,
      now === null ? `The walk starts at the root. ${amount(trie.steps.length, "step")}.` : [
        now[1] === null
          ? ["No ", h("span", { class: "tile plain" }, glyphs(read)), " follows "]
          : ["Follow ", h("span", { class: "tile plain" }, glyphs(read)), " to "],
        h("span", { class: "tile plain" }, glyphs(soFar)),
        trie.nodes[node][2] !== null && now[1] !== null ? ", which is a token" : "",
        now[2] === null ? "." : [
          now[1] === null ? ": take the last token, " : "; the text ends: take ",
          this.label(now[2]),
          `, id ${now[2]}.`,
        ],
      ],
    );
    const taken = now?.[2] !== null && now ? from + this.tokens.get(now[2]).length : null;
    const bytes = Array.from(this.bytes, (byte) => Uint8Array.of(byte));
    fillRow(this.text, bytes, (n, ...range) => {
      const isRead = now && n >= from && n <= at && (taken === null || n < taken);
      return h("span", {
        class: `part small plain${sharing(...range)}${isRead ? " next" : ""}${
          now && n === at ? " at" : ""
        }`,
      }, glyphsIn(...range));
    });
    this.text.setAttribute(
      "aria-label",
      `The text; ${now ? `byte ${at + 1} is read` : "nothing is read yet"}`,
    );
    if (step !== (this.app.state.how_walk ?? 0)) {
      this.app.go({ how_walk: step || undefined }, { redraw: false });
    }
  }
}

// Where the token that a step belongs to starts in the text.
function startsOf(steps, tokens) {
  let start = 0;
  return steps.map(([, , token]) => {
    const now = start;
    if (token !== null) start += tokens.get(token).length;
    return now;
  });
}
