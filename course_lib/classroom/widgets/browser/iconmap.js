/* Hundreds of drawings at the places of their features, to fly over, to search and to ask for neighbours (lesson 02). */
import { stage, choice, clamp, figure, node, plain, put } from "./kit.js";
import { textBox } from "./text.js";
import { bytesOf } from "./images.js";

const CLOSEST = 24, FLIGHT = 700, STILL = 5;  // the largest zoom; ms; pixels that a click may move
const queryOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean).join(" ");

/* The config as Python sends it, with a name, a designer, places from -1 to 1 and neighbours for each drawing. */
export function iconConfig(config) {
  const { called, designers, grid, nearest } = config, count = config.things.length;
  const rows = (numbers, width) => Array.from({ length: count }, (_, n) => numbers.slice(n * width, (n + 1) * width));
  const each = (of, turn) => Object.fromEntries(Object.entries(of).map(([name, text]) => [name, turn([...new Uint16Array(bytesOf(text).buffer)])]));
  return {
    ...config, things: config.things.map((n) => called[n]), hands: config.hands.map((n) => designers[n]),
    places: each(config.places, (numbers) => rows(numbers.map((value) => (2 * value) / grid - 1), 2)), near: each(config.near, (numbers) => rows(numbers, nearest)),
  };
}

/* The drawings whose names have these words; none for no words. */
export function iconsFound(query, { things }) {
  const words = queryOf(query);
  return words ? [...things.keys()].filter((n) => things[n].includes(words)) : [];
}

const sameThings = (name, n, { near, things }) => near[name][n].map((other) => things[other] === things[n]);

export function iconGoals(config) {
  const { things, fewest } = config, first = (name, n) => sameThings(name, n, config)[0];
  return [
    ({ features, point }) => features === "h" && first("h", point - 1),
    ({ point }) => first("pixels", point - 1) && !first("h", point - 1),
    ({ features, query }) => {
      const rows = iconsFound(query, config), one = new Set(rows.map((n) => things[n])).size === 1;
      return features === "h" && one && rows.length >= fewest && rows.every((n) => first("h", n));
    },
  ];
}

export function iconWords({ features, point, query }, config) {
  const { things, hands, near, names } = config, its = near[features][point - 1], called = (n) => `${things[n]} by ${hands[n]}`;
  const same = sameThings(features, point - 1, config).filter(Boolean).length, words = queryOf(query);
  const found = words ? ` “${words}” finds ${iconsFound(words, config).length} of ${things.length} drawings.` : "";
  return `The map by ${names[features]}. Chosen: ${called(point - 1)}. Nearest by other designers: ${its.map(called).join(", ")}. ${same} of ${its.length} show the same thing.${found}`;
}

/* The drawing, of those at these places, that is nearest to number `from` in a direction; -1 where there is none. */
function iconInDirection(places, from, [right, down]) {
  let best = -1, least = Infinity;
  places.forEach(([x, y], n) => {
    const a = x - places[from][0], b = places[from][1] - y, along = a * right + b * down, across = Math.abs(a * down) + Math.abs(b * right);
    const far = along + 2 * across;
    if (along > 0 && across <= along && far < least) [best, least] = [n, far];
  });
  return best;
}

const mixed = (one, other, at) => one.map((value, k) => value + (other[k] - value) * at);
const eased = (at) => at * at * (3 - 2 * at);

