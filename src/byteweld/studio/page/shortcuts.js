// The list of keyboard shortcuts, opened with ? or the button in the header.

import { dialogTop, h, put } from "./dom.js";

const SHORTCUTS = [
  [["1", "…", "7"], "switch views"],
  [["/"], "go to the first field"],
  [["←", "→", "Home", "End"], "move through tokens, pre-tokens, steps or bytes"],
  [["↑", "↓"], "go to the token above or below"],
  [["Enter"], "on a token: explain it in the Why view"],
  [["Space"], "play or pause the steps"],
  [["+", "−", "0"], "zoom the focused tree in, out, or back"],
  [["←", "↑", "→", "↓"], "scroll the focused tree"],
  [["Esc"], "close the panel or this list"],
  [["?"], "show this list"],
];

export function openShortcuts() {
  const dialog = document.getElementById("keys");
  const rows = SHORTCUTS.map(([keys, action]) => [
    h("dt", {}, keys.map((key) => [key === "…" ? "…" : h("kbd", {}, key), " "])),
    h("dd", {}, action),
  ]);
  put(
    dialog,
    dialogTop("Keyboard shortcuts", dialog),
    h("dl", { class: "keys" }, rows),
    h("p", { class: "hint" }, "While you type in a field, keys belong to the field."),
  );
  dialog.showModal();
}
