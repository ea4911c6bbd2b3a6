// Compare: two to four tokenizers on one text, aligned by bytes; and the cost of each language.

import { ask, saved } from "./api.js";
import { amount, debounced, h, number, percent, put, rate } from "./dom.js";
import { glyphsIn, joins, sharing, wholeCharacters } from "./characters.js";
import { arranged, directionOf, kindOf } from "./direction.js";
import { glyphs, spoken, tint, utf8 } from "./glyphs.js";
import { LazyBlocks } from "./lazy.js";
import { openChooser } from "./chooser.js";
import { NO_WORD } from "./why.js";

const MAX_TOKENIZERS = 4;
const BLOCK_SEGMENTS = 250;
const LETTERS = "ABCD";

export const view = { title: "Compare", open: (root, app) => new Compare(root, app) };

class Compare {
  constructor(root, app) {
    this.app = app;
    this.latest = 0;
    this.files = null;
    this.editor = h("textarea", {
      id: "text",
      class: "editor",
      rows: 3,
      spellcheck: "false",
      dir: "auto",
      readonly: Boolean(saved),
      value: app.text,
      "aria-label": "Text to compare",
      oninput: debounced(120, () => {
        app.go({ text: this.editor.value, sel: undefined, ...NO_WORD }, { redraw: false });
        this.compare();
      }),
    });
    this.who = h("div", {
      class: "examples who",
      role: "group",
      "aria-label": "Tokenizers to compare",
    });
    this.totals = h("div", { class: "totals" });
    this.lanes = h("div", { class: "lanes", id: "lanes" });
    this.blocks = new LazyBlocks(this.lanes, (index, element) => this.fill(index, element));
    this.truncation = h("p", { class: "hint", hidden: true });
    this.spots = h("section", { class: "card" });
    this.languages = h("section", { class: "card" });
    put(
      root,
      this.who,
      h("section", { class: "typing" }, this.editor),
      this.totals,
      this.lanes,
      this.truncation,
      h("div", { class: "two" }, this.languages, this.spots),
    );
    this.ready = this.start();
  }

  async start() {
    await this.app.attempt(async () => {
      if (this.app.start.tokenizers.length < 2 && !saved) {
        // Only one tokenizer is open: the server opens a second one to compare with.
        this.app.start.tokenizers = (await ask("companion")).tokenizers;
      }
      await Promise.all([this.compare(), this.drawLanguages()]);
    });
  }

  get chosen() {
    const { tokenizers } = this.app.start;
    const given = (this.app.state.with ?? "").split(".").filter(Boolean).map(Number).filter((
      index,
    ) => index in tokenizers);
    const first = this.app.state.tok ?? 0;
    const others = given.filter((index) => index !== first);
    if (!others.length) {
      others.push(
        ...tokenizers.map((_, index) => index).filter((index) => index !== first).slice(0, 1),
      );
    }
    return [first, ...others].slice(0, MAX_TOKENIZERS);
  }

  toggle(index) {
    const others = this.chosen.slice(1);
    const next = others.includes(index)
      ? others.filter((other) => other !== index)
      : [...others, index].slice(0, MAX_TOKENIZERS - 1);
    this.app.go({ with: next.join(".") || undefined }, { redraw: false });
    return this.app.attempt(() => Promise.all([this.compare(), this.drawLanguages()]));
  }

  drawWho() {
    const { tokenizers } = this.app.start;
    put(
      this.who,
      h("span", {}, "Compare"),
      tokenizers.map((tokenizer, index) => {
        const letter = this.chosen.indexOf(index);
        return h(
          "button",
          {
            type: "button",
            "aria-pressed": String(letter >= 0),
            disabled: index === this.chosen[0] || Boolean(saved),
            onclick: () => this.toggle(index),
          },
          letter >= 0 ? h("b", { class: "lane-name" }, LETTERS[letter]) : null,
          tokenizer.name,
        );
      }),
      saved
        ? null
        : h("button", { type: "button", onclick: () => openChooser(this.app) }, "Open another…"),
    );
  }

  async compare() {
    const mine = ++this.latest;
    const text = this.editor.value;
    this.drawWho();
    await this.app.attempt(async () => {
      const answer = await ask("compare", {
        tokenizers: this.chosen,
        text,
        special_text: this.app.state.special_text ?? "special",
      });
      if (mine !== this.latest) return;
      this.app.clearError();
      this.answer = answer;
      this.bytes = utf8.encode(text);
      this.starts = [];
      let at = 0;
      for (const [size] of answer.segments) {
        this.starts.push(at);
        at += size;
      }
      this.drawTotals();
      const height = 34 * this.chosen.length + 12;
      const perLine = Math.max(4, this.lanes.clientWidth / 70);
      const blocks = Math.ceil(answer.segments.length / BLOCK_SEGMENTS);
      this.lanes.style.setProperty("--lanes", this.chosen.length);
      this.truncation.hidden = answer.total_segments <= answer.segments.length;
      this.truncation.textContent = `The first ${number(answer.segments.length)} of ${
        number(answer.total_segments)
      } segments are shown; all are counted.`;
      this.blocks.show(Array(blocks).fill(Math.ceil(BLOCK_SEGMENTS / perLine) * height));
      this.drawSpots();
    });
  }

