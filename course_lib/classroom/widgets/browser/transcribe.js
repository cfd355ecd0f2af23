/* A melody that a Conformer has heard: its frames, the probabilities of the symbols, and CTC's collapsing (lesson 15). */
import { stage, choice, draggable, figure, fixed, node, plain, put, slider } from "./kit.js";
import { plane } from "./plane.js";
import { bytesOf, cividis, paintColours } from "./images.js";

const LINE_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#7a4fb5", "#b00020"];

/* What was heard in a state: frames (T, bands) from 0 to 1, probabilities (t, symbols), and the texts. */
export function melodyHeard({ melody, noise, pause }, config) {
  const { names, blank, heard, bands, levels } = config;
  const its = heard[melody][Math.round(pause / config.pause.step)][Math.round(noise / config.noise.step)], packed = bytesOf(its.frames);
  const frames = Float32Array.from({ length: 2 * packed.length }, (_, n) => ((packed[n >> 1] >> (n % 2 ? 0 : 4)) & 15) / levels);
  const bytes = bytesOf(its.probs), count = names.length + 1, all = Array.from({ length: bytes.length / count }, (_, t) => [...bytes.subarray(t * count, (t + 1) * count)]);
  const path = all.map((row) => row.indexOf(Math.max(...row))), symbol = (number) => (number ? names[number - 1] : blank);
  return {
    frames, length: frames.length / bands, begins: its.begins, probs: all.map((row) => row.map((value) => value / 255)),
    path: path.map(symbol), merged: withoutRepetitions(path).map(symbol), found: withoutRepetitions(path).filter(Boolean).map(symbol),
    played: [...melody], baseline: [...its.baseline],
  };
}

/* The first step of CTC's collapsing: repetitions become one symbol. The second takes the blanks away. */
const withoutRepetitions = (path) => path.filter((symbol, t) => symbol !== path[t - 1]);

const alikeLists = (one, other) => one.join() === other.join();
const verdict = (found, played) => (alikeLists(found, played) ? "correct" : "wrong");

export const melodyGoals = [
  (_, { baseline, found, played }) => !alikeLists(baseline, played) && alikeLists(found, played),
  ({ noise, pause }, { found, played }) => played.some((tone, i) => tone === played[i + 1]) && pause === 0 && noise >= 2 && alikeLists(found, played),
  (_, { found, played }) => found.length > played.length,
];

export function melodyWords({ played, path, found, baseline }) {
  const said = (tones) => `${tones.join(" ") || "(nothing)"}, ${verdict(tones, played)}.`;
  return `Played: ${played.join(" ")}. Greedy path: ${path.join(" ")}. Collapsed: ${said(found)} Nearest clean tone in each frame: ${said(baseline)}`;
}

