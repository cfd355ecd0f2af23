/* English or French? A text that is typed, and what a network of 35 parameters makes of its letters (lesson 00). */
import { stage, bars, tokens } from "./kit.js";
import { textBox } from "./text.js";
import { softmaxOf } from "./sampling.js";

/* How many of 10 characters are each of these letters; null without a word. */
export function letterShares(text, letters) {
  const all = [...text.toLowerCase().split(/\s+/).join("")];
  return all.length ? [...letters].map((letter) => (10 * all.filter((one) => one === letter).length) / all.length) : null;
}

/* Linear layers [W (out, in), b (out)] with tanh between them. */
export function layersForward(layers, x) {
  return layers.reduce((h, [W, b], l) => W.map((row, o) => {
    const sum = row.reduce((total, weight, i) => total + weight * h[i], b[o]);
    return l < layers.length - 1 ? Math.tanh(sum) : sum;
  }), x);
}

/* The probabilities of the languages; null without a word. */
export function beliefsOf(text, { layers, letters }) {
  const shares = letterShares(text, letters);
  return shares && [...softmaxOf(layersForward(layers, shares))];
}

export function beliefWords({ text, its }, { languages, empty }) {
  if (!its || its.text !== text) return "";
  return its.probs ? `“${text}”: the network says ${languages[its.probs.indexOf(Math.max(...its.probs))]}.` : empty;
}

export function belief({ root, config, kernel }) {
  const { letters, languages } = config, start = { text: config.start, its: null };
  let busy = false, removed = false;
  const chances = bars({ label: "Probabilities (%)", names: languages, low: 0, high: 100, ticks: [0, 25, 50, 75, 100], colour: "var(--weight)", digits: 0, height: 220 });
  const seen = bars({ label: "What the network sees: of 10 letters", names: [...letters], low: 0, high: 5, ticks: [0, 1, 2, 3, 4, 5], colour: "var(--score)", digits: 1, height: 220 });
  const marked = tokens({ label: "Your text" });
  const box = textBox({ label: "Your text", examples: config.examples, live: true, changed: (text, settled) => change({ text }, settled) });

  /* The kernel answers with the learner's own functions; what has changed in the meantime is asked next. */
  async function update() {
    if (busy || removed) return;
    busy = true;
    const { text } = state();
    const probs = letterShares(text, letters) && await kernel.ask("beliefs", { text }).catch((error) => { chances.note(error.message); });
    busy = false;
    if (probs !== undefined && !removed) change({ its: { text, probs: probs && [...probs] } }, true, false);
  }

  function draw(now) {
    const shares = letterShares(now.text, letters), its = kernel ? now.its : { text: now.text, probs: beliefsOf(now.text, config) };
    box.show(now.text);
    marked.show([...now.text].map((text) => ({ text, strength: letters.includes(text.toLowerCase()) ? 0.8 : 0, colour: "var(--minus)" })));
    marked.note("coloured: the letters that it sees");
    seen.show(shares ?? [...letters].map(() => 0));
    chances.show(its?.probs?.map((p) => 100 * p) ?? languages.map(() => 0));
    chances.note(beliefWords({ text: now.text, its }, config));
    if (kernel && its?.text !== now.text) update();
  }

  const words = (now) => beliefWords({ text: now.text, its: kernel ? now.its : { text: now.text, probs: beliefsOf(now.text, config) } }, config);
  const { build, change, state, remove } = stage({ root, config, kernel, start, goals: [], draw, words });
  build([chances, seen, marked], [box]);
  return () => { removed = true; remove(); };
}
