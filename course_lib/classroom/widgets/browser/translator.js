/* An English sentence, its translation, and the English words that each French word attends to (lesson 05). */
import { stage, node, put, heatMap, fixed } from "./kit.js";
import { newest } from "./newest.js";
import { textBox } from "./text.js";
import { wordLine, wordFold, unknownWords } from "./sentence.js";
import { needsModel, siteModel } from "./site.js";
import { argmax } from "../engine/tensor.js";
import { Seq2Seq, translate } from "../engine/seq2seq.js";
import { WordTokenizer, detokenizeFrench } from "../engine/words.js";

const FEW_WORDS = 12;  // English words, up to which the squares of the map have room for numbers
const KEPT_SENTENCES = 3;  // to compare with

/* `its` is what was translated last: { text, source, target, weights, unknown }, of the weights (T_k,) for each French
   word, null without attention; `gold`, the grammar's translation, null where it has none and undefined without a
   kernel; `error`, a sentence in place of a translation. */
const attended = ({ weights }) => (weights ?? []).map((row) => argmax(row));

export const translatorGoals = [
  (its) => {  // two neighbours attend to neighbours in the other order, each alone: ne ... pas does not count
    const at = attended(its), alone = (j) => at.filter((other) => other === j).length === 1;
    return at.slice(1).some((b, i) => at[i] === b + 1 && alone(at[i]) && alone(b));
  },
  (its) => {  // French words attend to one English word, and one between them does not
    const at = attended(its);
    return at.some((j) => at.lastIndexOf(j) - at.indexOf(j) + 1 > at.filter((other) => other === j).length);
  },
  ({ gold, target }) => Boolean(gold) && gold.join(" ") !== target.join(" "),
].map((reached) => (its) => !its.unknown.length && reached(its));

function translatorVerdict({ gold, target }) {
  if (gold === undefined) return "";
  if (gold === null) return "The grammar of this course does not cover this sentence, so nobody checks the translation.";
  return gold.join(" ") === target.join(" ") ? "✓ The grammar says the same." : `✗ The grammar says: ${detokenizeFrench(gold)}`;
}

export function translatorWords({ its }) {
  if (!its || its.error) return its?.error ?? "";
  if (!its.target.length) return "There is no translation.";
  const at = attended(its).map((j, i) => `“${its.target[i]}” to “${its.source[j]}”`).join(", ");
  return [`Translation: “${its.target.join(" ")}”.`, translatorVerdict(its), at && `Each French word attends most: ${at}.`].filter(Boolean).join(" ");
}

export function translator({ root, config: given, kernel }) {
  needsModel(kernel, given.models);
  const config = kernel ? given : { ...given, goals: given.goals.slice(0, 2) };  // the third needs the grammar
  const known = config.vocabulary.split(" ");
  let models = null, held = true, map = null, shown = null, kept = [];

  const light = (i, j) => {
    const { source = [], weights } = shown ?? {};
    if (!weights) return;
    french.light(i >= 0 ? weights.map((_, row) => Number(row === i)) : j >= 0 ? weights.map((row) => row[j]) : []);
    english.light(i >= 0 ? weights[i] : j >= 0 ? source.map((_, column) => Number(column === j)) : []);
  };
  const both = (i, j) => { light(i, j); map?.light(i, j); };
  const french = wordLine({ label: "French", lang: "fr", kind: "large", pointed: (i) => both(i ?? -1, -1) });
  const english = wordLine({ label: "English", pointed: (j) => both(-1, j ?? -1) });
  const alignment = node("div", { class: "play-alignment" }), before = node("ul", { class: "play-lines", "aria-label": "Sentences before" });
  const typed = textBox({ label: "English sentence", examples: config.examples, most: 400, live: true, changed: (text, settled) => { held = !settled; change({ text }, settled); } });

  async function siteModels() {
    const { weights, config: sizes, tokenizers } = await siteModel(config.models[0], (part) => french.note(`Loading the model: ${Math.round(100 * part)} %`));
    return [new Seq2Seq(weights, sizes), new WordTokenizer(tokenizers.english), new WordTokenizer(tokenizers.french)];
  }

  async function read(text) {
    const words = text.split(/\s+/).filter(Boolean);
    if (!words.length) throw new Error("Type a sentence, or take one of the examples.");
    if (words.length > config.most) throw new Error(`This sentence has ${words.length} words; please keep to ${config.most}.`);
    if (kernel) return kernel.ask("translate", text);
    models ??= siteModels().catch((error) => { models = null; throw error; });
    return translate(...(await models), text);
  }

  const reader = newest({
    read: (text) => read(text).then((its) => ({ ...its, text }), ({ message }) => ({ text, error: message, source: [], target: [], weights: null, unknown: [] })),
    done: (its) => change({ its }, !held, false),
  });

  function show(its) {
    const { source, target, weights, unknown } = its, pace = held && shown ? 0 : 80;  // ms from word to word
    const tight = (word, i, all) => i > 0 && (word === "." || all[i - 1].endsWith("'"));
    shown = its;
    root.style.setProperty("--pace", `${pace}ms`);
    if (pace) french.show([]);  // all its words arrive
    french.show(target.map((word, i, all) => ({ text: word, glued: tight(word, i, all) })));
    french.note(its.error ?? (target.length ? translatorVerdict(its) : "There is no translation."));
    english.show(source.map((word, i, all) => ({ text: unknown.includes(word) ? `${word} (?)` : word, glued: tight(word, i, all) })));
    english.note(unknownWords(unknown, known) || (weights ? "Point at a word of either language: the words that belong to it light up." : ""));
    map = weights && target.length ? heatMap({
      label: "Attention weights: row = French word, column = English word", rows: target, columns: source, lit: light,
      text: (value) => (source.length <= FEW_WORDS && value >= 0.005 ? fixed(value).replace(/^0/, "") : ""),
    }) : null;
    put(alignment, { style: map ? `--columns: ${source.length}; --rows: ${target.length}` : "visibility: hidden" });
    both(-1, -1);
    if (!map) return;
    map.show(weights.map((row) => [...row]));
    [...map.root.querySelectorAll("tbody tr")].forEach((row, i) => row.style.setProperty("--at", i));
    alignment.replaceChildren(map.root);
  }

  /* A sentence that is final stands among the last ones as soon as there is another. */
  function keep(its) {
    const others = kept.filter(({ text }) => text !== its.text);
    before.replaceChildren(...others.map(({ target, text }) => node("li", {}, node("b", { lang: "fr" }, detokenizeFrench(target)), ` ← ${text}`)));
    kept = [its, ...others].slice(0, KEPT_SENTENCES);
  }

  function draw({ text, its }) {
    typed.show(text);
    if (its?.text !== text) reader.ask(text);
    else if (its !== shown) show(its);
    if (!held && its?.text === text && !its.error) keep(its);
  }

  const goals = translatorGoals.slice(0, config.goals.length).map((goal) => ({ text, its }) => Boolean(its?.text === text && !config.examples.includes(text) && goal(its)));
  const { build, change, remove } = stage({ root, config, kernel, start: { text: config.examples[0], its: null }, goals, draw, words: translatorWords });
  build([typed, french, english, { root: alignment }], [{ root: before }, wordFold(known)]);
  french.note("Loading the model …");
  return () => { reader.close(); remove(); };
}
