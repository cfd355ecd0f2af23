/* The views of which playgrounds are made, in SVG and HTML. Each view is { root, show }: `root` stands on the page, and
   `show` draws values into it. The state is the playground's alone: a view tells `changed` what a hand does to it and
   shows what it is told, so that everything on the page is drawn anew in the same frame. */

const DRAWN = new Set(["svg", "g", "rect", "line", "path", "text", "circle", "title"]);
const PAUSE = 700;  // ms without a change, after which the result is said in words

/* ------------------------------------------------------------------------------------------------ elements */

/* An element of HTML or SVG with its attributes and what stands in it. */
export function node(tag, attributes = {}, ...children) {
  const made = DRAWN.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  put(made, attributes);
  made.append(...children);
  return made;
}

/* Set attributes; one whose value is null or false is taken away, and one that is true is left empty. */
export function put(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : value);
  }
}

/* A number with so many decimals, as Python writes it but for -0.00. */
export function fixed(value, digits = 2) {
  return value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1");
}

/* Text in which d_k has its index below; names_like_this stay as they are. */
export const rich = (text) => text.split(/(?<=\b\w)_(\w)\b/).map((part, i) => (i % 2 ? node("sub", {}, part) : part));

export const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const rounded = (value, step) => Number((Math.round(value / step) * step).toFixed(8));
const indices = (count) => [...Array(count).keys()];

export const plain = (event) => !(event.ctrlKey || event.metaKey || event.altKey);

/* What an arrow key, Page Up, Page Down, Home or End makes of a value; null for every other key. */
function moved(event, value, step, low, high) {
  if (!plain(event)) return null;
  const by = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10 }[event.key];
  const to = by ? value + by * step : { Home: low, End: high }[event.key];
  if (to === undefined) return null;
  event.preventDefault();  // neither the page nor a slide moves
  event.stopPropagation();
  return clamp(rounded(to, step), low, high);
}

/* Let the pointer drag on an element: `at(event)` for each place, `end()` when it lets go. */
export function draggable(element, at, end) {
  let held = null;
  const stop = (event) => { if (event.pointerId === held) { held = null; end(); } };
  element.addEventListener("pointerdown", (event) => {
    if (event.button || held !== null) return;
    held = event.pointerId;
    element.setPointerCapture(held);
    at(event, true);
  });
  element.addEventListener("pointermove", (event) => { if (event.pointerId === held) at(event, false); });
  element.addEventListener("pointerup", stop);
  element.addEventListener("pointercancel", stop);
}

/* ------------------------------------------------------------------------------------------------ the stage */

/* The frame of a playground. `views` stand first and large; `controls` and the goals beneath. `draw(state)` shows a
   state in all of them; `words(state)` says it; `goals` are functions of a state, in the order of config.goals.
   Returns { build, change, state, remove }: `change(changes, settled)` sets a part of the state and draws it; a goal is
   reached by what is settled alone, not by what a drag passes by. What a model answers is no touch of the learner's:
   `byHand` false. */
export function stage({ root, config, kernel, start, goals, draw, words }) {
  let state = { ...start }, touched = false;
  const list = goalList(config.goals, goals), said = say();
  const views = node("div", { class: "play-views" }), controls = node("div", { class: "play-controls" });
  const reset = button({ text: "Back to the start", clicked: () => change(start) });
  const box = node("div", { class: "course-play", role: "group", "aria-label": config.title },
    node("strong", { class: "play-title" }, ...rich(config.title)), views,
    node("div", { class: "play-foot" }, controls, node("div", { class: "play-side" }, list.root, reset.root)), said.root);

  box.addEventListener("keydown", (event) => {  // letters are JupyterLab's commands, too, and arrows move its cells
    if (plain(event) && (event.key.length === 1 || (event.target.matches("input") && event.key !== "Escape"))) event.stopPropagation();
  });

  function change(changes, settled = true, byHand = true) {
    state = { ...state, ...changes };
    if (!touched && byHand) kernel?.send({ touched: true });
    touched ||= byHand;
    draw(state);
    said.show(() => words(state));
    if (settled && list.see(state)) kernel?.send({ reached: list.reached });
  }

  return {
    change,
    state: () => state,
    /* Put views and controls on the page and draw the state at the start. */
    build(viewed, controlled) {
      views.append(...viewed.map((view) => view.root));
      controls.append(...controlled.map((control) => control.root));
      draw(state);
      said.now(words(state));
      root.append(box);
    },
    remove() { said.stop(); box.remove(); },
  };
}

