/* Chains of a Boltzmann machine that run in the browser, and what a classifier sees in each (lesson 17). */
import { stage, button, buttons, choice, clamp, figure, node, put, slider } from "./kit.js";
import { plane } from "./plane.js";
import { bytesOf, canvasOf, paintPixels } from "./images.js";
import { argmax, linear } from "../engine/tensor.js";

const NO_LABEL = -1, RANDOM_START = -1;

/* The machine of a config: W (hidden, visible), its transpose, and both biases, as `linear` takes them. */
export function dreamMachine({ sizes: [numHidden, numVisible], weight, hidden, visible, probe }) {
  const floats = (text) => new Float32Array(bytesOf(text).buffer), W = floats(weight), turned = new Float32Array(W.length);
  for (let j = 0; j < numHidden; j++) for (let i = 0; i < numVisible; i++) turned[i * numHidden + j] = W[j * numVisible + i];
  const tensor = (data, ...shape) => ({ data, shape });
  return {
    up: [tensor(W, numHidden, numVisible), tensor(floats(hidden), numHidden)], down: [tensor(turned, numVisible, numHidden), tensor(floats(visible), numVisible)],
    probe: [tensor(Float64Array.from(probe.weight.flat()), probe.classes.length, probe.weight[0].length), tensor(Float64Array.from(probe.bias), probe.classes.length)], classes: probe.classes,
  };
}

const unitProbs = (x) => x.map((value) => 1 / (1 + Math.exp(-value)));

/* One Gibbs step of rows of visible units: { state, probs }. `random()` gives a number below 1 for each hidden unit, then
   for each visible one; units from `kept` on keep their values. */
export function gibbsStep({ up, down }, state, kept, random) {
  const size = up[0].shape[1], hidden = unitProbs(linear(state, ...up)).map((p) => Number(random() < p));
  const probs = unitProbs(linear(hidden, ...down)), drawn = probs.map((p) => Number(random() < p));
  const keep = (values) => values.map((value, i) => (i % size < kept ? value : state[i]));
  return { state: keep(drawn), probs: keep(probs) };
}

/* The digit that the classifier sees in each row. */
export function dreamClasses({ probe, classes, up }, probs) {
  const size = up[0].shape[1], pixels = probe[0].shape[1];
  return Array.from({ length: probs.length / size }, (_, n) => classes[argmax(linear(probs.subarray(n * size, n * size + pixels), ...probe))]);
}

