/* A map of digits on which one is chosen: its picture, its neighbours, and where its changed views land (lesson 02). */
import { stage, choice, draggable, figure, fixed, node, plain, put, slider } from "./kit.js";
import { newest } from "./newest.js";
import { bytesOf, mapRows, paintPixels } from "./images.js";

const MAP_SIDE = 400;  // of the map, in its own units
const embeddingArticle = (digit) => `${digit === 8 ? "an" : "a"} ${digit}`;

/* What the kernel answers: the pixels of the views, then for each kind of features of each view x, y and the nearest. */
export function landing(numbers, { side, views, maps }) {
  const size = side ** 2, from = (k, v) => views * size + 3 * (k * views + v), all = [...Array(views).keys()];
  const lands = Object.keys(maps).map((name, k) => [name, all.map((v) => ({ place: [...numbers.slice(from(k, v), from(k, v) + 2)], nearest: numbers[from(k, v) + 2] }))]);
  return { images: all.map((v) => numbers.slice(v * size, (v + 1) * size)), lands: Object.fromEntries(lands) };
}

const landedWhere = (now) => now.its && ["point", "crop", "turn", "light"].every((name) => now.its[name] === now[name]);
const atHome = ({ its, point }, name, { labels }) => its.lands[name].filter(({ nearest }) => labels[nearest] === labels[point - 1]).length;

export function embeddingGoals(config) {
  const { views, labels, maps } = config;
  return [
    (now) => atHome(now, "SimCLR", config) === views && atHome(now, "pixels", config) <= views / 2,
    (now) => now.features === "SimCLR" && atHome(now, "SimCLR", config) < views / 2,
    ({ features, point }) => {
      const near = maps.SimCLR.near[point - 1];
      return features === "SimCLR" && near.filter((n) => labels[n] === labels[point - 1]).length < near.length / 2;
    },
  ];
}

export function embeddingWords(now, config) {
  const { labels, maps, names, views } = config, its = embeddingArticle(labels[now.point - 1]);
  const near = maps[now.features].near[now.point - 1].map((n) => labels[n]).join(", ");
  const stay = landedWhere(now) ? ` ${atHome(now, now.features, config)} of its ${views} changed views land nearest to ${its}.` : "";
  return `The map by ${names[now.features]}. Picture ${now.point} is ${its}; its nearest: ${near}.${stay}`;
}

/* The picture, among those at these places, that is nearest to `from` in the direction [right, down]; -1 where none is. */
function nextInDirection(places, from, [right, down]) {
  const far = places.map(([x, y]) => {
    const [a, b] = [x - places[from][0], y - places[from][1]], along = a * right + b * down, across = Math.abs(a * down) + Math.abs(b * right);
    return along > 0 && across <= along ? Math.hypot(a, b) : Infinity;
  });
  return Math.min(...far) < Infinity ? far.indexOf(Math.min(...far)) : -1;
}

