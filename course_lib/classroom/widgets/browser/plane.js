/* A plot with names on its axes and its lines, and points in it that are dragged in two directions. */
import { node, put, plain, draggable, plot } from "./kit.js";

/* A plot of the kit with `xLabel` and `yLabel` within it, the values `at(event)` under the pointer, and lines that may
   have a name, be dashed or thin, or be dots; their `show` takes points [[x, y], ...] or several such rows of points. */
export function plane({ xLabel = "", yLabel = "", ...options }) {
  const whole = plot(options), { x: [low, high], y: [bottom, top] } = options, svg = whole.area;
  const [left, right, above, below] = [whole.x(low), whole.x(high), whole.y(top), whole.y(bottom)];
  svg.append(node("rect", { class: "play-frame", x: left, y: above, width: right - left, height: below - above }),
    node("text", { x: right - 5, y: below - 6, "text-anchor": "end" }, xLabel), node("text", { x: left + 5, y: above + 14 }, yLabel));
  let named = 0;
  function line(colour, { name = "", dashed = false, dots = false, thin = false } = {}) {
    const look = { class: `play-line${dots ? " dots" : ""}${thin ? " thin" : ""}`, stroke: colour, "stroke-dasharray": dashed && "6 4" };
    const path = svg.appendChild(node("path", look));
    if (name) {
      const at = above + 10 + 16 * named++;
      svg.append(node("path", { ...look, d: `M${right - 118} ${at}h${dots ? 0 : 22}` }), node("text", { x: right - 91, y: at + 4 }, name));
    }
    const step = ([a, b], i) => `${i && !dots ? "L" : "M"}${whole.x(a)} ${whole.y(b)}${dots ? "h0" : ""}`;
    return {
      show(points) {
        const rows = Array.isArray(points[0]?.[0]) ? points : [points];
        put(path, { d: rows.flatMap((row) => row.map(step)).join("") });
      },
    };
  }
  function at(event) {
    const box = svg.getBoundingClientRect(), [wide, tall] = svg.getAttribute("viewBox").split(" ").slice(2);
    const a = ((event.clientX - box.left) / box.width) * wide, b = ((event.clientY - box.top) / box.height) * tall;
    return [low + ((a - left) / (right - left)) * (high - low), bottom + ((b - below) / (above - below)) * (top - bottom)];
  }
  return { ...whole, line, at };
}

/* A point in a plane: `dragged(x, y)` for each place under the pointer, `end()` when it is let go, and `keys(right, up)`
   for arrow keys, in steps; Page Up is ten. Without `keys` it is for the pointer alone. `show(x, y, now, text)` puts it
   there; a screen reader says `text`, and `now` is one number of it. */
export function point(area, { label, colour, dragged, end, keys = null }) {
  const hit = node("circle", { class: "play-hit", r: 17 }), dot = node("circle", { class: "play-dot", r: 8, fill: colour });
  const handle = area.area.appendChild(node("g", { class: "play-handle play-point" }, hit, dot));
  draggable(handle, (event) => dragged(...area.at(event)), end);
  if (keys) {
    put(handle, { role: "slider", tabindex: 0, "aria-label": label });
    handle.addEventListener("pointerdown", () => handle.focus({ preventScroll: true, focusVisible: false }));
    handle.addEventListener("keydown", (event) => {
      const by = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0], PageUp: [0, 10], PageDown: [0, -10] }[event.key];
      if (!by || !plain(event)) return;
      event.preventDefault();  // neither the page nor a slide moves
      event.stopPropagation();
      keys(...by);
    });
  }
  return {
    show(x, y, now = 0, text = "") {
      for (const circle of [hit, dot]) put(circle, { cx: area.x(x), cy: area.y(y) });
      if (keys) put(handle, { "aria-valuenow": now, "aria-valuetext": text });
    },
  };
}
