// The tokenizer dialog: choose an open tokenizer, or open one by name or from a file.

import { ask, upload } from "./api.js";
import { amount, h, put } from "./dom.js";

export function patternName(pattern) {
  if (pattern === "none") return "no pattern";
  return pattern.length > 24 ? "custom pattern" : `pattern ${pattern}`;
}

export function openChooser(app) {
  const dialog = document.getElementById("choose");
  const { tokenizers, names } = app.start;
  const file = h("input", {
    type: "file",
    id: "tokenizer-file",
    onchange: () => add(app, dialog, () => upload(file.files[0])),
  });
  put(
    dialog,
    h(
      "div",
      { class: "panel-top" },
      h("h2", {}, "Tokenizers"),
      h("span", { class: "spacer" }),
      h("button", {
        type: "button",
        class: "close",
        "aria-label": "Close",
        onclick: () => dialog.close(),
      }, "✕"),
    ),
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
    h(
      "label",
      { class: "field" },
      h("span", {}, "From a file: tokenizer.json, .tiktoken or tekken.json"),
      file,
    ),
    h("p", { class: "hint" }, "Encodings are loaded from local files only; nothing is downloaded."),
    h("p", { class: "error", role: "alert", hidden: true, id: "choose-error" }),
  );
  dialog.showModal();
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