/* A line that says the result in words, on the page and for a screen reader, when nothing has changed for a while. */
export function say() {
  const root = node("p", { class: "play-said", role: "status" });
  let timer = 0, last = "";
  const now = (text) => { if (text !== last) root.replaceChildren(...rich(last = text)); };
  return {
    root, now,
    show(words) { clearTimeout(timer); timer = setTimeout(() => now(words()), PAUSE); },
    stop: () => clearTimeout(timer),
  };
}

/* The goals with a tick at each that was reached; `see(state)` returns whether there is a new one. */
export function goalList(texts, tests) {
  const said = node("strong", { role: "status" }, "Can you get there?");
  const items = texts.map((text) => node("li", {}, ...rich(text)));
  const root = node("div", { class: "play-goals", hidden: !texts.length }, said, node("ul", {}, ...items));
  const reached = texts.map(() => false);
  return {
    root, reached,
    see(state) {
      const fresh = indices(texts.length).filter((i) => !reached[i] && tests[i](state));
      for (const i of fresh) {
        reached[i] = true;
        items[i].className = "reached";
      }
      const count = reached.filter(Boolean).length;
      if (fresh.length) said.textContent = count < texts.length ? `${count} of ${texts.length} goals reached` : "All goals reached";
      root.classList.toggle("all", count === texts.length);
      return fresh.length > 0;
    },
  };
}

/* ------------------------------------------------------------------------------------------------ controls */

const row = (label, ...parts) => node("div", { class: "play-row" }, node("span", { class: "play-label" }, ...rich(label)), ...parts);

/* A slider with a number that can be typed. With `log`, the low and high ends and the step are powers of that number.
   `format` writes a value; `whole` keeps a typed value on the slider's steps. */
export function slider({ label, low, high, step, log = 0, format = fixed, whole = false, changed }) {
  const place = (value) => (log ? Math.log(value) / Math.log(log) : value), value = (at) => (log ? log ** at : at);
  const range = node("input", { type: "range", min: low, max: high, step, "aria-label": label });
  const number = node("input", { class: "play-number", inputmode: "decimal", "aria-label": `${label}, typed` });
  let shown = null;
  const show = (now) => {
    shown = now;
    range.value = place(now);
    put(range, { "aria-valuetext": format(now) });
    if (!number.matches(".typing")) number.value = format(now);
  };
  const typed = () => {
    const wanted = Number(number.value.trim().replace(",", ".") || NaN);
    number.classList.remove("typing");
    if (!Number.isFinite(wanted)) { show(shown); return; }
    const at = clamp(log && wanted <= 0 ? low : place(wanted), low, high);
    changed(value(whole ? low + rounded(at - low, step) : at), true);
    show(shown);
  };
  range.addEventListener("input", () => changed(value(Number(range.value)), false));
  range.addEventListener("change", () => changed(value(Number(range.value)), true));
  number.addEventListener("input", () => number.classList.add("typing"));
  number.addEventListener("change", typed);
  return { root: row(label, range, number), show };
}

/* A switch between no and yes. */
export function toggle({ label, changed, words = ["no", "yes"] }) {
  const root = node("button", { type: "button", class: "play-switch", role: "switch", "aria-label": label });
  root.addEventListener("click", () => changed(root.getAttribute("aria-checked") !== "true", true));
  return { root: row(label, root), show(on) { put(root, { "aria-checked": `${on}` }); root.textContent = words[Number(on)]; } };
}

/* One of a few options, each [words, value], side by side. */
export function choice({ label, options, changed }) {
  const name = `course-choice-${Math.random()}`;  // two scripts on a page do not know of each other
  const inputs = options.map(([, value]) => {
    const input = node("input", { type: "radio", name });
    input.addEventListener("change", () => changed(value, true));
    return input;
  });
  const labels = options.map(([words], i) => node("label", {}, inputs[i], node("span", {}, words)));
  const group = node("div", { class: "play-choice", role: "radiogroup", "aria-label": label }, ...labels);
  return { root: row(label, group), show: (now) => options.forEach(([, value], i) => { inputs[i].checked = value === now; }) };
}

