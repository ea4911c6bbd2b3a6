// The pair loop as ck-bpe-train runs it: threads, two buffers and five phases, step by step.

import { allowsMotion, amount, h, number, put } from "./dom.js";
import { bar } from "./chart.js";
import { glyphsIn, sharing } from "./characters.js";
import { fileName, shortGlyphs, shortTile, spoken, tint } from "./glyphs.js";
import { Player } from "./player.js";
import { fillRow, pairMarks } from "./row.js";
import { drawTree, leafWidth } from "./tree.js";

const PHASES = ["Count", "Merge tables", "Select", "Replace", "Flip"];
const [COUNT, TABLES, SELECT, REPLACE, FLIP] = PHASES.keys();
const BUFFERS = ["seq_a", "seq_b"];
const ROOM = 1.3; // the width of the trees that are drawn, in widths of their box
const MAX_SPOKEN = 24; // bytes of a token in the title of the trees

export class Loop {
  learned = 0; // merges complete at this step
  number = 0; // of the merge being made, or the last one; counted from 1
  merge = null; // the merge being made, once it is selected
  isDone = false;

  constructor(onstep) {
    this.onstep = onstep;
    this.controls = h("div", { class: "loop-controls" });
    this.buttons = PHASES.map((name) => h("button", { type: "button" }, name));
    this.which = h("li", { class: "phase-round" });
    this.phases = h(
      "ol",
      { class: "phases", "aria-label": "Phases of a merge" },
      this.buttons.map((button) => h("li", {}, button)),
      this.which,
    );
    this.words = h("p", { class: "step-text loop-text", "aria-live": "off" });
    this.buffers = h("div", { class: "buffers" });
    this.pool = h("div", { class: "pool" });
    this.global = h("div", { class: "pairs" });
    this.box = h("div", { class: "tree-box" });
    this.treeNote = h("p", { class: "hint" });
    this.parts = [
      h(
        "p",
        {},
        "This is how ck-bpe-train works: a pool of threads, and two buffers that swap roles. ",
        "byteweld learns the same merges without counting everything again for each; section 5 ",
        "of ",
        h("code", {}, "docs/design/algorithm.md"),
        " says why it may.",
      ),
      this.controls,
      this.words,
      this.buffers,
      h(
        "div",
        { class: "tables" },
        h("div", {}, h("h3", {}, "Thread pool: one table each"), this.pool),
        h("div", {}, h("h3", {}, "Global pair table"), this.global),
      ),
    ];
    this.trees = h("div", { class: "growing" }, this.treeNote, this.box);
  }

  draw(answer, tokens, step) {
    this.answer = answer;
    this.tokens = tokens;
    this.player?.stop();
    this.shownTrees = null;
    this.player = new Player(
      PHASES.length * answer.iterations.length,
      step,
      (now, before) => this.show(now, before),
      "phase",
    );
    put(this.controls, this.phases, this.player.element);
  }

  // To the phase in which merge n is selected.
  jump(n) {
    this.player.go(PHASES.length * n + SELECT);
  }

  show(step, before) {
    const { iterations } = this.answer;
    const round = Math.floor(step / PHASES.length);
    const phase = round < iterations.length ? step % PHASES.length : null;
    this.round = iterations[round] ?? null;
    this.learned = round + (phase === FLIP || phase === REPLACE ? 1 : 0);
    this.merge = phase !== null && phase >= SELECT ? this.round.merge : null;
    this.isDone = phase === null;
    this.number = Math.min(round + 1, iterations.length);
    this.drawPhases(round, phase);
    put(this.words, this.explain(round, phase));
    this.drawBuffers(round, phase, step === before + 1);
    this.drawPool(phase);
    this.drawGlobal(phase);
    this.drawTrees();
    this.onstep(step);
  }

  sequences(round) {
    return round ? this.answer.iterations[round - 1].after : this.answer.start;
  }

  label(id) {
    return shortTile(id, this.tokens.get(id), { title: `id ${id}` });
  }

  // ---------------------------------------------------------------- phases and words

