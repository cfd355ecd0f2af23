/* Byte-pair encoding learned from a text that is typed, merge by merge (lesson 06). */
import { stage, figure, node, slider, clamp, fixed } from "./kit.js";
import { plane, point } from "./plane.js";
import { textBox } from "./text.js";
import { splitAtPunctuation } from "../engine/words.js";
import { Merging, WORD_END } from "../engine/merges.js";

const MERGE_COLOURS = ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00", "#0072b2"];
const NO_TEXT = "Type a few words to learn from, or take one of the examples.";

let lastMerging = null;

/* What a state shows: the merging of its text, and how many merges are made. */
export function mergingOf({ text, merges }) {
  if (lastMerging?.text !== text) lastMerging = { text, merging: new Merging(text) };
  const { merging } = lastMerging;
  return { merging, made: Math.min(merges, merging.merges.length), cut: (words, made) => splitAtPunctuation(words).flatMap((word) => merging.cut(word, made)) };
}

export const bpeGoals = [
  (state) => { const { merging, made } = mergingOf(state); return merging.letters >= 40 && 2 * merging.at(made).tokens <= merging.letters; },
  (state) => {
    const { merging, made } = mergingOf(state);
    const ends = [...merging.at(made).parts.values()].flatMap((parts) => (parts.length > 1 ? [parts.at(-1)] : []));
    return ends.some((end, i) => [...end.replace(WORD_END, "")].length >= 3 && ends.indexOf(end) < i);
  },
  (state) => {
    const { merging, made, cut } = mergingOf(state), parts = cut(state.word, made), words = splitAtPunctuation(state.word);
    return words.length === 1 && [...words[0]].length >= 5 && !merging.counts.has(words[0]) && parts.length === 2 && !parts.includes(null);
  },
];

const shownToken = (token) => (token === null ? "?" : token.replace(WORD_END, "·"));
const shownMerge = (pair) => `${pair.map(shownToken).join(" + ")} → ${shownToken(pair.join(""))}`;
const timesInWords = (count) => ({ 1: "once", 2: "twice" })[count] ?? `${count} times`;

function bpeTold({ merging, made }) {
  const { tokens, size } = merging.at(made), first = merging.start.size, { merges } = merging;
  const ends = [...merging.start].filter((token) => token.endsWith(WORD_END)).length;
  const told = [`${merging.letters} letters are ${tokens} tokens. The vocabulary has ${first - ends} letters, ${ends} letters at the end of a word (·), and ${size - first} merged: ${size} in all.`];
  if (made) told.push(`Merge ${made}: ${shownMerge(merges[made - 1])}, a pair that occurred ${timesInWords(merging.count(merges[made - 1], made - 1))}.`);
  told.push(made < merges.length
    ? `The most frequent pair now, to be merged next: ${shownMerge(merges[made])}, ${timesInWords(merging.count(merges[made], made))}.`
    : "No pair of neighbours occurs twice any more, so nothing is left to merge.");
  return told;
}

export function bpeWords(state) {
  const its = mergingOf(state);
  if (!its.merging.words.length) return NO_TEXT;
  return `${bpeTold(its).join(" ")} “${state.word}” is cut into: ${its.cut(state.word, its.made).map(shownToken).join(", ") || "nothing"}.`;
}

export function bpe({ root, config, kernel }) {
  const { most, letters } = config, chips = (more) => node("div", { class: `play-chips ${more}` });
  const lines = { text: chips("wide"), word: chips("") }, list = node("ol", { class: "play-merges" });
  const text = figure("The text in tokens", lines.text), split = figure("The word in tokens", lines.word), merged = figure("Merges so far", list);
  const curve = plane({
    label: "Sizes, in % of the letters", x: [0, most], y: [0, 125], xTicks: [0, 5, 10, 15, 20, 25, 30], yTicks: [0, 50, 100],
    height: 190, xLabel: "merges",
  });
  const tokens = curve.line("var(--weight)", { name: "tokens" }), sizes = curve.line("var(--score)", { name: "vocabulary" });
  const set = (merges, settled) => change({ merges: clamp(Math.round(merges), 0, most) }, settled);
  const dot = point(curve, { label: "Merges", colour: "var(--weight)", dragged: (x) => set(x, false), end: () => change({}) });
  const merges = slider({ label: "Merges", low: 0, high: most, step: 1, whole: true, format: (n) => `${Math.round(n)}`, changed: set });
  const learned = textBox({ label: "Learn from", examples: config.texts, most: letters, live: true, changed: (words, settled) => change({ text: words }, settled) });
  const typed = textBox({ label: "A word to cut", most: 40, live: true, changed: (word, settled) => change({ word }, settled) });

  function draw(now) {
    const { merging, made } = mergingOf(now), told = merging.words.length ? bpeTold({ merging, made }) : [NO_TEXT];
    const colours = new Map(merging.merges.slice(0, made).map((pair, i) => [pair.join(""), MERGE_COLOURS[i % MERGE_COLOURS.length]]));
    const newest = made ? merging.merges[made - 1].join("") : "";
    const chip = (token) => node("span", {
      title: shownToken(token), class: token === newest && "newest", style: colours.has(token) ? `--token: ${colours.get(token)}` : null,
    }, shownToken(token).replace("·", ""));
    const all = (words) => words.map((word) => node("span", {}, ...merging.cut(word, made).map(chip)));
    lines.text.replaceChildren(...all(merging.words));
    text.note(told[0]);
    lines.word.replaceChildren(...all(splitAtPunctuation(now.word)));
    split.note(splitAtPunctuation(now.word).some((word) => merging.cut(word, made).includes(null)) ? "?: a letter that the text does not have there" : "");
    list.replaceChildren(...merging.merges.slice(0, made).map((pair, i) => node("li", { value: i + 1, class: i + 1 === made && "newest" }, shownMerge(pair))));
    merged.note(told.slice(1).join(" "));
    const steps = [...Array(Math.min(most, merging.merges.length) + 1).keys()], percent = (part) => Math.min(125, (100 * part) / (merging.letters || 1));
    tokens.show(steps.map((n) => [n, percent(merging.at(n).tokens)]));
    sizes.show(steps.map((n) => [n, percent(merging.at(n).size)]));
    dot.show(made, percent(merging.at(made).tokens));
    curve.note(`${fixed(merging.letters / (merging.at(made).tokens || 1), 1)} letters per token`);
    merges.show(now.merges);
    learned.show(now.text);
    typed.show(now.word);
  }

  const { build, change, remove } = stage({ root, config, kernel, start: config.start, goals: bpeGoals, draw, words: bpeWords });
  build([text, split, curve, merged], [merges, learned, typed]);
  return remove;
}