export function embedding({ root, config: given, kernel }) {
  const config = kernel ? given : { ...given, goals: given.goals.slice(2) };  // without a kernel nothing is changed
  const { labels, colours, maps, names, side, views } = config, start = { features: "SimCLR", point: 50, crop: 0.5, turn: 20, light: 0.4, its: null };
  const packed = bytesOf(config.digits);  // two pixels in each byte, 4 bits of grey for each
  const bytes = Uint8Array.from({ length: 2 * packed.length }, (_, n) => 17 * ((packed[n >> 1] >> (n % 2 ? 0 : 4)) & 15));
  const pictures = labels.map((_, n) => Float32Array.from(bytes.subarray(n * side ** 2, (n + 1) * side ** 2), (byte) => byte / 255));
  let held = false, places = [];

  /* Places of a map on the page, in a square with a margin. */
  const onPage = (all, of = all) => {
    const [low, high] = [Math.min, Math.max].map((end) => [0, 1].map((k) => end(...of.map((place) => place[k])))), reach = 1.08 * Math.max(high[0] - low[0], high[1] - low[1]);
    return all.map(([x, y]) => [(0.5 + (x - (low[0] + high[0]) / 2) / reach) * MAP_SIDE, (0.5 - (y - (low[1] + high[1]) / 2) / reach) * MAP_SIDE]);
  };
  const texts = labels.map((label) => node("text", { class: "play-digit", "text-anchor": "middle", style: `--digit: ${colours[label]}` }, `${label}`));
  const lines = node("path", { class: "play-lands" }), marks = node("g"), ring = node("circle", { class: "play-ring", r: 12 });
  const svg = node("svg", { viewBox: `0 0 ${MAP_SIDE} ${MAP_SIDE}`, class: "play-digits", tabindex: 0, role: "slider", "aria-valuemin": 1, "aria-valuemax": labels.length, "aria-label": "Picture on the map; arrow keys: to the next one there" }, lines, ...texts, marks, ring);
  const map = figure("Click a digit, or drag over the map", svg);
  const touch = (changes, settled = true) => { held = !settled; change(changes, settled); };
  draggable(svg, (event, first) => {
    if (first) svg.focus({ preventScroll: true, focusVisible: false });
    const box = svg.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * MAP_SIDE, y = ((event.clientY - box.top) / box.height) * MAP_SIDE;
    const far = places.map(([a, b]) => Math.hypot(a - x, b - y));
    touch({ point: 1 + far.indexOf(Math.min(...far)) }, false);
  }, () => touch({}));
  svg.addEventListener("keydown", (event) => {
    const by = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    if (!by || !plain(event)) return;
    event.preventDefault();
    event.stopPropagation();
    const to = nextInDirection(places, state().point - 1, by);
    if (to >= 0) touch({ point: to + 1 });
  });
  const near = mapRows({ label: "The picture, and the five nearest to it", sides: [Array(6).fill(side)], captions: [""], paint: paintPixels });
  const changed = mapRows({ label: "Its changed views (◆)", sides: [Array(views / 2).fill(side), Array(views / 2).fill(side)], captions: ["", ""], paint: paintPixels });
  const features = choice({ label: "Features", options: Object.entries(names).map(([name, words]) => [words, name]), changed: (name) => touch({ features: name }) });
  const strength = (name, label, high, step, digits) => slider({ label, low: 0, high, step, format: (value) => fixed(value, digits), changed: (value, settled) => touch({ [name]: Number(value.toFixed(2)) }, settled) });
  const strengths = { crop: strength("crop", "Crop (fraction)", 0.9, 0.1, 1), turn: strength("turn", "Turn (± degrees)", 90, 5, 0), light: strength("light", "Light (strength)", 1, 0.1, 1) };

  const landed = newest({
    read: async ({ point, crop, turn, light }) => ({ point, crop, turn, light, ...landing(await kernel.ask("land", { point, crop, turn, light }), config) }),
    done: (its) => change({ its }, !held, false),
    failed: (error) => changed.note(error.message),
  });

  function draw(now) {
    const all = maps[now.features].places, at = now.point - 1, ids = maps[now.features].near[at], here = landedWhere(now) ? now.its : null;
    places = onPage(all);
    texts.forEach((text, n) => put(text, { x: places[n][0], y: places[n][1] + 4.5, class: ids.includes(n) ? "play-digit near" : "play-digit" }));
    put(ring, { cx: places[at][0], cy: places[at][1] });
    put(svg, { "aria-valuenow": now.point, "aria-valuetext": `picture ${now.point}, ${embeddingArticle(labels[at])}` });
    const lands = here ? onPage(here.lands[now.features].map(({ place }) => place), all) : [];
    put(lines, { d: lands.map(([x, y]) => `M${places[at].join(" ")}L${x} ${y}`).join("") });
    marks.replaceChildren(...lands.map(([x, y]) => node("path", { class: "play-land", d: `M${x - 6} ${y}l6 -6l6 6l-6 6Z` })));
    near.show([[at, ...ids].map((n) => pictures[n])], [`picture ${now.point}: ${embeddingArticle(labels[at])}; the nearest: ${ids.map((n) => labels[n]).join(", ")}`]);
    features.show(now.features);
    for (const [name, control] of Object.entries(strengths)) control.show(now[name]);
    if (!kernel) return;
    if (!here) landed.ask(now);
    if (!now.its) return;
    changed.show([now.its.images.slice(0, views / 2), now.its.images.slice(views / 2)]);
    if (here) changed.note(`nearest to ${embeddingArticle(labels[at])}: ${Object.entries(names).map(([name, words]) => `${atHome(now, name, config)} of ${views} by ${words}`).join(", ")}`);
  }

  const goals = embeddingGoals(config).slice(kernel ? 0 : 2).map((goal) => (now) => (!kernel || Boolean(landedWhere(now))) && goal(now));
  const { build, change, state, remove } = stage({ root, config, kernel, start, goals, draw, words: (now) => embeddingWords(now, config) });
  map.note("Large, underlined: the five nearest to the chosen one.");
  build(kernel ? [map, near, changed] : [map, near], kernel ? [features, ...Object.values(strengths)] : [features]);
  return () => { landed.close(); remove(); };
}
