/* Letters that are chosen on a keyboard, and the network that is trained anew on them, wire by wire (lesson 00). */
import { stage, figure, node, put, fixed, plain } from "./kit.js";
import { bytesOf } from "./images.js";

const RATE = 0.05, BETAS = [0.9, 0.999], EPSILON = 1e-8;  // of Adam
const SLICE = 12;  // ms of training between two drawings

/* The parameters of a network of k inputs, `hidden` units with tanh, and two outputs, in one array: W1, b1, W2, b2. */
const partsOf = (k, hidden) => [0, hidden * k, hidden * (k + 1), hidden * (k + 3), hidden * (k + 3) + 2];

/* Outputs z (2) for inputs x[at], ..., and the hidden units h. */
function letterScores(w, k, hidden, x, at, h, z) {
  const [, b1, W2, b2] = partsOf(k, hidden);
  for (let j = 0; j < hidden; j++) {
    let sum = w[b1 + j];
    for (let i = 0; i < k; i++) sum += w[j * k + i] * x[at + i];
    h[j] = Math.tanh(sum);
  }
  for (let o = 0; o < 2; o++) {
    z[o] = w[b2 + o];
    for (let j = 0; j < hidden; j++) z[o] += w[W2 + o * hidden + j] * h[j];
  }
}

/* Training by Adam on all sentences at once, English and French in turn: `step()`, and the fraction of unseen sentences
   that are classified correctly. */
export function letterTraining(chosen, data) {
  const { alphabet, counts, sizes, train, starts, hidden } = data, k = chosen.length, total = sizes.length;
  const x = new Float64Array(total * k), columns = [...chosen].map((letter) => alphabet.indexOf(letter));
  for (let n = 0; n < total; n++) columns.forEach((column, i) => { x[n * k + i] = (10 * counts[n * alphabet.length + column]) / sizes[n]; });
  const w = Float64Array.from(starts[k - 1]), g = new Float64Array(w.length), m = new Float64Array(w.length), v = new Float64Array(w.length);
  const [, b1, W2, b2] = partsOf(k, hidden), h = new Float64Array(hidden), z = [0, 0];
  let steps = 0;
  function step() {
    g.fill(0);
    for (let n = 0, at = 0; n < train; n++, at += k) {
      letterScores(w, k, hidden, x, at, h, z);
      const second = 1 / (1 + Math.exp(z[0] - z[1])), error = (second - (n % 2)) / train;  // of output 1; of output 0 its negative
      g[b2] -= error;
      g[b2 + 1] += error;
      for (let j = 0; j < hidden; j++) {
        g[W2 + j] -= error * h[j];
        g[W2 + hidden + j] += error * h[j];
        const back = error * (w[W2 + hidden + j] - w[W2 + j]) * (1 - h[j] * h[j]);
        g[b1 + j] += back;
        for (let i = 0; i < k; i++) g[j * k + i] += back * x[at + i];
      }
    }
    steps++;
    for (let p = 0; p < w.length; p++) {
      m[p] += (1 - BETAS[0]) * (g[p] - m[p]);
      v[p] += (1 - BETAS[1]) * (g[p] * g[p] - v[p]);
      w[p] -= (RATE * m[p]) / (1 - BETAS[0] ** steps) / (Math.sqrt(v[p] / (1 - BETAS[1] ** steps)) + EPSILON);
    }
    return steps;
  }
  function accuracy() {
    let right = 0;
    for (let n = train; n < total; n++) {
      letterScores(w, k, hidden, x, n * k, h, z);
      right += Number(z[1] > z[0]) === n % 2;
    }
    return right / (total - train);
  }
  return { step, accuracy, weights: w };
}

/* Goals are given the letters and the accuracy in percent. */
export const letterGoals = [
  (chosen, percent) => chosen.length <= 4 && percent >= 96,
  (_, percent) => percent >= 97.5,
  (chosen, percent) => chosen.length > 2 && percent < 58,
];

export const lettersWords = ({ letters, its }) =>
  (its?.done && its.letters === letters ? `By ${[...letters].join(", ")}: over ${Math.floor(100 * its.accuracy)} % right.` : "");