  drawTotals() {
    const { counts, bytes, differing, differing_bytes: other, total_segments: total } = this.answer;
    const { tokenizers } = this.app.start;
    const base = counts[0];
    put(
      this.totals,
      h(
        "table",
        {},
        h("caption", { class: "visually-hidden" }, "Counts"),
        h(
          "tbody",
          {},
          this.chosen.map((index, n) =>
            h(
              "tr",
              {},
              h(
                "th",
                { scope: "row" },
                h("b", { class: "lane-name" }, LETTERS[n]),
                " ",
                tokenizers[index].name,
              ),
              h(
                "td",
                { class: "n" },
                h("b", {}, number(counts[n])),
                counts[n] === 1 ? " token" : " tokens",
              ),
              h(
                "td",
                { class: "n" },
                n === 0 ? "" : counts[n] === base ? "same number" : `${
                  amount(
                    Math.abs(counts[n] - base),
                    counts[n] > base ? "more" : "fewer",
                    counts[n] > base ? "more" : "fewer",
                  )
                }, ${counts[n] > base ? "+" : "−"}${percent(Math.abs(counts[n] / base - 1))}`,
              ),
              h(
                "td",
                { class: "n" },
                h("b", {}, rate(counts[n] ? bytes / counts[n] : null)),
                " bytes per token",
              ),
            )
          ),
        ),
      ),
      h(
        "p",
        { id: "differing" },
        differing
          ? [
            h("b", {}, percent(other / bytes)),
            ` of the bytes are split differently, in ${number(differing)} of ${
              amount(total, "segment")
            }.`,
          ]
          : h("b", {}, bytes ? "All split this text the same way." : "Type some text to compare."),
      ),
    );
  }

  fill(block, element) {
    const { segments } = this.answer;
    const last = Math.min(segments.length, (block + 1) * BLOCK_SEGMENTS);
    const names = () =>
      h(
        "span",
        { class: "lane-names", "aria-hidden": "true" },
        this.chosen.map((_, n) => h("b", {}, LETTERS[n])),
      );
    let kinds = [];
    for (let index = block * BLOCK_SEGMENTS; index < last; index++) {
      const start = this.starts[index], end = start + segments[index][0];
      kinds.push(kindOf(wholeCharacters(this.bytes, start, end)));
      if (this.bytes[end - 1] !== 10 && index + 1 < last) continue;
      const direction = directionOf(kinds);
      const first = index + 1 - kinds.length;
      const nodes = kinds.map((_, n) => this.segment(first + n, direction));
      const line = arranged(nodes, kinds, direction);
      element.append(h("div", { class: "lane-line", dir: direction }, names(), line));
      kinds = [];
    }
  }

  segment(index, direction) {
    const [, agrees, ids, lengths] = this.answer.segments[index];
    return h(
      "span",
      {
        class: `segment${agrees ? "" : " differs"}${
          joins(this.bytes, this.starts[index]) ? " joins" : ""
        }`,
        id: `g${index}`,
        title: agrees ? undefined : "split differently",
      },
      ids.map((lane, n) => {
        const at = this.starts[index];
        return h(
          "span",
          { class: "lane" },
          this.lane(lane, lengths[n], at, n, direction),
        );
      }),
    );
  }

  // The tokens of one tokenizer in a segment that starts at byte `at`.
  lane(ids, lengths, at, number, direction) {
    const kinds = [];
    const nodes = ids.map((id, n) => {
      const range = [this.bytes, at, at += lengths[n]];
      kinds.push(kindOf(wholeCharacters(...range)));
      return h(
        "span",
        { class: `t ${tint(id)}${sharing(...range)}`, title: `${LETTERS[number]}: id ${id}` },
        glyphsIn(...range),
      );
    });
    return arranged(nodes, kinds, direction);
  }

  drawSpots() {
    const { most, segments } = this.answer;
    put(
      this.spots,
      h("h2", {}, "Where they differ most"),
      most.length
        ? h(
          "ol",
          { class: "spots" },
          most.slice(0, 8).map((index) =>
            h(
              "li",
              {},
              h(
                "button",
                {
                  type: "button",
                  "aria-label": `go to ${
                    spoken(
                      wholeCharacters(
                        this.bytes,
                        this.starts[index],
                        this.starts[index] + segments[index][0],
                      ),
                    )
                  }`,
                  onclick: () => this.reveal(index),
                },
                glyphs(
                  wholeCharacters(
                    this.bytes,
                    this.starts[index],
                    this.starts[index] + Math.min(60, segments[index][0]),
                  ),
                ),
              ),
              h(
                "span",
                { class: "hint" },
                segments[index][2].map((ids, n) => `${LETTERS[n]} ${ids.length}`).join(" · "),
                " tokens",
              ),
            )
          ),
        )
        : h("p", { class: "hint" }, "Nowhere in this text."),
    );
  }