export function transcribe({ root, config, kernel }) {
  const { names, bands, each, blank, melodies } = config, known = new Map();
  const heard = (now) => {
    const key = [now.melody, now.noise, now.pause].join();
    if (!known.has(key)) known.set(key, melodyHeard(now, config));
    return known.get(key);
  };
  const longest = Math.max(...Object.keys(config.heard).map((melody) => melody.length)) * (16 + config.pause.high) + config.pause.high;

  const energies = node("canvas", { class: "play-energies", height: bands, width: 1, role: "img" });
  const sound = figure("Heard: log energies, low tones below", node("div", { class: "play-sound" }, energies));
  const area = plane({ label: "Probability of each symbol; drag to a frame", x: [0, longest], y: [0, 1.15], yTicks: [0, 0.5, 1], xLabel: "", height: 150, role: "group" });
  const blanks = area.area.appendChild(node("path", { class: "play-blanks" }));
  const lines = names.map((_, i) => area.line(LINE_COLOURS[i % LINE_COLOURS.length])), letters = node("g"), cursor = node("line", { class: "play-now", y1: area.y(1.15), y2: area.y(0) });
  const hit = node("rect", { class: "play-hit", x: area.x(0), y: area.y(1.15), width: area.x(longest) - area.x(0), height: area.y(0) - area.y(1.15) });
  const handle = node("g", { class: "play-handle play-frames", role: "slider", tabindex: 0, "aria-label": "Frame of the network", "aria-valuemin": 1 }, hit, cursor);
  area.area.append(letters, handle);
  const steps = ["Greedy path", "Repetitions merged", "Blanks removed"].map((words) => {
    const symbols = node("span", { class: "play-symbols" });
    return { symbols, root: node("div", { class: "play-collapse" }, node("span", {}, words), symbols) };
  });
  const collapsed = figure("From the path to the text", node("div", {}, ...steps.map((step) => step.root)));

  const melody = choice({ label: "Melody", options: Object.entries(melodies), changed: (tones) => change({ melody: tones, frame: 0 }) });
  const grid = (name, label, digits) => slider({ label, low: 0, ...config[name], format: (value) => fixed(value, digits),
    changed: (value, settled) => change({ [name]: Number((Math.round(value / config[name].step) * config[name].step).toFixed(1)), frame: 0 }, settled) });
  const noise = grid("noise", "Noise", 1), pause = grid("pause", "Pause (frames)", 0);
  const atFrame = (frame) => change({ frame: Math.min(Math.max(frame, 0), heard(current()).path.length - 1) });
  draggable(handle, (event, first) => {
    if (first) handle.focus({ preventScroll: true, focusVisible: false });
    const box = area.area.getBoundingClientRect(), wide = Number(area.area.getAttribute("viewBox").split(" ")[2]), x = ((event.clientX - box.left) / box.width) * wide;
    atFrame(Math.floor((((x - area.x(0)) / (area.x(longest) - area.x(0))) * longest) / each));
  }, () => {});
  handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
  handle.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!by || !plain(event)) return;
    event.preventDefault();
    event.stopPropagation();
    atFrame(current().frame + by);
  });

  function draw(now) {
    const its = heard(now), at = (t) => each * t + (each - 1) / 2, { length, frames, probs, path } = its;
    put(energies, { width: length, style: `width: ${(100 * length) / longest}%`, "aria-label": `${length} frames of ${now.melody}` });
    paintColours(energies, Array.from({ length: length * bands }, (_, i) => cividis(frames[(i % length) * bands + bands - 1 - Math.floor(i / length)])));
    const blank0 = probs.map((row, t) => `L${area.x(at(t))} ${area.y(row[0])}`).join("");
    put(blanks, { d: `M${area.x(at(0))} ${area.y(0)}${blank0}L${area.x(at(probs.length - 1))} ${area.y(0)}Z` });
    names.forEach((_, i) => lines[i].show(probs.some((row) => row[i + 1] > 0.3) ? probs.map((row, t) => [at(t), row[i + 1]]) : []));
    const peaks = names.flatMap((name, i) => probs.map((row) => row[i + 1]).flatMap((p, t, all) => (p > 0.3 && p >= (all[t - 1] ?? 0) && p > (all[t + 1] ?? 0) ? [[name, i, t]] : [])));
    letters.replaceChildren(...peaks.map(([name, i, t]) => node("text", { class: "play-tone", x: area.x(at(t)), y: area.y(1.04), "text-anchor": "middle", style: `--tone: ${LINE_COLOURS[i % LINE_COLOURS.length]}` }, name)));
    put(cursor, { x1: area.x(at(now.frame)), x2: area.x(at(now.frame)) });
    const ranked = probs[now.frame].map((p, k) => [k ? names[k - 1] : "blank", p]).sort((a, b) => b[1] - a[1]).slice(0, 3).map(([name, p]) => `${name} ${fixed(p)}`).join(", ");
    put(handle, { "aria-valuemax": path.length, "aria-valuenow": now.frame + 1, "aria-valuetext": `frame ${now.frame + 1} of ${path.length}: ${ranked}` });
    area.note(`Frame ${now.frame + 1} of ${path.length}: ${ranked}. Grey: the blank.`);
    [path, its.merged, its.found].forEach((symbols, k) => steps[k].symbols.replaceChildren(...symbols.map((symbol, t) => node("span", { class: `${symbol === blank ? "blank" : ""}${k === 0 && t === now.frame ? " now" : ""}` }, symbol))));
    collapsed.note(`Played: ${its.played.join(" ")}. The Conformer is ${verdict(its.found, its.played)}. Nearest clean tones: ${its.baseline.join(" ") || "(nothing)"}, ${verdict(its.baseline, its.played)}.`);
    melody.show(now.melody);
    noise.show(now.noise);
    pause.show(now.pause);
  }

  const goals = melodyGoals.map((goal) => (now) => goal(now, heard(now)));
  const { build, change, state: current, remove } = stage({ root, config, kernel, start: { ...config.start, frame: 0 }, goals, draw, words: (now) => melodyWords(heard(now)) });
  const both = node("div", { class: "play-heard" }, sound.root, area.root);
  build([{ root: both }, collapsed], [melody, noise, pause]);
  return remove;
}
