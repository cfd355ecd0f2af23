/* Look a word up in GPT's dictionary (lesson 08, and the site's first page). */
import { stage, figure, node, choice, button, buttons } from "./kit.js";
import { textBox } from "./text.js";
import { END, languageModel, seen } from "./language.js";
import { needsModel } from "./site.js";
import { argmaxOf } from "./sampling.js";

const LONGEST = 60;  // tokens of a definition

/* `rows` are [name, definition] pairs; `reached` is what a kernel says of the goals. */
export function dictionary({ root, config: given, kernel }) {
  needsModel(kernel, given.models);
  const config = kernel ? given : { ...given, goals: [] };  // they need WordNet
  const start = { word: config.words[0], part: config.parts[0], rows: kernel ? config.rows : config.rows.slice(0, 1), reached: [], waiting: false };
  let model = null, asked = 0;

  const head = node("div", { class: "play-headword" }), entry = node("dl", { class: "play-entry" });
  const view = figure("", node("div", {}, head, entry));
  const word = textBox({ label: "Word", examples: config.words, most: config.most, changed: (text) => ask({ word: text.trim() }) });
  const part = choice({ label: "Part of speech", options: config.parts.map((name) => [name, name]), changed: (name) => ask({ part: name }) });
  const define = buttons("", [button({ text: "Define", primary: true, clicked: () => ask({}) })]);

  function ask(changes) {
    change({ ...changes, reached: [], waiting: true }, false);  // the old entry stays, so that nothing moves
    const mine = ++asked, current = () => mine === asked;
    Promise.resolve(state().word ? (kernel ? told(current) : written(current)) : view.note("Type a word.")).catch((error) => {
      model = null;
      view.note(error.message);
    });
  }

  async function told(current) {
    const { rows, reached } = await kernel.ask("look up", { word: state().word, part: state().part });
    if (current()) change({ rows, reached, waiting: false });
  }

  /* Greedy decoding in the page: each token is seen as soon as it is chosen. */
  async function written(current) {
    model ??= languageModel({ config, kernel, told: (fraction) => view.note(`Loading the model: ${Math.round(100 * fraction)} %`) });
    const { tokenizer, logits } = await model;
    const ids = tokenizer.encode(`${END}${state().word} (${state().part}):`, { specials: false }), first = ids.length;
    while (current() && ids.length < first + LONGEST) {
      ids.push(argmaxOf(await logits(ids)));
      const text = tokenizer.decode(ids.slice(first));
      if (!current() || text.endsWith(END)) break;
      change({ rows: [["GPT", text.trim()]], waiting: false });
      await seen();
    }
  }

  function draw(now) {
    if (now.rows === start.rows) asked += 1;  // back to the start: nothing more is written
    word.show(now.word);
    part.show(now.part);
    const lines = now.rows.flatMap(([name, text]) => [node("dt", {}, name), node("dd", {}, text)]);
    head.replaceChildren(now.word, node("span", {}, ` (${now.part})`));
    entry.replaceChildren(...lines);
    entry.classList.toggle("waiting", now.waiting);
    view.note(kernel ? "" : config.note);
  }

  const words = (now) => `${now.word} (${now.part}). ${now.rows.map(([name, text]) => `${name}: ${text}.`).join(" ")}`;
  const goals = config.goals.map((_, i) => ({ reached }) => Boolean(reached[i]));
  const { build, change, state, remove } = stage({ root, config, kernel, start, goals, draw, words });
  build([view], [word, part, define]);
  return () => { asked += 1; remove(); };
}