export function iconmap({ root, config: sent, kernel }) {
  const config = iconConfig(sent), { things, hands, places: layouts, near, side, columns } = config;
  const canvas = node("canvas", { class: "play-flown", tabindex: 0, role: "slider", "aria-label": "Map of the drawings. Arrow keys: the next drawing; plus and minus: zoom; Shift with an arrow key: move; Home: all",
    "aria-valuemin": 1, "aria-valuemax": things.length });
  const context = canvas.getContext("2d"), sheet = new Image(), fingers = new Map();
  let size = [1, 1], camera = { at: [0, 0], zoom: 1 }, places = layouts[config.start.features], lit = new Set(), over = null;
  let moves = {}, frame = 0, shown = null, watch = null;  // `moves`: what is on its way, by name: { begun, step(0 to 1) }

  /* ------------------------------------------------------------------------------------------ where things are */

  const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  const unit = (k) => 0.465 * size[k] * camera.zoom;  // pixels for 1 on the map, across and up
  const onCanvas = ([x, y]) => [size[0] / 2 + (x - camera.at[0]) * unit(0), size[1] / 2 - (y - camera.at[1]) * unit(1)];
  const onMap = ([x, y]) => [camera.at[0] + (x - size[0] / 2) / unit(0), camera.at[1] - (y - size[1] / 2) / unit(1)];
  const iconSide = () => clamp(0.036 * Math.sqrt(size[0] * size[1] * camera.zoom), 12, 64);
  const place = ({ clientX, clientY }) => { const box = canvas.getBoundingClientRect(); return [clientX - box.left, clientY - box.top]; };
  const within = (at) => at.map((value) => clamp(value, -1, 1));

  /* The drawing under a point of the canvas; -1 where there is none. */
  function under([x, y]) {
    let best = -1, least = 0.62 * iconSide();
    places.forEach((at, n) => {
      const [a, b] = onCanvas(at), far = Math.max(Math.abs(a - x), Math.abs(b - y));
      if (far < least) [best, least] = [n, far];
    });
    return best;
  }

  /* ------------------------------------------------------------------------------------------ motion */

  function paintSoon() { frame ||= requestAnimationFrame(tick); }

  function move(name, step) {
    if (calm()) { delete moves[name]; step(1); } else moves[name] = { begun: performance.now(), step };
    paintSoon();
  }

  function tick(now) {
    frame = 0;
    for (const [name, { begun, step }] of Object.entries(moves)) {
      const at = clamp((now - begun) / FLIGHT, 0, 1);
      step(eased(at));
      if (at === 1) delete moves[name];
    }
    paint();
    if (Object.keys(moves).length) paintSoon();
  }

  /* Fly to a place; on the way, the zoom is the mean of both in steps of equal factors. */
  function fly(at, zoom) {
    const from = camera, to = { at: within(at), zoom: clamp(zoom, 1, CLOSEST) };
    move("camera", (share) => { camera = { at: mixed(from.at, to.at, share), zoom: from.zoom * (to.zoom / from.zoom) ** share }; });
  }

  /* Fly so that these drawings are seen at the places of a layout. */
  function flyTo(rows, layout) {
    const all = rows.map((n) => layout[n]), ends = [Math.min, Math.max].map((end) => [0, 1].map((k) => end(...all.map((at) => at[k]))));
    const reach = Math.max(ends[1][0] - ends[0][0], ends[1][1] - ends[0][1], 0.16);
    fly(mixed(ends[0], ends[1], 0.5), Math.min(1.5 / reach, 9));
  }

  function zoomAt(point, factor) {
    const before = onMap(point);
    delete moves.camera;
    camera = { at: camera.at, zoom: clamp(camera.zoom * factor, 1, CLOSEST) };
    const after = onMap(point);
    camera = { ...camera, at: within(camera.at.map((value, k) => value + before[k] - after[k])) };
    paintSoon();
  }

  function pan(by) {
    delete moves.camera;
    camera = { ...camera, at: within([camera.at[0] - by[0] / unit(0), camera.at[1] + by[1] / unit(1)]) };
    paintSoon();
  }

  /* ------------------------------------------------------------------------------------------ drawing */

  function icon(to, n, [x, y], wide) {
    to.drawImage(sheet, side * (n % columns) + 0.5, side * Math.floor(n / columns) + 0.5, side - 1, side - 1, x - wide / 2, y - wide / 2, wide, wide);  // without the half pixel its neighbours on the sheet shine in
  }

  function ring([x, y], radius, colour, width) {
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    Object.assign(context, { strokeStyle: colour, lineWidth: width });
    context.stroke();
  }

  function paint() {
    if (!sheet.complete || !shown) return;
    const colours = getComputedStyle(canvas), density = devicePixelRatio, wide = iconSide(), tile = colours.borderBottomColor;
    const chosen = over ?? shown.point - 1, its = near[shown.features][chosen];
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, ...size);
    const seen = [];
    places.forEach((at, n) => {
      const [x, y] = onCanvas(at);
      if (x > -wide && y > -wide && x < size[0] + wide && y < size[1] + wide) seen.push([n, [x, y]]);
    });
    context.fillStyle = tile;
    const one = ([n, at], larger = 1) => {
      if (!colours.borderBottomColor.endsWith(" 0)")) {
        context.beginPath();
        context.roundRect(at[0] - 0.56 * wide * larger, at[1] - 0.56 * wide * larger, 1.12 * wide * larger, 1.12 * wide * larger, 0.22 * wide);
        context.fill();
      }
      icon(context, n, at, wide * larger);
    };
    const above = ([n]) => lit.has(n) || n === chosen || its.includes(n);
    context.globalAlpha = lit.size ? 0.22 : 1;
    seen.filter((each) => !above(each)).forEach((each) => one(each));
    context.globalAlpha = 1;
    const from = onCanvas(places[chosen]);
    for (const n of its) {
      const to = onCanvas(places[n]);
      context.beginPath();
      context.moveTo(...from);
      context.lineTo(...to);
      Object.assign(context, { strokeStyle: colours.outlineColor, lineWidth: 2 });
      context.stroke();
    }
    seen.filter(above).forEach((each) => one(each, each[0] === chosen ? 1.3 : 1));
    seen.filter(([n]) => lit.has(n)).forEach(([, at]) => ring(at, 0.78 * wide, colours.borderTopColor, 2.5));
    seen.filter(([n]) => its.includes(n)).forEach(([, at]) => ring(at, 0.7 * wide, colours.outlineColor, 2));
    ring(from, 0.95 * wide, colours.color, 2.5);
    if (over !== null) label(`${things[chosen]} by ${hands[chosen]}`, from, wide, colours);
  }

  function label(text, [x, y], wide, { color, backgroundColor, fontFamily }) {
    context.font = `13px ${fontFamily}`;
    const long = context.measureText(text).width + 12, left = clamp(x - long / 2, 2, size[0] - long - 2), top = y > 34 + wide ? y - wide - 28 : y + wide + 6;
    Object.assign(context, { fillStyle: backgroundColor, strokeStyle: color, lineWidth: 1 });
    context.beginPath();
    context.roundRect(left, top, long, 22, 4);
    context.fill();
    context.stroke();
    Object.assign(context, { fillStyle: color, textBaseline: "middle" });
    context.fillText(text, left + 6, top + 11.5);
  }

  /* ------------------------------------------------------------------------------------------ hands */

  const choose = (n, settled = true) => change({ point: n + 1 }, settled);
  let begun = null, far = 0;
  const spread = () => { const [a, b] = [...fingers.values()]; return [Math.hypot(a[0] - b[0], a[1] - b[1]), mixed(a, b, 0.5)]; };
  function look(n) {
    const now = n < 0 ? null : n;
    if (now === over) return;
    over = now;
    canvas.style.cursor = now === null ? "" : "pointer";
    panel(now ?? shown.point - 1);
    paintSoon();
  }
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true, focusVisible: false });
    fingers.set(event.pointerId, place(event));
    [begun, far] = [place(event), fingers.size > 1 ? Infinity : 0];
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId), to = place(event);
    if (!before) { if (event.pointerType === "mouse") look(under(to)); return; }
    const [was, middle] = fingers.size > 1 ? spread() : [1, before];
    fingers.set(event.pointerId, to);
    if (fingers.size > 1) {
      const [is, at] = spread();
      pan([at[0] - middle[0], at[1] - middle[1]]);
      zoomAt(at, is / Math.max(was, 1));
      return;
    }
    far = Math.max(far, Math.hypot(to[0] - begun[0], to[1] - begun[1]));
    if (far > STILL) { look(-1); pan([to[0] - before[0], to[1] - before[1]]); }
  });
  const lift = (event) => {
    if (!fingers.delete(event.pointerId) || far > STILL || event.type !== "pointerup") return;
    const n = under(place(event));
    if (n >= 0) choose(n);
  };
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, lift);
  canvas.addEventListener("pointerleave", () => look(-1));
  canvas.addEventListener("wheel", (event) => {  // the page scrolls on until the map was clicked
    const factor = Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015));
    if (!(event.ctrlKey || canvas.matches(":focus")) || (camera.zoom === 1 && factor < 1)) return;
    event.preventDefault();
    zoomAt(place(event), factor);
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => zoomAt(place(event), 2));
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    const factor = { "+": 1.3, "=": 1.3, "-": 1 / 1.3 }[event.key];
    if (!(by || factor || event.key === "Home") || !plain(event)) return;
    event.preventDefault();
    event.stopPropagation();
    if (factor) zoomAt(onCanvas(within(camera.at)), factor);
    else if (event.key === "Home") fly([0, 0], 1);
    else if (event.shiftKey) pan(by.map((value) => -60 * value));
    else {
      const n = iconInDirection(layouts[shown.features], shown.point - 1, by);
      if (n >= 0) { choose(n); follow(n); }
    }
  });

  /* Keep a drawing in sight. */
  function follow(n) {
    const at = layouts[shown.features][n], [x, y] = onCanvas(at);
    if (x < 40 || y < 40 || x > size[0] - 40 || y > size[1] - 40) fly(at, camera.zoom);
  }

  /* ------------------------------------------------------------------------------------------ beside the map */

  const portrait = node("canvas", { class: "play-portrait", width: 3 * side, height: 3 * side, "aria-hidden": "true" }), called = node("div", { class: "play-called" });
  const neighbours = near.h[0].map((_, k) => {
    const small = node("canvas", { width: 2 * side, height: 2 * side, "aria-hidden": "true" }), words = node("span"), made = node("button", { type: "button", class: "play-neighbour" }, small, words);
    made.addEventListener("click", () => { const n = near[shown.features][shown.point - 1][k]; choose(n); follow(n); });
    return { small, words, made };
  });
  const list = node("ol", { class: "play-neighbours" }, ...neighbours.map(({ made }) => node("li", {}, made)));
  function picture(to, n) {
    const its = to.getContext("2d");
    its.clearRect(0, 0, to.width, to.height);
    if (sheet.complete) icon(its, n, [to.width / 2, to.height / 2], to.width);
  }
  function panel(n) {
    picture(portrait, n);
    called.replaceChildren(node("b", {}, things[n]), ` by ${hands[n]}`);
    near[shown.features][n].forEach((other, k) => {
      const { small, words, made } = neighbours[k], same = things[other] === things[n];
      picture(small, other);
      words.replaceChildren(things[other], node("small", {}, ` by ${hands[other]}`), same ? node("i", {}, " ✓ same thing") : "");
      made.classList.toggle("same", same);
    });
  }

  /* ------------------------------------------------------------------------------------------ the playground */

  const zooms = [["+", "Zoom in", () => zoomAt([size[0] / 2, size[1] / 2], 1.6)], ["−", "Zoom out", () => zoomAt([size[0] / 2, size[1] / 2], 1 / 1.6)], ["All", "Show all drawings", () => fly([0, 0], 1)]].map(([text, words, clicked]) => {
    const made = node("button", { type: "button", class: "play-button", "aria-label": words, title: words }, text);
    made.addEventListener("click", clicked);
    return made;
  });
  const map = figure("Drag to move, scroll or pinch to zoom, click a drawing", node("div", { class: "play-flight" }, canvas, node("div", { class: "play-zooms" }, ...zooms)));
  const beside = figure("Chosen, and its nearest by other designers", node("div", { class: "play-beside" }, node("div", { class: "play-chosen-icon" }, portrait, called), list));
  const features = choice({ label: "Features", options: Object.entries(config.names).map(([name, words]) => [words, name]), changed: (name) => change({ features: name }) });
  const search = textBox({ label: "Search", examples: config.examples, most: 40, live: true, changed: (query, settled) => change({ query }, settled) });

  function draw(now) {
    const before = shown, layout = layouts[now.features];
    shown = now;
    features.show(now.features);
    search.show(now.query);
    if (before && before.features !== now.features) {
      const from = places;
      move("places", (share) => { places = share === 1 ? layout : from.map((at, n) => mixed(at, layout[n], share)); });
    }
    const rows = iconsFound(now.query, config);
    if (before && before.query !== now.query) {
      lit = new Set(rows);
      if (rows.length) flyTo(rows, layout);
      else if (!queryOf(now.query)) fly([0, 0], 1);
    }
    const none = queryOf(now.query) && !rows.length;
    map.note(none ? `No name has “${queryOf(now.query)}” in it. There are, for example, ${config.examples.join(", ")}.` : queryOf(now.query) ? `${rows.length} drawings in orange rings are found. Blue rings: the five nearest.` : "Blue rings and lines: the five nearest to the chosen drawing. Scrolling zooms once the map was clicked.");
    over = null;
    panel(now.point - 1);
    put(canvas, { "aria-valuenow": now.point, "aria-valuetext": `${things[now.point - 1]} by ${hands[now.point - 1]}; nearest: ${near[now.features][now.point - 1].map((n) => things[n]).join(", ")}` });
    paintSoon();
  }

  const { build, change, remove } = stage({ root, config, kernel, start: config.start, goals: iconGoals(config), draw, words: (now) => iconWords(now, config) });
  build([map, beside], [features, search]);
  map.root.classList.add("play-map-view");
  sheet.onload = () => { panel(shown.point - 1); paintSoon(); };
  sheet.src = `data:image/webp;base64,${config.sheet}`;
  watch = new ResizeObserver(() => {
    size = [canvas.clientWidth, canvas.clientHeight];
    put(canvas, { width: Math.round(size[0] * devicePixelRatio), height: Math.round(size[1] * devicePixelRatio) });
    paintSoon();
  });
  watch.observe(canvas);
  canvas.addEventListener("transitionend", paintSoon);  // the theme has changed
  return () => { cancelAnimationFrame(frame); watch.disconnect(); moves = {}; remove(); };
}