/* A button; a playground has at most one that is `primary`. */
export function button({ text, clicked, primary = false }) {
  const root = node("button", { type: "button", class: primary ? "play-button primary" : "play-button" }, text);
  root.addEventListener("click", clicked);
  return { root, show(now) { root.textContent = now; } };
}

/* Buttons side by side behind one label. */
export function buttons(label, made) {
  return { root: row(label, node("div", { class: "play-buttons" }, ...made.map((one) => one.root))) };
}

/* ------------------------------------------------------------------------------------------------ views */

/* A view with a heading and, below it, a line of text. */
export function figure(label, content) {
  const note = node("figcaption", { class: "play-note" });
  return {
    root: node("figure", { class: "play-view" }, node("div", { class: "play-heading" }, label), content, note),
    note(text) { note.replaceChildren(...rich(text)); },
  };
}

/* A plot whose axes never change: `x` and `y` are [low, high], a tick is a number or [number, text].
   Returns the figure with `area` to draw into, the places `x(value)` and `y(value)`, and `line(colour)`, whose `show` takes points [[x, y], ...]. */
export function plot({ label, x, y, xTicks = [], yTicks = [], height = 200, role = "img" }) {
  const width = 320, left = 34, right = 4, top = 8, bottom = xTicks.length ? 22 : 8;
  const toX = (value) => left + ((value - x[0]) / (x[1] - x[0])) * (width - left - right);
  const toY = (value) => height - bottom - ((value - y[0]) / (y[1] - y[0])) * (height - top - bottom);
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, role, "aria-label": label });
  const ticks = (all) => all.map((tick) => (Array.isArray(tick) ? tick : [tick, `${tick}`.replace("-", "−")]));
  for (const [tick, text] of ticks(yTicks)) {
    svg.append(node("line", { class: tick ? "play-grid" : "play-zero", x1: left, x2: width - right, y1: toY(tick), y2: toY(tick) }),
      node("text", { x: left - 5, y: toY(tick) + 4, "text-anchor": "end" }, text));
  }
  for (const [tick, text] of ticks(xTicks)) svg.append(node("text", { x: toX(tick), y: height - 6, "text-anchor": "middle" }, text));
  const line = (colour) => {
    const path = svg.appendChild(node("path", { class: "play-line", stroke: colour }));
    return { show(points) { put(path, { d: points.map(([a, b], i) => `${i ? "L" : "M"}${toX(a)} ${toY(b)}`).join("") }); } };
  };
  return { ...figure(label, svg), area: svg, x: toX, y: toY, line, margins: [left / width, right / width], height };
}

/* Bars over a fixed axis, each with its number. With `changed(index, value, settled)` they can be dragged, moved by
   keys and typed, in steps of `step`, and `said(index)` says what a bar means. `show(values, ghosts)` draws them;
   a ghost is the dashed outline of another value beside each, cut off where the axis ends. */