  reveal(index) {
    this.blocks.ensure(Math.floor(index / BLOCK_SEGMENTS));
    const found = document.getElementById(`g${index}`);
    if (!found) return;
    found.scrollIntoView({ block: "center" });
    found.tabIndex = -1; // so that keyboards and screen readers follow
    found.focus({ preventScroll: true });
    found.animate?.([
      { outlineColor: "currentColor", outlineWidth: "3px", outlineStyle: "solid" },
      { outlineColor: "transparent", outlineWidth: "3px", outlineStyle: "solid" },
    ], 1400);
  }

  // One sentence in many languages, or the user's files.
  async drawLanguages() {
    const special_text = this.app.state.special_text ?? "special";
    const answer = await ask(
      "languages",
      this.files
        ? { tokenizers: this.chosen, files: this.files, special_text }
        : { tokenizers: this.chosen },
    );
    const { tokenizers } = this.app.start;
    const order = answer.names.map((_, n) => n).sort((a, b) =>
      answer.tokens[0][a] - answer.tokens[0][b]
    );
    const most = Math.max(1, ...answer.tokens.flat());
    const picker = h("input", {
      type: "file",
      multiple: true,
      id: "files",
      class: "visually-hidden",
      tabindex: -1,
      "aria-hidden": "true",
      onchange: () => this.read([...picker.files]),
    });
    put(
      this.languages,
      h(
        "h2",
        {},
        this.files
          ? `Your ${amount(answer.names.length, "file")}`
          : `One sentence, ${answer.names.length} languages`,
      ),
      this.files
        ? h(
          "p",
          { class: "hint" },
          special_text === "text"
            ? "Special tokens in them count as text."
            : "Special tokens in them count as special tokens.",
        )
        : this.mostExpensive(answer, order),
      saved ? null : h(
        "p",
        {},
        picker,
        h("button", {
          type: "button",
          onclick: () => (this.files ? this.read([]) : picker.click()),
        }, this.files ? "Back to languages" : "Use your own files…"),
      ),
      h(
        "p",
        { class: "legend" },
        this.chosen.map((index, n) =>
          h("span", {}, h("i", { class: `lane-mark lane${n}` }, LETTERS[n]), tokenizers[index].name)
        ),
      ),
      h(
        "table",
        { class: "languages" },
        h("caption", { class: "visually-hidden" }, "Tokens for each language or file"),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("td", {}),
            h("td", {}),
            h("th", { class: "n" }, "tokens"),
            h("th", { class: "n" }, "bytes per token"),
          ),
        ),
        h(
          "tbody",
          {},
          order.map((n) =>
            h(
              "tr",
              { title: answer.texts?.[n] },
              h("th", { scope: "row" }, answer.names[n]),
              h(
                "td",
                { class: "dots" },
                this.chosen.map((_, lane) => {
                  const dot = h(
                    "i",
                    { class: `lane-mark lane${lane}`, "aria-hidden": "true" },
                    LETTERS[lane],
                  );
                  dot.style.setProperty(
                    "--down",
                    `${11 * (lane - (this.chosen.length - 1) / 2)}px`,
                  );
                  dot.style.setProperty(
                    "left",
                    `calc(8px + (100% - 16px) * ${answer.tokens[lane][n] / most})`,
                  );
                  return dot;
                }),
              ),
              h(
                "td",
                { class: "n" },
                this.chosen.map((_, lane) => answer.tokens[lane][n]).join(" / "),
              ),
              h(
                "td",
                { class: "n hint" },
                this.chosen.map((_, lane) =>
                  rate(answer.tokens[lane][n] ? answer.bytes[n] / answer.tokens[lane][n] : null)
                ).join(" / "),
              ),
            )
          ),
        ),
      ),
    );
    this.languages.style.setProperty("--lanes", this.chosen.length);
  }

  mostExpensive(answer, order) {
    const last = order[order.length - 1];
    const ratio = answer.tokens[0][last] / answer.tokens[0][answer.names.indexOf("English")];
    return h(
      "p",
      {},
      "Every sentence says the same thing. With ",
      h("b", {}, this.app.start.tokenizers[this.chosen[0]].name),
      `, ${answer.names[last]} needs `,
      h("b", {}, `${ratio.toFixed(1)} times`),
      " as many tokens as English.",
    );
  }

  async read(files) {
    const texts = await Promise.all(files.map(async (file) => [file.name, await file.text()]));
    this.files = texts.length ? Object.fromEntries(texts) : null;
    await this.app.attempt(() => this.drawLanguages());
  }

  update() {
    if (this.editor.value !== this.app.text) this.editor.value = this.app.text;
    return this.compare();
  }

  close() {
    this.latest++; // ignore late answers
    this.blocks.close();
  }
}
