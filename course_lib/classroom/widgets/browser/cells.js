/* One cell of an LSTM as colour behind each character of a text that is typed (lesson 04). */
import { stage, tokens, slider, fixed } from "./kit.js";
import { newest } from "./newest.js";
import { plane } from "./plane.js";
import { textBox } from "./text.js";
import { needsModel, siteModel } from "./site.js";
import { lstmCells } from "../engine/rnn.js";

const NO_CELL_TEXT = "Write something for the network to read.";
const onOneLine = (text) => text.split(/\s+/u).filter(Boolean).join(" ");

/* All cells at each character of a text. The network reads a line feed first. */
export function cellsOf({ weights, vocabulary }, text) {
  const ids = [..."\n", ...text].map((letter) => vocabulary.indexOf(letter)), unknown = ids.indexOf(-1);
  if (unknown > 0) throw new Error(`'${[...text][unknown - 1]}' is not in the vocabulary of ${vocabulary.length}, and no token stands for it.`);
  return lstmCells(weights, ids).slice(1);
}

/* The indices of the characters that end a sentence, but for the last character of the text. */
function sentenceEnds(text) {
  return [...text].flatMap((here, i, all) => (".!?".includes(here) && all[i + 1] === " " ? [i] : []));
}

const mean = (numbers) => numbers.reduce((sum, value) => sum + value, 0) / numbers.length;

/* Whether a cell is near its largest absolute value before this character, and less than half of it after. */
function fallsAt(values, end, share) {
  const before = Math.abs(values[end - 1]), after = Math.abs(mean(values.slice(end + 1, end + 4)));
  return before > share * Math.max(...values.map(Math.abs)) && after < 0.5 * before;
}

/* Goals are given the text, the values of the cell and the prepared texts. */
export const cellGoals = [
  (text, values) => {
    const [end] = sentenceEnds(text);
    return end >= 15 && fallsAt(values, end, 0.8);
  },
  (text, values) => {
    const letters = [...text].map((letter) => /\p{L}/u.test(letter)), yes = letters.filter(Boolean).length;
    if (yes < 5 || yes > values.length - 5) return false;
    const order = [...values.keys()].sort((a, b) => values[a] - values[b]);
    const ranks = order.flatMap((at, rank) => (letters[at] ? [rank + 1] : [])), score = (mean(ranks) - (yes + 1) / 2) / (values.length - yes);
    return Math.max(score, 1 - score) > 0.85;
  },
  (text, values, prepared) => {
    const ends = sentenceEnds(text), long = ends.every((end, i) => end - (ends[i - 1] ?? 0) >= 15);
    return !prepared.includes(text) && ends.length >= 2 && long && ends.every((end) => fallsAt(values, end, 0.4));
  },
];

export function cellWords(text, values, cell) {
  const lowest = values.indexOf(Math.min(...values)), highest = values.indexOf(Math.max(...values)), letters = [...text];
  return `Cell ${cell} over ${letters.length} characters: lowest, ${fixed(values[lowest], 1)}, at character ${lowest + 1} (“${letters[lowest]}”), ` +
    `highest, ${fixed(values[highest], 1)}, at character ${highest + 1} (“${letters[highest]}”).`;
}

export function cells({ root, config, kernel }) {
  needsModel(kernel, config.models);
  const { longest, count } = config, prepared = config.texts.map(([, text]) => text);
  let model = null, held = false;
  const touch = (changes, settled) => { held = !settled; change(changes, settled); };
  const text = tokens({ label: "The text, coloured by the cell" });
  const line = plane({ label: "The cell after each character, in % of its largest value here", x: [0, longest], y: [-100, 100], xTicks: [1, 50, 100, 150], yTicks: [-100, 0, 100], xLabel: "character" });
  const curve = line.line("var(--weight)");
  const typed = textBox({ label: "Text", examples: config.texts, most: longest, live: true, changed: (words, settled) => touch({ text: words }, settled) });
  const cell = slider({ label: "Cell", low: 0, high: count - 1, step: 1, whole: true, format: (n) => `${Math.round(n)}`, changed: (n, settled) => touch({ cell: Math.round(n) }, settled) });

  async function read(words) {
    if (!kernel) {
      model ??= siteModel(config.models[0]).then(({ weights, tokenizers }) => ({ weights, vocabulary: tokenizers.text.vocabulary }));
      return { text: words, cells: cellsOf(await model, words) };
    }
    const all = await kernel.ask("read", { text: words });
    return { text: words, cells: Array.from({ length: all.length / count }, (_, t) => all.subarray(t * count, (t + 1) * count)) };
  }
  const asked = newest({ read, done: (its) => change({ its }, !held, false), failed: (error) => text.note(error.message) });
  const valuesOf = ({ its, cell: number }) => its.cells.map((all) => all[number]);
  const current = (now) => now.its && now.its.text === onOneLine(now.text);

  function draw(now) {
    typed.show(now.text);
    cell.show(now.cell);
    const words = onOneLine(now.text);
    if (!words) { text.note(NO_CELL_TEXT); return; }
    if (!current(now)) asked.ask(words);
    if (!now.its) return;
    const values = valuesOf(now), largest = Math.max(...values.map(Math.abs), 1e-6);
    text.show([...now.its.text].map((letter, i) => ({
      text: letter, colour: values[i] > 0 ? "var(--minus)" : "var(--plus)", strength: Math.abs(values[i]) / largest, title: fixed(values[i]),
    })));
    text.note("Orange: above 0, blue: below.");
    curve.show(values.map((value, i) => [i + 1, (100 * value) / largest]));
    line.note(`largest absolute value: ${fixed(largest)}`);
  }

  const goals = cellGoals.map((goal) => (now) => Boolean(current(now) && goal(now.its.text, valuesOf(now), prepared)));
  const words = (now) => (!onOneLine(now.text) ? NO_CELL_TEXT : now.its ? cellWords(now.its.text, valuesOf(now), now.cell) : "");
  const { build, change, state, remove } = stage({ root, config, kernel, start: { text: config.texts[0][1], cell: 0, its: null }, goals, draw, words });
  build([text, line], [typed, cell]);
  if (!state().its) text.note("Loading the model …");
  return () => { asked.close(); remove(); };
}
