/* A question, and the sentences of the course nearest to it: by meaning, and by the words that they share (lesson 07). */
import { stage, figure, node, choice, clamp, fixed } from "./kit.js";
import { newest } from "./newest.js";
import { textBox } from "./text.js";

const WAITING = { meaning: [], words: [], error: "" };

/* `its` is what was found last: { question, where, error }, and by `meaning` and by `words` the hits, nearest first, each
   { pieces: [[text, whether it is shared]], score, from }. */
const isFirst = ([one], [other]) => Boolean(one && other) && JSON.stringify([one.pieces, one.from]) === JSON.stringify([other.pieces, other.from]);

export function searchGoals({ near, lonely }) {
  const goal = (fits) => ({ question, where, its }) => its.question === question && its.where === where && !its.error && fits(its);
  return [
    goal(({ meaning: [first] }) => !first.pieces.some(([, shared]) => shared) && first.score > near),
    goal(({ meaning, words }) => isFirst(meaning, words)),
    goal(({ meaning: [first] }) => first.score < lonely),
  ];
}

export function searchWords({ its: { meaning, words, error } }) {
  if (error || !meaning.length) return error;
  const said = ({ pieces, from, score }) => `“${pieces.map(([text]) => text).join("")}” (${from}; ${fixed(score)})`;
  const found = words.length ? `By words: ${said(words[0])}.` : "By words nothing is found.";
  return `By meaning the nearest sentence is ${said(meaning[0])}. ${found}${isFirst(meaning, words) ? " Both put the same sentence first." : ""}`;
}

/* A list of hits, each with its score as a bar on an axis from 0 to 1. */
function hitList(label, colour) {
  const list = node("ol", { class: "play-found" });
  return {
    ...figure(label, list),
    show(hits) {
      list.replaceChildren(...hits.map(({ pieces, score, from }) => node("li", {},
        node("div", {}, node("i", { style: `--share: ${fixed(100 * clamp(score, 0, 1))}%; --bar: ${colour}` }), node("span", {}, fixed(score)), node("small", {}, from)),
        ...pieces.map(([text, shared]) => (shared ? node("b", {}, text) : text)))));
    },
  };
}

export function search({ root, config, kernel }) {
  if (!kernel) throw Object.assign(new Error("The encoder of this playground needs a kernel."), { expected: true });
  let held = false;
  const meaning = hitList("By meaning: cosine similarity of the vectors", "var(--weight)"), words = hitList("By words: tf-idf", "var(--score)");
  const touch = (changes, settled = true) => { held = !settled; change(changes, settled); };
  const asked = textBox({ label: "Question", examples: config.examples, live: true, changed: (question, settled) => touch({ question }, settled) });
  const where = choice({ label: "In lesson", options: config.options, changed: (place) => touch({ where: place }) });
  const finder = newest({
    read: async ({ question, where: place }) => {
      const found = await kernel.ask("search", { question, where: place }).catch(({ message }) => ({ ...WAITING, error: message }));
      return { error: "", ...found, question, where: place };
    },
    done: (its) => change({ its }, !held, false),
  });

  function draw(now) {
    const { its } = now;
    asked.show(now.question);
    where.show(now.where);
    if (its.question !== now.question || its.where !== now.where) finder.ask(now);
    if (its.question === undefined) return;
    meaning.show(its.meaning);
    meaning.note(its.error || `Vectors of ${config.encoder}; 1 is the same direction.`);
    words.show(its.words);
    words.note(its.error || its.words.length ? "The words that a sentence shares with the question are bold." : "No sentence has a word of yours.");
  }

  const start = { ...config.start, its: WAITING };
  const { build, change, remove } = stage({ root, config, kernel, start, goals: searchGoals(config), draw, words: searchWords });
  build([meaning, words], [asked, where]);
  return () => { finder.close(); remove(); };
}
