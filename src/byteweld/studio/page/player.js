// Controls to step forward and backward: buttons, a slider, keys, and automatic play.

import { allowsMotion, h, put } from "./dom.js";

const PLAY_MILLISECONDS = 900;

export class Player {
  // `show(step, before)` draws a step; steps are 0 to `last`.
  constructor(last, step, show, what = "step") {
    Object.assign(this, { last, show, what, step: -1, timer: 0 });
    this.slider = h("input", {
      type: "range",
      min: 0,
      max: last,
      value: 0,
      step: 1,
      "aria-label": what,
      oninput: () => this.go(Number(this.slider.value)),
    });
    const button = (label, words, act) =>
      h("button", { type: "button", "aria-label": label, title: label, onclick: act }, words);
    this.playing = button("Play", "Play", () => this.toggle());
    this.playing.className = "play";
    this.words = h("output", { class: "step-label" });
    this.element = h(
      "div",
      { class: "player", role: "group", "aria-label": "Steps" },
      button("To the start", "|◀", () => this.go(0)),
      button("One step back", "◀", () => this.go(this.step - 1)),
      this.playing,
      button("One step forward", "▶", () => this.go(this.step + 1)),
      button("To the end", "▶|", () => this.go(this.last)),
      this.slider,
      this.words,
    );
    this.go(Math.min(step, last));
  }

  go(step, playing = false) {
    if (!playing) this.stop();
    const to = Math.max(0, Math.min(this.last, step));
    const before = this.step;
    this.step = to;
    this.slider.value = to;
    put(this.words, `${this.what} ${to} of ${this.last}`);
    this.show(to, before);
  }

  toggle() {
    if (this.timer) {
      this.stop();
      return;
    }
    if (this.step >= this.last) this.go(0);
    this.playing.setAttribute("aria-label", "Pause");
    put(this.playing, "Pause");
    this.timer = setInterval(() => {
      this.go(this.step + 1, true);
      if (this.step >= this.last) this.stop();
    }, PLAY_MILLISECONDS);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.playing.setAttribute("aria-label", "Play");
    put(this.playing, "Play");
  }

  key(event) {
    const act = {
      ArrowRight: () => this.go(this.step + 1),
      ArrowLeft: () => this.go(this.step - 1),
      Home: () => this.go(0),
      End: () => this.go(this.last),
      " ": () => this.toggle(),
    }[event.key];
    if (!act || event.target.closest("button, a, input, select, textarea, .tree-box")) return;
    event.preventDefault();
    act();
  }
}

// Animate elements with a `data-key` from their old positions to their new ones.
export function slide(container, change) {
  const before = new Map();
  const children = () => container.querySelectorAll("[data-key]");
  for (const child of children()) before.set(child.dataset.key, child.getBoundingClientRect());
  change();
  if (!allowsMotion()) return;
  for (const child of children()) {
    const was = before.get(child.dataset.key);
    const is = child.getBoundingClientRect();
    if (was && (was.left !== is.left || was.top !== is.top)) {
      child.animate([{ transform: `translate(${was.left - is.left}px, ${was.top - is.top}px)` }, {
        transform: "none",
      }], { duration: 320, easing: "cubic-bezier(.2,.7,.2,1)" });
    } else if (!was) {
      child.animate(
        [{ transform: "scale(1.12)", opacity: 0.3 }, { transform: "none", opacity: 1 }],
        { duration: 320, easing: "ease-out" },
      );
    }
  }
}