/* Random numbers of a seed (mulberry32). */
export function dreamDraws(seed) {
  let state = (seed + 1) * 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/* Visible units at the beginning: pixels drawn at random, or with the levels of test digits, then the label units. */
function beginning({ chains, digits, levels, sizes, pixels, classes }, { label, start }, random) {
  const size = sizes[1], state = new Float32Array(chains * size), given = start === RANDOM_START ? null : bytesOf(digits[start]);
  for (let n = 0; n < chains; n++) {
    for (let i = 0; i < pixels; i++) state[n * size + i] = Number(random() < (given ? given[n * pixels + i] / levels : 0.5));
    state[n * size + pixels + (label === NO_LABEL ? Math.floor(random() * classes) : label)] = 1;
  }
  return state;
}

export function dreamGoals({ most, few, kinds }) {
  const count = ({ seen }, digit) => seen.filter((one) => one === digit).length;
  return [
    (now) => now.start === RANDOM_START && now.label !== NO_LABEL && count(now, now.label) >= most,
    (now) => now.start !== RANDOM_START && ![NO_LABEL, now.start].includes(now.label) && count(now, now.label) >= few,
    ({ label, start, seen }) => label === NO_LABEL && start !== RANDOM_START && new Set(seen).size >= kinds,
  ];
}

export function dreamWords({ label, steps, seen }) {
  const counts = [...new Set(seen)].map((digit) => [seen.filter((one) => one === digit).length, digit]).sort((a, b) => b[0] - a[0]);
  const clamped = label === NO_LABEL ? "No label is clamped" : `The label ${label} is clamped`;
  return `${clamped}. After ${steps} Gibbs ${steps === 1 ? "step" : "steps"} a classifier assigns the ${seen.length} chains as follows: ${counts.map(([number, digit]) => `${number} as ${digit}`).join(", ")}.`;
}

export function dreams({ root, config, kernel }) {
  const { chains, longest, side, sizes, pixels, classes } = config, machine = dreamMachine(config), size = sizes[1];
  let history = [], key = "", random = null, state = null, frame = 0, removed = false;

  /* What the chains of a state show after its steps; what was computed before is kept. */
  function at(now) {
    const its = [now.label, now.start, now.seed].join();
    if (its !== key) {
      [key, random, history] = [its, dreamDraws(now.seed), []];
      state = beginning(config, now, random);
    }
    while (history.length < now.steps) {
      const next = gibbsStep(machine, state, now.label === NO_LABEL ? size : pixels, random);
      state = next.state;
      history.push({ probs: next.probs, seen: dreamClasses(machine, next.probs) });
    }
    return history[now.steps - 1];
  }

  const images = Array.from({ length: chains }, () => canvasOf(side)), names = images.map(() => node("figcaption"));
  const grid = node("div", { class: "play-dreams", role: "img" }, ...images.map((canvas, n) => node("figure", {}, canvas, names[n])));
  const shown = figure("The chains, and what a classifier sees", grid);
  const curve = plane({ label: "Chains over the Gibbs steps", x: [0, Math.log10(longest)], y: [0, chains], xTicks: [1, 3, 10, 30, 100, 300].map((t) => [Math.log10(t), `${t}`]), yTicks: [0, 4, 8, 12, 16], xLabel: "Gibbs steps", height: 230 });
  const counted = curve.line("var(--weight)"), here = curve.line("var(--score)", { thin: true });

  const touch = (changes, settled = true) => { stop(); change({ ...changes, ...fresh(changes) }, settled); };
  const fresh = (changes) => { const now = { ...current(), ...changes }; return { seen: at(now).seen }; };
  const digits = Array.from({ length: classes }, (_, digit) => [`${digit}`, digit]);
  const label = choice({ label: "Clamped label", options: [["none", NO_LABEL], ...digits], changed: (value) => touch({ label: value }) });
  const from = choice({ label: "Begin at", options: [["random pixels", RANDOM_START], ...digits], changed: (value) => touch({ start: value }) });
  const steps = slider({ label: "Gibbs steps", low: 1, high: longest, step: 1, whole: true, format: (value) => `${Math.round(value)}`, changed: (value, settled) => touch({ steps: Math.round(value) }, settled) });
  const go = button({ text: "Run", primary: true, clicked: () => (frame ? pause() : run()) });
  const one = button({ text: "One step", clicked: () => touch({ steps: Math.min(current().steps + 1, longest) }) });
  const again = button({ text: "Other random numbers", clicked: () => touch({ seed: current().seed + 1 }) });

  function stop() { cancelAnimationFrame(frame); frame = 0; go.show("Run"); }
  function pause() { stop(); change({}, true); }
  function run() {
    const step = () => {
      const now = current(), to = clamp(now.steps + 1, 1, longest);
      if (to === now.steps) { pause(); return; }
      change({ steps: to, ...fresh({ steps: to }) }, false);
      if (!removed) frame = requestAnimationFrame(step);
    };
    go.show("Pause");
    if (current().steps >= longest) change({ steps: 1, ...fresh({ steps: 1 }) }, false);
    frame = requestAnimationFrame(step);
  }

  function draw(now) {
    const { probs, seen } = at(now), count = (all) => (now.label === NO_LABEL ? new Set(all).size : all.filter((digit) => digit === now.label).length);
    images.forEach((canvas, n) => {
      paintPixels(canvas, probs.subarray(n * size, n * size + pixels));
      names[n].textContent = `${seen[n]}`;
      names[n].classList.toggle("right", seen[n] === now.label);
    });
    put(grid, { "aria-label": `${chains} dreams, classified as ${seen.join(", ")}` });
    counted.show(history.map((each, t) => [Math.log10(t + 1), count(each.seen)]));
    here.show([[Math.log10(now.steps), 0], [Math.log10(now.steps), chains]]);
    const recognised = now.label === NO_LABEL ? `${count(seen)} different digits` : `${count(seen)} of ${chains} are seen as ${now.label}`;
    curve.note(`After ${now.steps} steps: ${recognised}.`);
    label.show(now.label);
    from.show(now.start);
    steps.show(now.steps);
  }

  const begin = { ...config.start, seen: at(config.start).seen };
  const { build, change, state: current, remove } = stage({ root, config, kernel, start: begin, goals: dreamGoals(config), draw, words: dreamWords });
  build([shown, curve], [label, from, steps, buttons("Chains", [go, one, again])]);
  shown.note("Bright: probably ink. Green: classified as the clamped label.");
  return () => { removed = true; stop(); remove(); };
}
