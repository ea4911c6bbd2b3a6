// Building elements. Strings only ever become text nodes; nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(4)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

// h("p", {class: "note"}, "text", child): an element; properties that start with "on" are listeners.
export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function s(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

export function put(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

const grouped = new Intl.NumberFormat("en");

export const number = (value) => grouped.format(value);
export const rate = (value) => (value === null ? "–" : value.toFixed(2));
export function percent(value) {
  if (value > 0 && value < 0.0005) return "less than 0.1%";
  return `${value < 0.0995 ? (100 * value).toFixed(1) : Math.round(100 * value)}%`;
}

export function amount(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

export const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

// A number and its unit, which do not wrap.
export const fact = (value, unit) => h("span", { class: "fact" }, h("b", {}, value), ` ${unit}`);

// Delay a call; a newer call within the delay replaces it.
export function debounced(milliseconds, call) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...values), milliseconds);
  };
}

export const allowsMotion = () => !matchMedia("(prefers-reduced-motion: reduce)").matches;

// The top of a dialog: its title, and the button that closes it.
export function dialogTop(title, dialog) {
  return h(
    "div",
    { class: "panel-top" },
    h("h2", {}, title),
    h("span", { class: "spacer" }),
    h("button", {
      type: "button",
      class: "close",
      "aria-label": "Close",
      onclick: () => dialog.close(),
    }, "✕"),
  );
}

export function field(label, control) {
  return h("label", { class: "field" }, h("span", {}, label), control);
}

export function select(label, choices, value, onchange) {
  const options = choices.map(([key, words]) =>
    h("option", { value: key, selected: key === value }, words)
  );
  return field(label, h("select", { onchange: (event) => onchange(event.target.value) }, options));
}

// A row of buttons, one of which is pressed.
export function segmented(label, choices, value, onchange) {
  const buttons = choices.map(([key, words]) =>
    h("button", {
      type: "button",
      "aria-pressed": String(key === value),
      onclick: () => {
        for (const button of buttons) button.setAttribute("aria-pressed", "false");
        buttons[choices.findIndex(([other]) => other === key)].setAttribute("aria-pressed", "true");
        onchange(key);
      },
    }, words)
  );
  return h("div", { class: "segmented", role: "group", "aria-label": label }, buttons);
}
