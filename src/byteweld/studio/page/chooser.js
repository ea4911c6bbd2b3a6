// The tokenizer dialog: choose an open tokenizer, or open one by name or from a file.

import { ask, upload } from "./api.js";
import { amount, dialogTop, h, put } from "./dom.js";

export function patternName(pattern) {
  if (pattern === "none") return "no pattern";
  return pattern.length > 24 ? "custom pattern" : `pattern ${pattern}`;
}

export async function openChooser(app) {
  const dialog = document.getElementById("choose");
  if (!dialog.open) put(dialog); // what it showed last time may be out of date
  // A vocabulary may have been fetched since the page was opened.
  const { names, missing } = await ask("start").catch(() => app.start);
  const { tokenizers } = app.start;
  const file = h("input", {
    type: "file",
    id: "tokenizer-file",
    onchange: () => add(app, dialog, () => upload(file.files[0])),
  });
  put(
    dialog,
    dialogTop("Tokenizers", dialog),
    h(
      "ul",
      { class: "known" },
      tokenizers.map((tokenizer, index) =>
        h(
          "li",
          {},
          h(
            "button",
            {
              type: "button",
              "aria-current": index === (app.state.tok ?? 0) ? "true" : undefined,
              onclick: () => {
                dialog.close();
                app.go({ tok: index, sel: undefined, token: undefined });
              },
            },
            h("strong", {}, tokenizer.name),
            h("span", {}, amount(tokenizer.tokens, "token")),
            h("span", {}, patternName(tokenizer.pattern)),
            h("code", {}, tokenizer.fingerprint.slice(0, 8)),
          ),
        )
      ),
    ),
    h("h3", {}, "Open another"),
    h(
      "p",
      { class: "tiles" },
      names.map((name) =>
        h("button", {
          type: "button",
          onclick: () => add(app, dialog, () => ask("open", { name })),
        }, name)
      ),
    ),
    missing.length > 0 && [
      h(
        "p",
        { class: "hint" },
        "Not on this machine: run the command in a terminal, then open this dialog again.",
      ),
      h(
        "ul",
        { class: "missing", tabindex: 0, "aria-label": "Vocabularies that are not on this machine" },
        missing.map(({ name, command }) =>
          h("li", {}, h("button", { type: "button", disabled: true }, name), h("code", {}, command))
        ),
      ),
    ],
    h(
      "label",
      { class: "field" },
      h("span", {}, "From a file: tokenizer.json, .tiktoken or tekken.json"),
      file,
    ),
    h("p", { class: "hint" }, "The studio loads local files only; it downloads nothing."),
    h("p", { class: "error", role: "alert", hidden: true, id: "choose-error" }),
  );
  if (!dialog.open) dialog.showModal(); // it may have been clicked twice
}

async function add(app, dialog, opening) {
  const message = document.getElementById("choose-error");
  message.hidden = true;
  try {
    const { index, tokenizers } = await opening();
    app.start.tokenizers = tokenizers;
    dialog.close();
    app.go({ tok: index, sel: undefined, token: undefined });
  } catch (error) {
    message.textContent = error.message;
    message.hidden = false;
  }
}
