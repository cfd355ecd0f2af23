/* A sentence in English or French with words that are hidden by a click, and what BERT puts into the blanks (lesson 07). */
import { stage, figure, node, put, nextTokens, fixed } from "./kit.js";
import { newest } from "./newest.js";
import { textBox } from "./text.js";
import { wordLine, wordFold, unknownWords } from "./sentence.js";
import { needsModel, siteModel } from "./site.js";
import { argmaxOf } from "./sampling.js";
import { softmaxRows } from "../engine/tensor.js";
import { tokenizeEnglish } from "../engine/words.js";
import { BERT } from "../engine/bert.js";

const BLANK = "[MASK]", BLANK_SPECIALS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", BLANK];
const BLANK_PIECE = /\[[^[\]]*\]|_+|[\p{L}\p{N}]+(?:['’][\p{L}\p{N}]+)*['’]?/gu;

/* The words of both languages, and their ids as BERT has them. */
export function blankVocabulary({ english, french }) {
  const languages = [english, french].map((words) => new Set(words.split(" ")));
  const known = new Set([...languages[0], ...languages[1]]), words = [...BLANK_SPECIALS, ...[...known].sort()];
  return { languages, known, words, ids: new Map(words.map((word, id) => [word, id])) };
}

/* The words of a sentence and its full stop, [{ text, hidden }], as `words_of` in lesson 07's blank.py has them. */
export function blankWords(text, { known }) {
  const cut = (piece) => {
    const small = piece.toLowerCase().replaceAll("’", "'"), end = small.indexOf("'") + 1;
    if (end && known.has(small.slice(0, end))) return [small.slice(0, end), small.slice(end)].filter(Boolean);
    const words = tokenizeEnglish(small).slice(0, -1);
    return words.length ? words : [small];
  };
  const words = (text.match(BLANK_PIECE) ?? []).flatMap((piece) => {
    if (!/^[[_]/.test(piece)) return cut(piece).map((word) => ({ text: word, hidden: false }));
    const inside = piece.replace(/^[[\]_]+|[[\]_]+$/g, "").trim(), found = inside && inside !== "MASK" ? cut(inside) : [];
    if (found.length > 1) throw new Error(`One word to a blank, please: “${inside}” is ${found.length} of them.`);
    return [{ text: found[0] ?? null, hidden: true }];
  });
  return words.length ? [...words, { text: ".", hidden: false }] : [];
}

const blankGlued = (words, i) => !i || words[i].text === "." || Boolean(words[i - 1].text?.endsWith("'"));

/* The sentence as one types it. */
export function blankWritten(words) {
  return words.map(({ text, hidden }, i) => `${blankGlued(words, i) ? "" : " "}${hidden ? `[${text ?? "MASK"}]` : text}`).join("");
}

/* What a model says, in one array: for each blank the probability of each word, then for each head its weights at the first
   blank; without a blank the probability of each word if it alone were hidden. */
export function blankReading(bert, words, { ids }) {
  const read = words.map(({ text, hidden }) => ids.get(hidden ? BLANK : text) ?? ids.get("[UNK]")), mask = ids.get(BLANK);
  const tokens = [ids.get("[CLS]"), ...read, ids.get("[SEP]")], places = [...tokens.keys()].filter((t) => tokens[t] === mask), length = tokens.length;
  const chances = ({ features }, t) => softmaxRows(bert.logits(features.slice((t * features.length) / length, ((t + 1) * features.length) / length)));
  if (!places.length) return Float32Array.from(read, (id, i) => chances(bert.encode(tokens.with(i + 1, mask)), i + 1)[id]);
  const output = bert.encode(tokens), rows = [];
  for (const block of output.weights) for (let row = places[0]; row < block.length / length; row += length) rows.push(...block.subarray(row * length, (row + 1) * length));
  return Float32Array.from([...places.flatMap((t) => [...chances(output, t)]), ...rows]);
}

/* `its` is what was read last: { text, words, error }, `blanks`, of each its `truth` (null if nobody knows), the
   `chances` of all words and the `most` probable one; `heads`, the weights of each; `seen` where there is no blank. */
export function blankResult(text, words, answer, { words: vocabulary }) {
  const size = vocabulary.length, blanks = words.filter(({ hidden }) => hidden).map(({ text: truth }, n) => {
    const chances = answer.subarray(n * size, (n + 1) * size), most = argmaxOf(chances);
    return { truth, chances, most: vocabulary[most], chance: chances[most] };
  });
  const rest = answer.subarray(blanks.length * size), length = words.length + 2;
  const heads = blanks.length ? Array.from({ length: rest.length / length }, (_, h) => rest.subarray(h * length, (h + 1) * length)) : [];
  return { text, words, error: null, blanks, heads, seen: blanks.length ? [] : [...rest] };
}

const blankRanked = (chances, count) => [...chances.keys()].sort((a, b) => chances[b] - chances[a]).slice(0, count);

export function blankGoals({ gender, bars, sure }, { languages: [english, french], known, words, ids }) {
  const goal = (fits) => ({ text, its }) => Boolean(its?.text === text && !its.error && its.blanks.some(fits));
  const alone = (likely, one, other) => likely.some((word) => one.has(word) && !other.has(word));
  return [
    goal(({ truth, most, chances }) => gender[truth] && most === truth && gender[truth].every((other) => chances[ids.get(other)] < 0.01)),
    goal(({ chances }) => {
      const likely = blankRanked(chances, bars).filter((id) => chances[id] >= 0.05).map((id) => words[id]);
      return alone(likely, english, french) && alone(likely, french, english);
    }),
    goal(({ truth, most, chance }) => known.has(truth) && most !== truth && chance > sure),
  ];
}

const blankPercent = (chance) => `${fixed(100 * chance, 0)}%`;

function blankVerdict({ truth, chances, most, chance }, { ids }) {
  const says = `The model says “${most}” (${blankPercent(chance)})`;
  if (truth === null) return `${says}.`;
  if (most === truth) return `✓ ${says}, and that stood there.`;
  const own = chances[ids.get(truth)] ?? 0;
  return `✗ ${says}; “${truth}” stood there: ${blankPercent(own)}, rank ${chances.filter((other) => other > own).length + 1}.`;
}

const blankHead = (h, { heads }, { layers }) => `${Math.floor((h * layers) / heads.length) + 1}.${(h % (heads.length / layers)) + 1}`;
const blankNames = (words) => ["[CLS]", ...words.map(({ text }) => text ?? "?"), "[SEP]"];

export function blankWordsSaid({ its }, config, vocabulary) {
  if (!its || its.error) return its?.error ?? "";
  if (!its.blanks.length) return `No word is hidden. The probability of each, if it alone were hidden: ${its.words.map(({ text }, i) => `“${text}” ${blankPercent(its.seen[i])}`).join(", ")}.`;
  const sentence = its.words.map(({ text, hidden }) => (hidden ? BLANK : text)).join(" "), all = its.heads.flatMap((row) => [...row]);
  const most = argmaxOf(all), length = its.words.length + 2;
  return `“${sentence}” ${its.blanks.map((blank) => blankVerdict(blank, vocabulary)).join(" ")} Of all heads, head ${blankHead(Math.floor(most / length), its, config)} ` +
    `attends most to one token from the first blank: to “${blankNames(its.words)[most % length]}” (${fixed(all[most])}).`;
}

/* How strong a word's colour is: 0 for a sure one, 1 for one of 8 bits or more. */
const blankSurprise = (chance) => Math.min(1, -Math.log2(Math.max(chance, 1e-9)) / 8);

export function blank({ root, config, kernel }) {
  needsModel(kernel, config.models);
  const vocabulary = blankVocabulary(config);
  let bert = null, held = false;

  const line = wordLine({ label: "The sentence: press a word to hide it or to show it", kind: "large", clicked: (at) => {
    const words = blankWords(state().text, vocabulary), i = at - 1;
    touch({ text: blankWritten(words.with(i, { ...words[i], hidden: !words[i].hidden })) }, true);
  } });
  const bars = ["First blank", "Second blank", "Third blank"].map((label) => nextTokens({ label: `${label}: most probable words` }));
  const rows = node("ol", { class: "play-strips" });
  const heads = figure("Attention from the first blank, head by head", rows);
  const place = (event) => { const at = [...rows.children].indexOf(event.target.closest(".play-strips > *")); light(at < 0 ? null : at); };
  for (const come of ["pointerover", "focusin"]) rows.addEventListener(come, place);
  for (const go of ["pointerleave", "focusout"]) rows.addEventListener(go, () => light(null));
  const typed = textBox({ label: "Sentence", examples: config.examples, live: true, changed: (text, settled) => touch({ text }, settled) });

  const touch = (changes, settled) => { held = !settled; change(changes, settled); };
  const light = (head) => line.light(head === null ? ["", ...state().its.seen].map((chance) => chance && blankSurprise(chance)) : [...state().its.heads[head]]);

  async function read(text) {
    const words = blankWords(text, vocabulary), count = words.filter(({ hidden }) => hidden).length;
    if (!words.length) return unread(text, "Type a sentence, or take one of the examples.");
    if (words.length > config.most + 1) return unread(text, `This sentence has ${words.length - 1} words; please keep to ${config.most}.`, words);
    if (count > config.blanks) return unread(text, `Hide at most ${config.blanks} words at a time; there are ${count} blanks.`, words);
    if (kernel) return blankResult(text, words, await kernel.ask("fill", text), vocabulary);
    bert ??= siteModel(config.models[0]).then(({ weights, config: sizes }) => new BERT(weights, sizes));
    return blankResult(text, words, blankReading(await bert, words, vocabulary), vocabulary);
  }

  const unread = (text, error, words = []) => ({ text, words, error, blanks: [], heads: [], seen: [] });
  const reader = newest({
    read: (text) => read(text).catch(({ message }) => { bert = null; return unread(text, message); }),
    done: (its) => change({ its }, !held, false),
  });

  function draw({ text, its }) {
    typed.show(text);
    if (its?.text !== text) reader.ask(text);
    if (!its) return;
    const blanks = [...its.blanks], seen = (view, on) => put(view.root, { style: on ? null : "visibility: hidden" });
    const shown = its.words.map((word, i) => {
      const tight = blankGlued(its.words, i) && i > 0, name = word.text === "." || word.text === null ? null : `${word.hidden ? "Show" : "Hide"} “${word.text}”`;
      if (!word.hidden) return { text: word.text, name, glued: tight, on: name && false };
      const blank = blanks.shift(), kind = !blank || word.text === null ? "" : blank.most === word.text ? "right" : "wrong";
      const text = `${blank?.most ?? "___"}${{ right: " ✓", wrong: " ✗" }[kind] ?? ""}`;
      return { text, name: name && `${name}: ${text}`, glued: tight, kind: `blank ${kind}`, on: name && true };
    });
    line.show(its.words.length ? [{ text: "[CLS]", kind: "quiet" }, ...shown, { text: "[SEP]", kind: "quiet" }] : []);
    const strange = unknownWords(its.words.flatMap((word) => word.text ?? []), [...vocabulary.known]);
    line.note(its.error ?? (strange || (its.seen.length ? "No word is hidden: press one. The stronger a word's colour, the less the model would expect it if it alone were hidden." : "Press a word to hide it or to show it. ✓ or ✗: whether the model's word stood there.")));
    bars.forEach((view, n) => {
      const blank = its.blanks[n];
      view.root.hidden = n > 0 && !blank;
      seen(view, blank);
      if (!blank) return;
      view.show(blankRanked(blank.chances, config.bars).map((id) => [vocabulary.words[id], blank.chances[id]]));
      view.note(blankVerdict(blank, vocabulary));
    });
    seen(heads, its.heads.length);
    if (its.heads.length) showHeads(its);
    light(null);
  }

  function showHeads(its) {
    const names = blankNames(its.words);
    rows.replaceChildren(...its.heads.map((weights, h) => node("li", { tabindex: 0, "aria-label": `head ${blankHead(h, its, config)}: most to “${names[argmaxOf(weights)]}” (${fixed(Math.max(...weights))})` },
      node("span", {}, blankHead(h, its, config)), ...Array.from(weights, (weight) => node("i", { style: `--share: ${(100 * weight).toFixed(0)}%` })))));
    heads.note("layer.head; one square for each token. Point at a head: the words that it attends to light up.");
  }

  const { build, change, state, remove } = stage({ root, config, kernel, start: { text: config.examples[0], its: null }, goals: blankGoals(config, vocabulary), draw, words: (now) => blankWordsSaid(now, config, vocabulary) });
  build([line, ...bars, heads], [typed, wordFold([...vocabulary.known].sort())]);
  if (!state().its) line.note("Loading the model …");
  return () => { reader.close(); remove(); };
}