  drawPhases(round, phase) {
    const { length } = this.answer.iterations;
    const first = PHASES.length * Math.min(round, Math.max(0, length - 1)); // of this merge
    this.buttons.forEach((button, n) => {
      button.disabled = !length;
      button.onclick = () => this.player.go(first + n);
      if (n === phase) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
    put(
      this.which,
      phase !== null
        ? `merge ${number(round + 1)} of ${number(length)}`
        : length
        ? `all ${amount(length, "merge")} done`
        : "nothing to merge",
    );
  }

  explain(round, phase) {
    const { answer } = this;
    const threads = amount(answer.shards.length, "thread");
    if (phase === null) {
      return [
        h("b", {}, `Stopped after ${amount(answer.iterations.length, "merge")}: `),
        {
          "size": "the vocabulary has the requested size.",
          "no pairs": "no pair is left.",
          "min frequency": `no pair occurs at least ${amount(answer.min_frequency, "time")}.`,
        }[answer.stopped],
      ];
    }
    const { merge, local, pairs, total_tied: ties } = this.round;
    const [read, write] = round % 2 ? [1, 0] : [0, 1];
    if (phase === COUNT) {
      return [
        h("b", {}, "Count. "),
        `${threads} ${answer.shards.length === 1 ? "counts" : "count"} the pairs of neighbors in ${
          BUFFERS[read]
        }, each in its own files and its own table, so none waits for another.`,
      ];
    }
    if (phase === TABLES) {
      return [
        h("b", {}, "Merge tables. "),
        answer.shards.length === 1
          ? "The local table becomes the global one: "
          : "The local tables are added up to the global one: ",
        `${amount(pairs, "different pair")}.`,
      ];
    }
    if (phase === SELECT) {
      const sum = local.map(({ winner }) => winner).join(" + ");
      return [
        h("b", {}, "Select. "),
        this.label(merge.left),
        " + ",
        this.label(merge.right),
        ` occurs ${local.length > 1 ? `${sum} = ` : ""}${amount(merge.pair_count, "time")}. `,
        ties
          ? h("span", { class: "tie" }, this.tieWords(merge, ties))
          : "No other pair occurs as often.",
        " It becomes ",
        this.label(merge.new),
        `, id ${merge.new}.`,
      ];
    }
    if (phase === REPLACE) {
      return [
        h("b", {}, "Replace. "),
        `Each thread copies its files from ${BUFFERS[read]} to ${BUFFERS[write]} and writes `,
        this.label(merge.new),
        " for ",
        this.label(merge.left),
        this.label(merge.right),
        `: ${amount(this.sequences(round).total, "symbol")} become ${
          number(this.sequences(round + 1).total)
        }.`,
      ];
    }
    return [
      h("b", {}, "Flip. "),
      `The buffers swap roles: ${BUFFERS[write]} is read next, ${
        BUFFERS[read]
      } will be overwritten. Nothing is copied.`,
    ];
  }

  // Why the winner won: the smaller left id or, if they are equal, the smaller right id.
  tieWords(merge, ties) {
    const [left, right] = this.round.tied[0];
    const rule = merge.left !== left
      ? `left id ${merge.left} is smaller than ${left}`
      : `the left ids are equal, and right id ${merge.right} is smaller than ${right}`;
    return `A tie with ${amount(ties, "other pair")}; the smallest ids win: ${rule}.`;
  }

  // ---------------------------------------------------------------- buffers

  drawBuffers(round, phase, moved) {
    const written = phase === REPLACE || phase === FLIP;
    const flipped = phase === FLIP;
    // `at`: how many merges the sequences of a buffer have been through; null if it is empty.
    const reading = { at: round, mark: phase === SELECT || phase === REPLACE };
    const writing = written
      ? { at: round + 1, fresh: this.merge.new }
      : { at: round ? round - 1 : null, stale: true };
    const [first, second] = round % 2 ? [writing, reading] : [reading, writing];
    put(
      this.buffers,
      [first, second].map((buffer, n) => {
        const reads = (buffer === reading) !== flipped;
        const old = buffer.stale || (flipped && !reads);
        return this.buffer(BUFFERS[n], buffer, reads, old, phase);
      }),
    );
    if (!moved || !written || !allowsMotion()) return;
    for (const part of this.buffers.querySelectorAll(".fresh")) {
      part.animate([{ letterSpacing: "0.5em", opacity: 0.5 }, { letterSpacing: "0", opacity: 1 }], {
        duration: 320,
        easing: "ease-out",
      });
    }
  }

  buffer(name, { at, mark, fresh }, reads, old, phase) {
    const sequences = at === null ? null : this.sequences(at);
    const { files, shards } = this.answer;
    const role = phase === null ? (reads ? "result" : "old") : reads ? "read" : "write";
    return h(
      "section",
      { class: `buffer${reads ? " reads" : ""}`, "aria-label": `${name}, ${role}` },
      h(
        "p",
        { class: "buffer-name" },
        h("code", {}, name),
        h("span", { class: "role" }, role),
        h(
          "span",
          { class: "hint" },
          sequences
            ? `${amount(sequences.total, "symbol")}${old && phase !== null ? ", old" : ""}`
            : "empty",
        ),
      ),
      sequences
        ? h(
          "ol",
          { class: "sequences" },
          sequences.parts.map((ids, n) =>
            h(
              "li",
              {},
              h(
                "span",
                { class: "owner" },
                h("b", {}, `T${shards.findIndex(([first, end]) => first <= n && n < end)}`),
                " ",
                fileName(files[n][0]),
              ),
              this.symbols(ids, mark, fresh, old, sequences.lengths[n]),
            )
          ),
          files.length > sequences.parts.length
            ? h(
              "li",
              { class: "hint" },
              `and ${amount(files.length - sequences.parts.length, "more file")}`,
            )
            : null,
        )
        : h("p", { class: "hint" }, "Nothing has been written yet."),
    );
  }

  symbols(ids, mark, fresh, old, total) {
    const marks = pairMarks(ids, mark ? this.merge : null);
    const tokens = ids.map((id) => this.tokens.get(id));
    const row = fillRow(h("span", { class: "word-parts" }), tokens, (n, ...range) => {
      const kind = marks[n] || (ids[n] === fresh && !old ? " fresh" : "");
      const shared = sharing(...range);
      return h("span", {
        class: `part small ${old ? "old" : tint(ids[n])}${shared}${kind}`,
        title: `id ${ids[n]}`,
      }, shared ? glyphsIn(...range) : shortGlyphs(tokens[n]));
    });
    row.append(...[more(total - ids.length)].filter(Boolean));
    return row;
  }

  // ---------------------------------------------------------------- tables

  drawPool(phase) {
    const { shards, files } = this.answer;
    const state = { [COUNT]: "counts", [REPLACE]: "rewrites" }[phase] ?? "waits";
    put(
      this.pool,
      shards.map(([first, end], n) => {
        const names = files.slice(first, end).map(([name]) => fileName(name));
        const works = state !== "waits" && end > first;
        const table = this.round?.local[n];
        return h(
          "section",
          { class: `thread${works ? " works" : ""}`, "aria-label": `Thread ${n}` },
          h(
            "p",
            { class: "thread-name" },
            h("b", {}, `T${n}`),
            h("span", { class: "role" }, works ? state : "waits"),
          ),
          h(
            "p",
            { class: "hint" },
            names.length > 2
              ? `${names[0]}, ${names[1]} and ${number(names.length - 2)} more`
              : names.join(", ") || "no files",
          ),
          table && phase !== null ? this.rows(table, phase) : null,
        );
      }),
    );
  }

  rows({ rows, pairs }, phase) {
    return [
      h(
        "ul",
        { class: "local" },
        rows.map(([left, right, count]) =>
          h(
            "li",
            { class: phase >= SELECT && this.wins(left, right) ? "won" : "" },
            h("span", {}, this.label(left), this.label(right)),
            h("span", { class: "n" }, number(count)),
          )
        ),
      ),
      pairs > rows.length
        ? h("p", { class: "hint" }, `and ${number(pairs - rows.length)} more`)
        : null,
    ];
  }

  wins(left, right) {
    return left === this.round.merge.left && right === this.round.merge.right;
  }

  drawGlobal(phase) {
    if (phase === null || phase === COUNT) {
      put(
        this.global,
        h(
          "p",
          { class: "hint" },
          phase === null ? "No more pairs to merge." : "Filled when all threads have counted.",
        ),
      );
      return;
    }
    const { rows, pairs, merge } = this.round;
    const most = Math.max(...rows.map(([, , count]) => count));
    const word = (left, right, count) => {
      if (phase < SELECT) return "";
      if (this.wins(left, right)) return "← wins";
      return count === merge.pair_count ? "tie" : "";
    };
    put(
      this.global,
      h(
        "table",
        {},
        h("caption", { class: "visually-hidden" }, "Pairs by count"),
        h(
          "tbody",
          {},
          rows.map(([left, right, count]) =>
            h(
              "tr",
              { class: phase >= SELECT && this.wins(left, right) ? "winner" : "" },
              h("td", {}, this.label(left), " ", this.label(right)),
              h("td", { class: "bar-cell" }, bar(count / most)),
              h("td", { class: "n" }, number(count)),
              h("td", {}, word(left, right, count)),
            )
          ),
        ),
      ),
      pairs > rows.length
        ? h("p", { class: "hint" }, `and ${amount(pairs - rows.length, "more pair")}`)
        : null,
    );
  }

  // ---------------------------------------------------------------- trees

  drawTrees() {
    if (this.shownTrees === this.learned) return; // keep the zoom
    this.shownTrees = this.learned;
    const merges = this.answer.iterations.slice(0, this.learned).map(({ merge }) => merge);
    const last = merges[merges.length - 1];
    if (!last) {
      put(this.treeNote, "Trees appear here as merges are made. Play, or take a few steps.");
      put(this.box);
      return;
    }
    const room = ROOM * Math.max(300, this.trees.clientWidth);
    const { tree, hidden } = forest(merges, (id) => leafWidth(this.tokens.get(id)), room);
    put(
      this.treeNote,
      "Every token is a tree of merges with bytes as leaves. The newest is on the left; the ",
      "number above a box is the rank of its merge. Scroll or drag to move; + and − zoom.",
      hidden ? ` ${amount(hidden, "older tree")} ${hidden === 1 ? "is" : "are"} not shown.` : "",
    );
    const title = `Merge trees after ${amount(merges.length, "merge")}, the newest ${
      spoken(this.tokens.get(last.new).slice(0, MAX_SPOKEN))
    }`;
    drawTree(this.box, tree, this.tokens, title);
  }
}

const more = (count) =>
  count > 0 ? h("span", { class: "hint" }, `… ${number(count)} more`) : null;

// The trees of all tokens that are not part of a larger one, newest first, as far as there is room.
// Nodes are [id, left, right, rank], children before parents.
function forest(merges, widthOf, room) {
  const made = new Map(merges.map((merge, rank) => [merge.new, { ...merge, rank }]));
  const inside = new Set(merges.flatMap(({ left, right }) => [left, right]));
  const whole = [...made.keys()].filter((id) => !inside.has(id)).reverse();
  const found = []; // parents before children
  const roots = [];
  let taken = 0;
  for (const root of whole) {
    const { nodes, width } = grow(root, made, found.length, widthOf, room);
    if (roots.length && taken + width > room) break;
    roots.push(found.length);
    found.push(...nodes);
    taken += width;
  }
  const flip = (index) => (index === null ? null : found.length - 1 - index);
  const nodes = found.map(([id, left, right, rank]) => [id, flip(left), flip(right), rank]);
  return {
    tree: { nodes: nodes.reverse(), roots: roots.map(flip) },
    hidden: whole.length - roots.length,
  };
}

// One tree, breadth first; a token stays whole if there is no room for its parts.
function grow(root, made, offset, widthOf, room) {
  const nodes = [[root, null, null, null]];
  let width = widthOf(root);
  for (let n = 0; n < nodes.length; n++) {
    const [id] = nodes[n];
    const merge = made.get(id);
    if (!merge) continue;
    const wider = width - widthOf(id) + widthOf(merge.left) + widthOf(merge.right);
    if (wider > room) continue;
    width = wider;
    nodes[n] = [id, offset + nodes.length, offset + nodes.length + 1, merge.rank];
    nodes.push([merge.left, null, null, null], [merge.right, null, null, null]);
  }
  return { nodes, width };
}
