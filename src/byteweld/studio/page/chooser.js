// The dialog of tokenizers: choose one, open one by name, or drop a file.

import { ask, upload } from "./api.js";
import { amount, h, put } from "./dom.js";

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
      h("span", { class: "spring" }),
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
      tokenizers.map((tokenizer, place) =>
        h(
          "li",
          {},
          h(
            "button",
            {
              type: "button",
              "aria-current": place === (app.state.tok ?? 0) ? "true" : undefined,
              onclick: () => {
                dialog.close();
                app.go({ tok: place, sel: undefined, token: undefined });
              },
            },
            h("strong", {}, tokenizer.name),
            h("span", {}, amount(tokenizer.tokens, "token")),
            h(
              "span",
              {},
              tokenizer.pattern.length > 24 ? "own pattern" : `pattern ${tokenizer.pattern}`,
            ),
            h("code", {}, tokenizer.fingerprint.slice(0, 8)),
          ),
        )
      ),
    ),
    h("h3", {}, "Open one more"),
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
      h("span", {}, "A file: tokenizer.json, .tiktoken, tekken.json"),
      file,
    ),
    h("p", { class: "hint" }, "Names are found in local files only; nothing is downloaded."),
    h("p", { class: "complaint", role: "alert", hidden: true, id: "choose-complaint" }),
  );
  dialog.showModal();
}

async function add(app, dialog, opening) {
  const complaint = document.getElementById("choose-complaint");
  complaint.hidden = true;
  try {
    const { place, tokenizers } = await opening();
    app.start.tokenizers = tokenizers;
    dialog.close();
    app.go({ tok: place, sel: undefined, token: undefined });
  } catch (error) {
    complaint.textContent = error.message;
    complaint.hidden = false;
  }
}
