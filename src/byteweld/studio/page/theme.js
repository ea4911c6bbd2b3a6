// The theme: the system's, light or dark; the button that switches it, which the browser remembers.

import { h, put } from "./dom.js";
import { store, stored } from "./storage.js";

const KEY = "byteweld-theme";
const THEMES = ["system", "light", "dark"];

const current = () => document.documentElement.dataset.theme ?? "system";
const following = () => THEMES[(THEMES.indexOf(current()) + 1) % THEMES.length];

function set(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

export function restoreTheme() {
  set(stored(KEY));
}

export function themeButton(app) {
  const button = h("button", {
    type: "button",
    id: "theme",
    onclick: () => {
      set(following());
      store(KEY, current() === "system" ? null : current());
      name(button);
      app.announce(`Theme: ${current()}`);
    },
  });
  return name(button);
}

function name(button) {
  const change = `switch to ${following()}`;
  button.setAttribute("aria-label", `Theme: ${current()}, ${change}`);
  button.title = `Theme: ${current()}${
    current() === "system" ? " (as the system is set)" : ""
  }; ${change}`;
  return put(button, `Theme: ${current()}`);
}