export function bars({ label, names, low, high, ticks, colour, digits = 2, step = 0.1, changed = null, said = () => "", height }) {
  const area = plot({ label, x: [0, names.length], y: [low, high], yTicks: ticks, height, role: changed ? "group" : "img" });
  const wide = area.x(0.62) - area.x(0), span = (value) => {
    const from = area.y(clamp(value, low, high)), zero = area.y(0);
    return { y: Math.min(from, zero), height: Math.abs(zero - from) };
  };
  let shown = [];
  const items = names.map((name, i) => {
    const x = area.x(i + 0.19), bar = node("rect", { x, width: wide, fill: colour, rx: 1.5 });
    const ghost = node("rect", { class: "play-ghost", x: x - 3, width: wide + 6, rx: 2 });
    const handle = node("g", {}, ghost, bar);
    const number = node(changed ? "input" : "span", { class: "play-number", ...(changed && { inputmode: "decimal", "aria-label": `${name}, typed` }) });
    if (changed) {
      const grip = node("rect", { class: "play-grip", x: x - 2, width: wide + 4, height: 6, rx: 3 });
      handle.append(node("rect", { class: "play-hit", x: area.x(i), y: 0, width: area.x(1) - area.x(0), height: area.height }), grip);
      put(handle, { role: "slider", tabindex: 0, "aria-label": name, "aria-valuemin": low, "aria-valuemax": high, class: "play-handle" });
      draggable(handle, (event) => {
        const box = area.area.getBoundingClientRect(), at = ((event.clientY - box.top) / box.height) * area.height;
        const value = low + ((area.y(low) - at) / (area.y(low) - area.y(high))) * (high - low);
        changed(i, clamp(rounded(value, step), low, high), false);
      }, () => changed(i, null, true));
      handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });  // touch-action has no effect inside SVG
      handle.addEventListener("pointerdown", () => handle.focus({ preventScroll: true, focusVisible: false }));
      handle.addEventListener("keydown", (event) => {
        const to = moved(event, shown[i], step, low, high);
        if (to !== null) changed(i, to, true);
      });
      number.addEventListener("input", () => number.classList.add("typing"));
      number.addEventListener("change", () => {
        const wanted = Number(number.value.trim().replace(",", ".") || NaN);
        number.classList.remove("typing");
        if (Number.isFinite(wanted)) changed(i, clamp(wanted, low, high), true);
        else number.value = fixed(shown[i], digits);
      });
    }
    area.area.append(handle);
    return { handle, bar, ghost, number, grip: handle.querySelector(".play-grip") };
  });
  const cells = items.map(({ number }, i) => node("div", {}, number, node("span", {}, names[i])));
  const [left, right] = area.margins.map((share) => `${100 * share}%`);
  area.area.after(node("div", { class: "play-numbers", style: `padding: 0 ${right} 0 ${left}` }, ...cells));
  const show = (values, ghosts = []) => {
    shown = values;
    items.forEach(({ handle, bar, ghost, number, grip }, i) => {
      put(bar, span(values[i]));
      put(ghost, ghosts.length ? { display: null, ...span(ghosts[i]) } : { display: "none" });
      if (!changed) { number.textContent = fixed(values[i], digits); return; }
      put(grip, { y: area.y(values[i]) - 3 });
      put(handle, { "aria-valuenow": values[i], "aria-valuetext": `${fixed(values[i], digits)}${said(i)}` });
      if (!number.matches(".typing")) number.value = fixed(values[i], digits);
    });
  };
  return { ...area, show };
}

/* A table of numbers from -high to high as coloured squares. Pointing at a square, or moving the focus to it, lights up
   its row and column, and tells `lit(i, j)`, so that another map can follow by `light(i, j)`. `text` is what stands in a
   square and `said` what it means. With `painted` = { is(i, j), set(i, j, on), end() } squares are painted: a stroke of
   the pointer sets all squares that it passes over to the state that the first one had not; Space turns one, and Shift
   with an arrow key takes its state along. */
export function heatMap({ label, rows, columns, high = 1, text = (value) => fixed(value), said = () => "", lit = () => {}, painted = null }) {
  const heads = columns.map((name) => node("th", { scope: "col" }, node("span", {}, name)));
  const sides = rows.map((name) => node("th", { scope: "row" }, name));
  const square = (i, j) => node("td", { "data-at": `${i} ${j}`, ...(painted && { role: "gridcell", tabindex: i + j ? -1 : 0 }) });
  const squares = rows.map((_, i) => columns.map((_, j) => square(i, j))), role = painted ? "row" : null;
  const kind = `play-map${painted ? " painted" : ""}${rows.some((name) => name.length > 3) ? " words" : ""}`;
  const table = node("table", { class: kind, "aria-label": label, role: painted ? "grid" : null },
    node("thead", {}, node("tr", { role }, node("td", {}), ...heads)),
    node("tbody", {}, ...rows.map((_, i) => node("tr", { role }, sides[i], ...squares[i]))));
  const place = (target) => (table.contains(target) && target.closest("td[data-at]")?.dataset.at.split(" ").map(Number)) || null;
  const light = (at, to) => {
    sides.forEach((head, i) => head.classList.toggle("lit", i === at));
    heads.forEach((head, j) => head.classList.toggle("lit", j === to));
    squares.forEach((cells, i) => cells.forEach((cell, j) => cell.classList.toggle("lit", i === at || j === to)));
  };
  const look = (at) => { light(...(at ?? [-1, -1])); lit(...(at ?? [-1, -1])); };
  for (const come of ["pointerover", "focusin"]) table.addEventListener(come, (event) => look(place(event.target)));
  for (const go of ["pointerleave", "focusout"]) table.addEventListener(go, () => look(null));
  if (painted) paintable(table, squares, place, look, painted);
  return {
    ...figure(label, table), light,
    /* Draw numbers; `hidden[i][j]` squares have a cross. */
    show(numbers, hidden = null) {
      numbers.forEach((values, i) => values.forEach((value, j) => {
        const cell = squares[i][j], off = hidden?.[i][j] ?? false, words = off ? "×" : text(value);
        if (cell.textContent !== words) cell.textContent = words;
        cell.style.setProperty("--share", off ? "0%" : `${(100 * clamp(Math.abs(value) / high, 0, 1)).toFixed(1)}%`);
        cell.classList.toggle("minus", value < 0);
        cell.classList.toggle("off", off);
        if (painted) put(cell, { "aria-label": said(i, j), "aria-selected": `${value > 0}` });
      }));
    },
  };
}

