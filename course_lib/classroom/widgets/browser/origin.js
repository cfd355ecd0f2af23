/* A network that reads a name letter by letter, and guesses its language (lesson 03). */
import { stage, figure, node, nextTokens, fixed } from "./kit.js";
import { plane } from "./plane.js";
import { textBox } from "./text.js";
import { bytesOf } from "./images.js";
import { readSafetensors } from "../engine/safetensors.js";
import { rnnStates } from "../engine/rnn.js";
import { argmax, linear, softmaxRows } from "../engine/tensor.js";

const NO_NAME = "Write a name for the network to read.", SURE = 0.9, MOST_BARS = 4;
const LANGUAGE_COLOURS = ["var(--weight)", "var(--score)", "var(--good)"];

/* The state and the probability of each language after each letter of a name, in lower case and on one line. */
export function readName({ weights, letters, unknown, longest }, typed) {
  const name = [...typed.toLowerCase().split(/\s+/u).filter(Boolean).join(" ")].slice(0, longest);
  const states = rnnStates(weights, name.map((letter) => letters[letter] ?? unknown));
  const probs = states.map((h) => softmaxRows(linear(h, weights.get("head.weight"), weights.get("head.bias"))));
  return { name, states, probs };
}

/* { weights, letters, unknown, longest, languages } of a config, whose weights are the bytes of a checkpoint. */
export const nameReader = (config) => ({ ...config, weights: readSafetensors(bytesOf(config.weights).buffer) });

const ranked = (probs) => [...probs.keys()].sort((a, b) => probs[b] - probs[a]);

/* Goals are given what was read. */
export const nameGoals = [
  ({ name, probs }) => name.length > 3 && argmax(probs.at(-1)) !== argmax(probs.at(-2)),
  ({ name, probs }) => name.length >= 3 && Math.max(...probs[2]) >= SURE,
  ({ name, probs }) => { const [first, second] = name.length > 3 ? ranked(probs.at(-1)) : []; return name.length > 3 && probs.at(-1)[first] - probs.at(-1)[second] < 0.05; },
];

export function nameWords({ name, probs }, languages) {
  if (!name.length) return NO_NAME;
  const guesses = probs.map(argmax), last = guesses.at(-1), changes = guesses.filter((guess, i) => i && guess !== guesses[i - 1]).length;
  return `“${name.join("")}”: ${languages[last]}, ${fixed(100 * probs.at(-1)[last], 0)}% sure. While reading it changed its mind ${changes === 1 ? "once" : `${changes} times`}.`;
}

export function origin({ root, config, kernel }) {
  const reader = nameReader(config), { languages, longest, shown } = config, cell = 22, high = 8;
  let last = null;
  const read = ({ text }) => (last?.text === text ? last : (last = { text, ...readName(reader, text) }));

  const map = node("svg", { viewBox: `0 0 ${longest * cell} ${40 + shown * high}`, role: "img", "aria-label": `The first ${shown} numbers of the state after each letter` });
  const states = figure(`The state after each letter, its first ${shown} numbers`, map);
  const beliefs = plane({ label: "Probability of each language (%)", x: [0.5, longest + 0.5], y: [0, 100], xTicks: [1, 5, 10, 15], yTicks: [0, 50, 100], xLabel: "letters read" });
  const lines = languages.map(() => beliefs.line("var(--line)", { thin: true })), best = LANGUAGE_COLOURS.map((colour) => beliefs.line(colour));
  const likely = nextTokens({ label: "After the last letter" });
  const name = textBox({ label: "Name", examples: config.names, most: longest, live: true, changed: (text, settled) => change({ text }, settled) });

  function draw(now) {
    const its = read(now), guesses = its.probs.map(argmax), order = its.name.length ? ranked(its.probs.at(-1)) : [];
    const text = (x, y, words, more = {}) => node("text", { x: (x + 0.5) * cell, y, "text-anchor": "middle", ...more }, words);
    map.replaceChildren(...its.name.flatMap((letter, t) => [
      text(t, 14, letter === " " ? "␣" : letter, { class: "play-letter" }),
      ...[...its.states[t].subarray(0, shown)].map((value, k) => node("rect", {
        x: t * cell + 0.5, y: 20 + k * high, width: cell - 1, height: high, fill: value > 0 ? "var(--score)" : "var(--weight)", "fill-opacity": Math.abs(value).toFixed(3),
      })),
      text(t, 34 + shown * high, languages[guesses[t]].slice(0, 3), { class: guesses[t] === guesses[t - 1] ? "play-guess" : "play-guess new" }),
    ]));
    states.note(its.name.length ? "Orange: above 0, blue: below. Beneath: the most probable language after each letter, bold where it changes." : NO_NAME);
    const line = (language) => its.probs.map((probs, t) => [t + 1, 100 * probs[language]]);
    lines.forEach((one, language) => one.show(line(language)));
    best.forEach((one, i) => one.show(order.length ? line(order[i]) : []));
    beliefs.note(["blue", "orange", "green"].map((colour, i) => (order.length ? `${colour}: ${languages[order[i]]}` : "")).join(", "));
    likely.show(order.slice(0, MOST_BARS).map((language) => [languages[language], its.probs.at(-1)[language]]));
    likely.note(nameWords(its, languages));
    name.show(now.text);
  }

  const goals = nameGoals.map((goal) => (now) => goal(read(now)));
  const { build, change, remove } = stage({ root, config, kernel, start: { text: config.names[0] }, goals, draw, words: (now) => nameWords(read(now), languages) });
  build([likely, states, beliefs], [name]);
  return remove;
}
