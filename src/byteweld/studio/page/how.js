// How it works: text, bytes, the pair loop, the vocabulary and ids, on the visitor's own files.

import { ask, saved } from "./api.js";
import { glyphsIn, sharing, wholeCharacters } from "./characters.js";
import { amount, debounced, field, h, number, put, select } from "./dom.js";
import { fileName, fromHex, glyphs, hexByte, shortTile, spoken, tokenMap } from "./glyphs.js";
import { Loop } from "./loop.js";
import { Match } from "./match.js";

const MAX_BYTES = 20000; // of all files; the server has the same limit
const MAX_SPOKEN = 24; // bytes of a token that a screen reader says
const LIMITS = { merges: 200, min_frequency: 1000, workers: 8 };
const STAGES = ["Text", "Bytes", "Pair loop", "Vocabulary", "Ids"];
const RECIPES = [["ck", "ck: all 256 bytes"], ["ck-ascii", "ck-ascii: ASCII only"]];

export const view = { title: "How it works", open: (root, app) => new How(root, app) };

const stageNumber = (index) => h("span", { class: "stage-number" }, index + 1);

class How {
  constructor(root, app) {
    this.app = app;
    const { state, start } = app;
    const first = start.files[0];
    this.corpus = h("textarea", {
      id: "how-corpus",
      class: "editor",
      rows: 4,
      spellcheck: "false",
      readonly: Boolean(saved),
      value: state.how_corpus ?? first.text,
      oninput: debounced(300, () => this.train({ how_corpus: this.corpus.value })),
    });
    this.picker = h("input", {
      type: "file",
      id: "how-files",
      class: "visually-hidden",
      tabindex: -1,
      "aria-hidden": "true",
      multiple: true,
      onchange: () => this.read(this.picker.files),
    });
    this.editor = h("div", {});
    this.note = h("p", { class: "note" });
    this.numbers = {
      merges: this.count("merges", state.how_merges ?? first.merges),
      min_frequency: this.count("min_frequency", state.how_min_frequency ?? 2),
      workers: this.count("workers", state.how_workers ?? 3),
    };
    this.recipe = select("Recipe", RECIPES, state.how_recipe ?? first.recipe, (recipe) =>
      this.train({ how_recipe: recipe }));
    // Made once and then filled: a button that has the focus keeps it while steps are played.
    this.stages = STAGES.map((name, index) => {
      const data = h("span", { class: "stage-data" });
      const words = h("small", {});
      const button = h(
        "button",
        { type: "button", onclick: () => this.visit(index) },
        h("span", { class: "stage-name" }, stageNumber(index), name),
        data,
        words,
      );
      return { button, data, words };
    });
    this.pipeline = h(
      "ol",
      { class: "pipeline", "aria-label": "From text to ids" },
      this.stages.map(({ button }) => h("li", {}, button)),
    );
    this.bytes = h("div", {});
    this.vocabulary = h("div", {});
    this.loop = new Loop((step) => this.stepped(step));
    this.match = new Match(app, () => this.question());
    const grows = this.section(3, "The vocabulary grows", this.vocabulary, this.loop.trees);
    this.sections = [
      this.section(0, "Your text", this.textSection()),
      this.section(1, "Every byte is a symbol", this.bytes),
      // One section inside the other, so that the controls stay in view over both.
      this.section(2, "Count, pick, merge, repeat", this.loop.parts, grows),
      grows,
      this.section(4, "Ids: from hash table to trie to BPE", this.match.element),
    ];
    put(
      root,
      h(
        "p",
        { class: "intro" },
        h("b", {}, "Byte pair encoding (BPE)"),
        " turns text into the numbers that a language model reads: it starts from single bytes ",
        "and merges neighbors that often occur together into longer and longer tokens. A ",
        "tokenizer is made in one loop: find the pair of neighbors that occurs most often, ",
        "replace it everywhere with one new symbol, and repeat. Here it runs on your own text.",
      ),
      this.pipeline,
      this.sections.filter((section) => section !== grows),
    );
    root.addEventListener("dragover", (event) => event.preventDefault());
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      if (!saved) this.read(event.dataTransfer?.files ?? []);
    });
    this.ready = this.learn();
  }

  count(name, value) {
    return h("input", {
      type: "number",
      min: 1,
      max: LIMITS[name],
      value,
      readonly: Boolean(saved),
      onchange: () => this.train({ [`how_${name}`]: this.numbers[name].value }),
    });
  }

  section(index, title, ...content) {
    return h(
      "section",
      { class: "card stage-card", id: `stage-${index + 1}`, tabindex: -1 },
      h("h2", {}, stageNumber(index), title),
      content,
    );
  }

  textSection() {
    const { start, state } = this.app;
    return [
      saved ? null : h(
        "div",
        { class: "examples", role: "group", "aria-label": "Files" },
        h("span", {}, "Use"),
        start.files.map((example) =>
          h("button", { type: "button", onclick: () => this.choose(example) }, example.name)
        ),
        state.text
          ? h("button", { type: "button", onclick: () => this.type(state.text) }, "Your text")
          : null,
        h("button", { type: "button", onclick: () => this.picker.click() }, "Files…"),
        this.picker,
      ),
      this.editor,
      this.note,
      h(
        "div",
        { class: "bar" },
        this.recipe,
        field("Merges", this.numbers.merges),
        field("Minimum count", this.numbers.min_frequency),
        field("Threads", this.numbers.workers),
      ),
    ];
  }

  // ---------------------------------------------------------------- the files

  choose({ text, recipe, merges }) {
    this.recipe.querySelector("select").value = recipe;
    this.numbers.merges.value = merges;
    this.type(text, { how_recipe: recipe, how_merges: merges });
  }

  type(text, changes = {}) {
    this.corpus.value = text;
    this.train({ how_corpus: text, how_files: undefined, ...changes });
  }

  async read(files) {
    const texts = {};
    let size = 0;
    for (const file of files) {
      size += file.size;
      if (size > MAX_BYTES) {
        this.app.showError(
          `these files have more than ${number(MAX_BYTES)} bytes, too many to show step by step; ` +
            "choose fewer or smaller ones",
        );
        return;
      }
      try {
        texts[file.name] = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
          await file.arrayBuffer(),
        );
      } catch {
        this.app.showError(`${file.name} is not UTF-8 text`);
        return;
      }
    }
    if (size) this.train({ how_files: JSON.stringify(texts) });
  }

  drawEditor(answer) {
    if (!this.app.state.how_files) {
      const words = h("span", {}, "Each line is one file; nothing merges across files");
      put(this.editor, h("label", { class: "field wide" }, words, this.corpus));
      return;
    }
    put(
      this.editor,
      h(
        "p",
        { class: "tiles" },
        answer.files.map(([name, size]) =>
          h("span", { class: "tile plain" }, `${fileName(name)}: ${amount(size, "byte")}`)
        ),
        saved ? null : h("button", {
          type: "button",
          onclick: () => this.type(this.corpus.value),
        }, "Type instead"),
      ),
    );
  }

  // ---------------------------------------------------------------- learning

  question() {
    const { how_files: files } = this.app.state;
    const whole = (name) =>
      Math.max(1, Math.min(LIMITS[name], Math.round(Number(this.numbers[name].value)) || 1));
    return {
      ...(files ? { files: JSON.parse(files) } : { corpus: this.corpus.value }),
      recipe: this.recipe.querySelector("select").value,
      merges: whole("merges"),
      min_frequency: whole("min_frequency"),
      workers: whole("workers"),
    };
  }

  train(changes) {
    this.app.go({ ...changes, how_step: undefined, how_text: undefined }, { redraw: false });
    return this.learn();
  }

  async learn() {
    await this.app.attempt(async () => {
      const turn = this.turn = Symbol("turn");
      const answer = await ask("how", this.question());
      // Another view has been opened, or there is a newer question.
      if (!this.pipeline.isConnected || turn !== this.turn) return;
      this.app.clearError();
      this.answer = answer;
      this.tokens = tokenMap(answer.tokens);
      this.note.textContent = this.app.state.how_files
        ? ""
        : this.app.start.files.find((known) => known.text === this.corpus.value)?.note ?? "";
      this.drawEditor(answer);
      this.drawBytes(answer);
      this.drawVocabulary(answer);
      this.loop.draw(answer, this.tokens, this.app.state.how_step ?? 0);
      await this.match.encode();
    });
  }

  stepped(step) {
    if (step !== (this.app.state.how_step ?? 0)) {
      this.app.go({ how_step: step || undefined }, { redraw: false });
    }
    this.growVocabulary();
    this.drawPipeline();
  }

  // ---------------------------------------------------------------- the pipeline

  drawPipeline() {
    const { files, bytes, first, first_ids: ids, iterations } = this.answer;
    const shown = wholeCharacters(fromHex(first), 0, Math.min(14, first.length / 2));
    const { learned, merge, isDone } = this.loop;
    const contents = [
      [glyphs(shown), `${amount(files.length, "file")}, ${amount(bytes, "byte")}`],
      [
        h("code", {}, Array.from(shown.slice(0, 6), hexByte).join(" ")),
        `${amount(bytes, "symbol")} at first`,
      ],
      [
        isDone
          ? h("b", {}, iterations.length ? "done" : "nothing to merge")
          : merge
          ? [this.label(merge.left), " + ", this.label(merge.right)]
          : h("b", {}, "counting pairs"),
        `merge ${number(this.loop.number)} of ${number(iterations.length)}`,
      ],
      [
        h("b", {}, `${number(this.base + learned)} tokens`),
        `${number(this.base)} at first, ${number(learned)} learned`,
      ],
      [
        h("code", {}, `${ids.slice(0, 4).join(", ") || "–"}${ids.length > 4 ? "…" : ""}`),
        `of ${files.length ? "the first file" : "nothing"}`,
      ],
    ];
    this.stages.forEach(({ data, words }, index) => {
      put(data, contents[index][0]);
      put(words, contents[index][1]);
    });
  }

  get base() {
    return Object.keys(this.answer.special_tokens).length + this.answer.letters;
  }

  visit(index) {
    this.sections[index].scrollIntoView({ block: "start" });
    this.sections[index].focus({ preventScroll: true });
  }

  drawBytes({ first, files, special_tokens: specials, letters, start }) {
    const bytes = fromHex(first);
    const ids = start.parts[0] ?? [];
    const names = Object.entries(specials);
    const place = ids[0] - names.length; // of the first byte among the byte values
    const what = letters === 256 ? ` = ${place}` : `, number ${place} of them, counted from 0`;
    const sum = `${names.length} + ${place} = ${ids[0]}`;
    const example = bytes.length
      ? `Here, the first byte is 0x${hexByte(bytes[0])}${what}; its id is ${sum}.`
      : "";
    put(
      this.bytes,
      h(
        "p",
        {},
        `Ids 0 to ${names.length - 1} are special tokens: `,
        names.map(([name], id) => [id ? ", " : "", h("code", {}, name)]),
        `. The ${letters} byte values come next, and merges after them. ${example}`,
      ),
      h(
        "ol",
        { class: "byte-row how-bytes", "aria-label": "The first bytes" },
        Array.from(bytes, (byte, n) =>
          h(
            "li",
            { class: sharing(bytes, n, n + 1) },
            h("b", {}, glyphsIn(bytes, n, n + 1)),
            h("code", {}, hexByte(byte)),
            h("span", {}, ids[n]),
          )),
      ),
      files.length && files[0][1] > bytes.length
        ? h("p", { class: "hint" }, `The first ${bytes.length} of ${number(files[0][1])} bytes`)
        : null,
      bytes.length
        ? h("p", { class: "hint" }, "Top to bottom: the byte as text, in hex, and its id.")
        : null,
    );
  }

  drawVocabulary({ special_tokens: specials, letters, iterations }) {
    this.total = h("p", {});
    this.learned = iterations.map(({ merge }, n) => {
      const bytes = this.tokens.get(merge.new);
      return shortTile(merge.new, bytes, {
        title: `merge ${n + 1}, id ${merge.new}, count ${number(merge.pair_count)}`,
        "aria-label": `merge ${n + 1}: ${spoken(bytes.slice(0, MAX_SPOKEN))}`,
        onclick: () => this.loop.jump(n),
      });
    });
    this.sum = `${Object.keys(specials).length} special tokens + ${letters} bytes + `;
    put(this.vocabulary, this.total, h("p", { class: "tiles learned" }, this.learned));
  }

  growVocabulary() {
    const { learned } = this.loop;
    put(
      this.total,
      this.sum,
      h("b", {}, `${number(learned)} learned`),
      ` = ${amount(this.base + learned, "token")}.`,
      this.learned.length ? " Select one to jump to its merge." : "",
    );
    this.learned.forEach((tile, n) => tile.classList.toggle("later", n >= learned));
  }

  label(id) {
    return shortTile(id, this.tokens.get(id), { title: `id ${id}` });
  }

  // ---------------------------------------------------------------- keys

  key(event) {
    const walks = this.sections[4].contains(event.target);
    (walks ? this.match.player : this.loop.player)?.key(event);
  }

  update() {
    return this.learn();
  }

  close() {
    this.loop.player?.stop();
    this.match.player?.stop();
  }
}