/* The strokes of a heat map that is painted. */
export function paintable(table, squares, place, look, { is, set, end }) {
  let last = null, ink = false, focused = squares[0][0];
  const focus = (cell) => { put(focused, { tabindex: -1 }); put(cell, { tabindex: 0 }); focused = cell; cell.focus({ preventScroll: true }); };
  const paint = (at) => { set(...at, ink); look(at); };
  draggable(table, (event, first) => {
    const to = [event.clientX, event.clientY], from = first ? to : last;
    const steps = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / 8) || 1;  // a fast pointer leaves no square out
    for (let step = 1; step <= steps; step++) {
      const at = place(table.getRootNode().elementFromPoint(...[0, 1].map((k) => from[k] + ((to[k] - from[k]) * step) / steps)));
      if (!at) continue;
      if (first) { ink = !is(...at); focus(squares[at[0]][at[1]]); }
      paint(at);
    }
    last = to;
  }, end);
  table.addEventListener("keydown", (event) => {
    const at = place(event.target), by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!at || !(by || event.key === " ") || !plain(event)) return;
    event.preventDefault();
    event.stopPropagation();
    const to = by ? [at[0] + by[0], at[1] + by[1]] : at, cell = squares[to[0]]?.[to[1]];
    if (!cell) return;
    if (by) focus(cell);
    if (by && !event.shiftKey) return;
    ink = by ? is(...at) : !is(...at);
    paint(to);
    end();
  });
}

/* A text in coloured tokens: `show` takes [{ text, colour, strength, title }], with a strength from 0 to 1. */
export function tokens({ label, clicked = null }) {
  const root = node("div", { class: "play-tokens" });
  root.addEventListener("click", (event) => {
    const at = [...root.children].indexOf(event.target.closest(".play-tokens > *"));
    if (clicked && at >= 0) clicked(at);
  });
  return {
    ...figure(label, root),
    show(items) {
      root.replaceChildren(...items.map(({ text, colour = "var(--plus)", strength = 0, title = null }) =>
        node(clicked ? "button" : "span", { title, style: `--token: ${colour}; --share: ${(100 * strength).toFixed(1)}%` }, text)));
    },
  };
}

/* Next tokens with their probabilities as bars; `show` takes [[token, probability, before], ...], where a paler bar shows
   the probability that it had before. A space shows as ␣ and the end of a line as ⏎. */
export function nextTokens({ label, clicked = null }) {
  const list = node("ol", { class: "play-next" });
  return {
    ...figure(label, list),
    show(chances) {
      list.replaceChildren(...chances.map(([token, chance, before = chance], i) => {
        const name = node(clicked ? "button" : "code", {}, token.replaceAll(" ", "␣").replaceAll("\n", "⏎"));
        if (clicked) name.addEventListener("click", () => clicked(token, i));
        return node("li", {}, name, node("i", { style: `--share: ${(100 * chance).toFixed(2)}%; --before: ${(100 * before).toFixed(2)}%` }), node("span", {}, `${(100 * chance).toFixed(1)} %`));
      }));
    },
  };
}
