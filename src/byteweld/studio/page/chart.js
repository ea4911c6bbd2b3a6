// Charts: bars, and a curve as SVG. Every mark also shows its value as text.

import { h, number, s } from "./dom.js";

const WIDTH = 640;

// One bar; `share` is its fraction of the full width.
export function bar(share) {
  const fill = h("span", { class: "bar-fill" });
  fill.style.setProperty("width", `${Math.max(0.5, 100 * share)}%`);
  return h("span", { class: "bar-track" }, fill);
}

// Horizontal bars: rows of {name, value, on, onclick}. A name with `onclick` is a button.
export function bars(rows, { label, limit }) {
  const most = Math.max(1, ...rows.map((row) => row.value));
  const shown = rows.slice(0, limit);
  return h(
    "ol",
    { class: "bars", "aria-label": label },
    shown.map((row) =>
      h(
        "li",
        { class: row.on ? "on" : "" },
        row.onclick
          ? h("button", {
            type: "button",
            "aria-pressed": String(Boolean(row.on)),
            onclick: row.onclick,
          }, row.name)
          : h("span", { class: "name" }, row.name),
        bar(row.value / most),
        h("span", { class: "n" }, number(row.value)),
      )
    ),
    rows.length > limit
      ? h("li", { class: "hint" }, `and ${number(rows.length - limit)} more`)
      : null,
  );
}

// A curve through points [x, y]; `at` marks one of them.
export function curve(points, { label, xUnit, yUnit, at, height = 200, onpick }) {
  const left = 46, bottom = 30, top = 14, right = 16;
  const lastX = Math.max(1, points[points.length - 1][0]);
  const lowY = Math.min(...points.map(([, y]) => y)), highY = Math.max(...points.map(([, y]) => y));
  const span = highY - lowY || 1;
  const px = (x) => left + (WIDTH - left - right) * x / lastX;
  const py = (y) => top + (height - top - bottom) * (1 - (y - lowY) / span);
  const line = points.map(([x, y], n) => `${n ? "L" : "M"}${px(x).toFixed(1)} ${py(y).toFixed(1)}`)
    .join("");
  const ticks = [0, 0.5, 1];
  const svg = s(
    "svg",
    { class: "curve", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label },
    s("title", {}, label),
    ticks.map((t) => [
      s("line", {
        class: "grid",
        x1: left,
        x2: WIDTH - right,
        y1: py(lowY + t * span),
        y2: py(lowY + t * span),
      }),
      s(
        "text",
        { x: left - 8, y: py(lowY + t * span) + 4, class: "end" },
        (lowY + t * span).toFixed(2),
      ),
      s("text", {
        x: px(t * lastX),
        y: height - 10,
        class: t === 0 ? "" : t === 1 ? "end" : "middle",
      }, number(Math.round(t * lastX))),
    ]),
    s("path", {
      class: "area",
      d: `${line}L${px(lastX)} ${height - bottom}L${left} ${height - bottom}Z`,
    }),
    s("path", { class: "line", d: line }),
  );
  if (at) {
    svg.append(
      s("line", { class: "now", x1: px(at[0]), x2: px(at[0]), y1: top, y2: height - bottom }),
      s("circle", { class: "now", cx: px(at[0]), cy: py(at[1]), r: 4.5 }),
    );
  }
  if (onpick) {
    svg.addEventListener("click", (event) => {
      const x = (event.offsetX / svg.clientWidth * WIDTH - left) / (WIDTH - left - right) * lastX;
      onpick(Math.max(0, Math.min(lastX, Math.round(x))));
    });
    svg.classList.add("pick");
  }
  return h(
    "figure",
    { class: "chart" },
    svg,
    h("figcaption", {}, h("span", {}, `↑ ${yUnit}`), h("span", {}, `${xUnit} →`)),
  );
}