export function letters({ root, config, kernel }) {
  const { alphabet, most, steps, hidden, languages } = config;
  const data = { ...config, counts: bytesOf(config.counts), sizes: bytesOf(config.sizes) };
  const start = { letters: config.start, its: null, tried: {}, refused: "" }, means = [0, 1].map((language) => [...alphabet].map((_, i) => {
    let sum = 0;
    for (let n = language; n < config.train; n += 2) sum += (10 * data.counts[n * alphabet.length + i]) / data.sizes[n];
    return sum / (config.train / 2);
  }));
  let training = null, frame = 0;

  const pick = (letter) => {
    const { letters: now } = state(), next = now.includes(letter) ? now.replace(letter, "") : now + letter;
    if (next && next.length <= most) change({ letters: next, refused: "" }, false);
    else change({ refused: next ? `Choose at most ${most} letters.` : "One letter must stay." }, false);
  };
  const buttons = [...alphabet].map((letter, i) => {
    const made = node("button", { type: "button", class: "play-key", style: means.map((mean, k) => `--tall${k}: ${(100 * Math.min(1, mean[i] / 1.8)).toFixed(1)}%`).join("; ") }, letter);
    made.addEventListener("click", () => pick(letter));
    return made;
  });
  const board = node("div", { class: "play-keys", role: "group", "aria-label": "Letters" }, ...buttons);
  board.addEventListener("keydown", (event) => { if (plain(event) && event.key.length === 1 && alphabet.includes(event.key.toLowerCase())) pick(event.key.toLowerCase()); });
  const keys = figure("Letters: click or type them", board);

  const net = node("svg", { viewBox: "0 0 320 260", role: "img" }), network = figure("The network, trained on them", net);
  const best = node("ol", { class: "play-best" }), bests = figure("Your best so far", best);
  const height = (unit, of) => 130 + (of === 1 ? 0 : (unit / (of - 1) - 0.5) * Math.min(220, 66 * (of - 1)));
  function wires({ letters: chosen, weights, accuracy }) {
    const k = chosen.length, [, , W2] = partsOf(k, hidden), sizes = [k, hidden, 2], xs = [34, 140, 236];
    const largest = Math.max(...[...weights].map(Math.abs));
    const lines = [0, 1].flatMap((layer) => Array.from({ length: sizes[layer] * sizes[layer + 1] }, (_, at) => {
      const [to, from] = [Math.floor(at / sizes[layer]), at % sizes[layer]], weight = weights[(layer ? W2 : 0) + at];
      return node("line", { x1: xs[layer], y1: height(from, sizes[layer]), x2: xs[layer + 1], y2: height(to, sizes[layer + 1]),
        stroke: weight < 0 ? "#d55e00" : "var(--weight)", "stroke-dasharray": weight < 0 && "5 3", "stroke-width": (0.3 + (6 * Math.abs(weight)) / largest).toFixed(2) });
    }));
    const units = sizes.flatMap((size, layer) => Array.from({ length: size }, (_, unit) => [
      node("circle", { class: "play-unit", cx: xs[layer], cy: height(unit, size), r: 8 }),
      node("text", { x: xs[layer] + (layer ? 14 : -14), y: height(unit, size) + 4, "text-anchor": layer ? "start" : "end" }, layer === 0 ? chosen[unit] : layer === 2 ? languages[unit] : ""),
    ]).flat());
    net.replaceChildren(...lines, ...units, node("text", { class: "play-large", x: 312, y: 30, "text-anchor": "end" }, `${fixed(100 * accuracy, 1)} %`));
  }

  /* Train for a while, draw, and go on in the next frame, until it is done or other letters are chosen. */
  function train() {
    const { letters: chosen, tried } = state();
    if (training?.letters !== chosen) training = { letters: chosen, run: letterTraining(chosen, data) };
    const { run } = training, until = performance.now() + SLICE;
    let now = 0;
    do now = run.step(); while (now < steps && performance.now() < until);
    const accuracy = run.accuracy(), done = now === steps;
    change({ its: { letters: chosen, steps: now, weights: run.weights, accuracy, done }, ...(done && touched && { tried: { ...tried, [chosen]: 100 * accuracy } }) }, done, false);
  }

  let touched = false;
  function draw(now) {
    const { its } = now, chosen = [...now.letters];
    touched ||= now.letters !== config.start;
    buttons.forEach((one, i) => put(one, { "aria-pressed": `${chosen.includes(alphabet[i])}` }));
    keys.note(now.refused || `${chosen.length} of at most ${most} letters. Bars: how often a letter occurs in ${languages[0]} (blue) and in ${languages[1]} (orange).`);
    if (its?.letters === now.letters) {
      wires(its);
      network.note(`${fixed(100 * its.accuracy, 1)} % of unseen sentences are classified correctly${its.done ? "" : `, step ${its.steps} of ${steps}`}. Solid: positive, dashed: negative weights.`);
      put(net, { "aria-label": `${chosen.length} letters, ${hidden} hidden units, 2 languages` });
    }
    best.replaceChildren(...Array.from({ length: most }, (_, n) => {
      const [top] = Object.keys(now.tried).filter((one) => one.length === n + 1).sort((a, b) => now.tried[b] - now.tried[a]);
      return node("li", {}, top ? `${fixed(now.tried[top], 1)} %, ${top}` : "–");
    }));
    cancelAnimationFrame(frame);
    if (!(its?.done && its.letters === now.letters)) frame = requestAnimationFrame(train);
  }

  const goals = letterGoals.map((goal) => ({ letters: chosen, its }) => Boolean(its?.done && its.letters === chosen && goal(chosen, 100 * its.accuracy)));
  const { build, change, state, remove } = stage({ root, config, kernel, start, goals, draw, words: lettersWords });
  build([network, keys, bests], []);
  return () => { cancelAnimationFrame(frame); remove(); };
}
