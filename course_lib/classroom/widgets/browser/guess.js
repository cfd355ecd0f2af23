/* A hidden text that is guessed character by character, against three language models (lesson 08). */
import { stage, button, figure, fixed, nextTokens, node } from "./kit.js";

const guessNamed = (letter) => letter.replace(" ", "␣");

/* All that was played: `typed` are rounds of characters. Of each its `truth`, what the learner typed, whether a word `begins`
   there, and of each model the most probable characters [[character, probability], ...] and the probability of the truth. */
export function guessTurns(rounds, { passages }) {
  return rounds.flatMap((typed, number) => {
    const { hidden, begins, chances } = passages[number % passages.length];
    return typed.map((letter, at) => ({ truth: hidden[at], letter, begins: begins[at], models: chances.map((of) => ({ top: of[at][0], chance: of[at][1] })) }));
  });
}

const isRight = ({ letter, truth }) => letter === truth;
const isModelRight = (k) => ({ models, truth }) => models[k].top[0][0] === truth;
const countRight = (turns, right) => turns.filter(right).length;

/* Goals are given the turns. */
export const guessGoals = [
  (turns) => turns.some((turn) => isRight(turn) && turn.begins),
  (turns) => turns.some((turn) => isRight(turn) && !turn.models.some((_, k) => isModelRight(k)(turn))),
  (turns) => turns.length >= 20 && turns[0].models.some((_, k) => countRight(turns, isRight) > countRight(turns, isModelRight(k))),
];

/* What came of the latest character. */
export function guessAnswer(rounds, config) {
  const typed = rounds.at(-1), turn = guessTurns(rounds, config).at(-1);
  if (!typed.length) return "Type the character that comes next; a blank counts, too.";
  const verdict = isRight(turn) ? `✓ Yes, “${guessNamed(turn.truth)}”` : `✗ Not “${guessNamed(turn.letter)}” but “${guessNamed(turn.truth)}”`;
  const over = typed.length >= playedPassage(rounds, config).hidden.length ? " This text is done: take another one." : "";
  return `${verdict}. ${config.players.map((name, k) => `${name} ${isModelRight(k)(turn) ? "✓" : "✗"}`).join(", ")}.${over}`;
}

const playedPassage = (rounds, { passages }) => passages[(rounds.length - 1) % passages.length];

export function guessWords(rounds, config) {
  const turns = guessTurns(rounds, config), { given, hidden } = playedPassage(rounds, config);
  const scores = [`you ${countRight(turns, isRight)}`, ...config.players.map((name, k) => `${name} ${countRight(turns, isModelRight(k))}`)];
  return `The text so far: “${given}${hidden.slice(0, rounds.at(-1).length).join("")}”. ${guessAnswer(rounds, config)}${turns.length ? ` Right of ${turns.length}: ${scores.join(", ")}.` : ""}`;
}

export function guess({ root, config, kernel }) {
  const { players } = config, text = node("p", { class: "play-guessed" }), view = figure("Guess the next character", text);
  const models = players.map((name) => nextTokens({ label: name }));
  const table = node("table", { class: "play-score" }), score = figure("Predicted correctly so far", table);
  const input = node("input", { class: "play-number", "aria-label": "Next character", autocapitalize: "off", autocomplete: "off", spellcheck: "false" });
  const type = () => {
    const letters = [...input.value], { typed } = state(), most = playedPassage(typed, config).hidden.length;
    input.value = "";
    const last = [...typed.at(-1), ...letters].slice(0, most);
    if (last.length > typed.at(-1).length) change({ typed: typed.with(-1, last) });
  };
  input.addEventListener("input", (event) => { if (!event.isComposing) type(); });
  input.addEventListener("compositionend", type);
  const again = button({ text: "Another text", clicked: () => { if (state().typed.at(-1).length) change({ typed: [...state().typed, []] }); input.focus(); } });
  const entry = node("div", { class: "play-row" }, node("span", { class: "play-label" }, "Next character"), input, again.root);

  function draw({ typed }) {
    const { given, hidden } = playedPassage(typed, config), last = typed.at(-1), turns = guessTurns(typed, config), turn = last.length ? turns.at(-1) : null;
    const done = last.map((letter, i) => node("span", { class: letter === hidden[i] ? "right" : "wrong", title: letter === hidden[i] ? "right" : `you typed ${guessNamed(letter)}` }, hidden[i]));
    text.replaceChildren(given, ...done, node("b", {}, last.length < hidden.length ? "?" : "…"));
    view.note(`${guessAnswer(typed, config)} ${hidden.length - last.length} to go.`);
    models.forEach((model, k) => {
      model.show(turn ? turn.models[k].top : []);
      model.note(turn ? `${isModelRight(k)(turn) ? "✓" : "✗"} ${fixed(100 * turn.models[k].chance, 0)}% for “${guessNamed(turn.truth)}”` : "After each character you see what the model expected.");
    });
    const groups = [turns, turns.filter(({ begins }) => begins), turns.filter(({ begins }) => !begins)];
    const cells = (right) => groups.map((some) => node("td", {}, some.length ? `${countRight(some, right)} of ${some.length}` : "–"));
    const bits = (k) => (turns.length ? fixed(turns.reduce((sum, { models: of }) => sum - Math.log2(of[k].chance), 0) / turns.length, 1) : "–");
    const line = (name, right, last) => node("tr", {}, node("th", { scope: "row" }, name), ...cells(right), node("td", {}, last));
    table.replaceChildren(
      node("tr", {}, node("td", {}), ...["all", "word starts", "elsewhere", "bits per character"].map((head) => node("th", { scope: "col" }, head))),
      line("you", isRight, "–"), ...players.map((name, k) => line(name, isModelRight(k), bits(k))),
    );
  }

  const goals = guessGoals.map((goal) => ({ typed }) => goal(guessTurns(typed, config)));
  const { build, change, state, remove } = stage({ root, config, kernel, start: { typed: [[]] }, goals, draw, words: ({ typed }) => guessWords(typed, config) });
  build([view, { root: entry }, ...models, score], []);
  return remove;
}
