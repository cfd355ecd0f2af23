/* Votes between two answers, the reward model that is fitted to them, and what the best policy writes (lesson 10). */
import { stage, figure, node, button, choice, slider, fixed } from "./kit.js";

const STEPS = 600;  // of the accelerated gradient descent (Nesterov 1983) that fits the reward

/* How often each word stands in an answer, behind its prompt, and in front of all how long it is, in fours of words:
   course_lib/lessons/lesson_10/taste.py. */
export function tasteFeatures(text, { words, prompt, stop }) {
  const counts = new Float64Array(words.length + 1);
  for (const word of text.slice(prompt)) counts[word + 1]++;
  counts[stop + 1] = 0;
  counts[0] = text.length / 4;
  return counts;
}

/* What tells the first answer of a pair from the second, as [index, difference]. */
const tasteGap = ([one, other], config) => {
  const [a, b] = [one, other].map((text) => tasteFeatures(text, config));
  return [...a.keys()].flatMap((i) => (a[i] === b[i] ? [] : [[i, a[i] - b[i]]]));
};
const along = (gap, weights) => gap.reduce((sum, [i, by]) => sum + by * weights[i], 0);

/* The weights of the reward that make these votes most probable (Bradley & Terry 1952), with a penalty on their squares. */
export function tasteLearned(votes, config) {
  const size = config.words.length + 1, weights = new Float64Array(size), ahead = new Float64Array(size);
  const gaps = [...votes].flatMap((vote, n) => (vote === "=" ? [] : [tasteGap(config.pairs[n], config).map(([i, by]) => [i, vote === "a" ? by : -by])]));
  const steepest = config.penalty + gaps.flat().reduce((sum, [, by]) => sum + by * by, 0) / 4, root = Math.sqrt(config.penalty / steepest);
  for (let step = 0; step < STEPS && gaps.length; step++) {
    const slope = ahead.map((weight) => config.penalty * weight);
    for (const gap of gaps) {
      const wrong = 1 / (1 + Math.exp(along(gap, ahead)));
      for (const [i, by] of gap) slope[i] -= wrong * by;
    }
    for (let i = 0; i < size; i++) {
      const next = ahead[i] - slope[i] / steepest;
      ahead[i] = next + ((1 - root) / (1 + root)) * (next - weights[i]);
      weights[i] = next;
    }
  }
  return weights;
}

/* For each of the last eight votes that tell two answers apart: whether what was learned before would have voted so. */
export function tasteForeseen(votes, config) {
  const told = [...votes].flatMap((vote, n) => (vote === "=" ? [] : [n])).slice(-8);
  return told.map((n) => {
    const gap = along(tasteGap(config.pairs[n], config), tasteLearned(votes.slice(0, n), config));
    return votes[n] === "a" ? gap > 0 : gap < 0;
  });
}

/* The best policy for a reward over the drawn answers, Rafailov et al. 2023, eq. (4): its KL in nats and some lines. */
export function tasteWritten(answers, weights, beta, config) {
  const rewards = answers.map((text) => tasteFeatures(text, config).reduce((sum, count, i) => sum + count * weights[i], 0));
  const order = [...rewards.keys()].sort((a, b) => rewards[b] - rewards[a] || a - b), most = rewards[order[0]];
  const powers = rewards.map((reward) => Math.exp((reward - most) / beta)), all = powers.reduce((a, b) => a + b);
  const kl = powers.reduce((sum, power) => sum + (power ? (power / all) * Math.log((power / all) * answers.length) : 0), 0);
  const lines = config.dice.map((number) => {
    let sum = 0;
    return answers[order.find((i) => (sum += powers[i] / all) >= number) ?? order.at(-1)];
  });
  return { kl, lines };
}

/* All that follows from the votes, a prompt and beta. */
export function tasteOf({ votes, prompt, beta }, config) {
  const answers = config.choices[prompt], weights = tasteLearned(votes, config);
  return { weights, foreseen: tasteForeseen(votes, config), count: [...votes].filter((vote) => vote !== "=").length,
    ...tasteWritten(answers, weights, beta, config), before: tasteWritten(answers, weights.map(() => 0), 1, config).lines };
}

const different = (lines) => new Set(lines.map((line) => line.join(" "))).size;

/* Goals are given the votes and what follows from them. */
export const tasteGoals = [
  ({ votes }, { count, foreseen }, { enough, friends }) => count >= enough && !Object.values(friends).includes(votes) && foreseen.filter(Boolean).length >= 7,
  ({ votes }, { lines, before }, { prompt }) => votes !== "" && different(lines) > 1 && lines[0].slice(prompt).some((word) =>
    lines.every((line) => line.slice(prompt).includes(word)) && before.filter((line) => line.slice(prompt).includes(word)).length <= 1),
  ({ votes }, { lines }) => votes !== "" && different(lines) === 1,
];

export function tasteWords(state, config) {
  const { count, foreseen, kl, lines } = tasteOf(state, config);
  const told = foreseen.length ? `Of your last ${foreseen.length} votes it foresaw ${foreseen.filter(Boolean).length}. ` : "";
  return `${count} votes. ${told}The policy has gone ${fixed(kl, 1)} nats away from the language model; its lines: ` +
    lines.map((line) => line.map((word) => config.words[word]).join(" ")).join(" ");
}

export function labeller({ root, config, kernel }) {
  const { words, pairs, shown } = config, sentence = (text) => text.map((word) => words[word]).join(" ");
  const vote = (mark) => state().votes.length < pairs.length && change({ votes: state().votes + mark });
  const both = ["a", "b"].map((mark) => {
    const made = node("button", { type: "button", class: "play-vote" });
    made.addEventListener("click", () => vote(mark));
    return made;
  });
  const cast = (text, votes) => button({ text, clicked: () => change({ votes: votes(state().votes) }) }).root;
  const more = node("div", { class: "play-buttons" },
    cast("No difference", (now) => (now.length < pairs.length ? `${now}=` : now)), cast("One back", (now) => now.slice(0, -1)), cast("Start again", () => ""),
    ...Object.entries(config.friends).map(([text, votes]) => cast(text, () => votes)));
  const question = figure("Which is better? Click it", node("div", { class: "play-votes" }, ...both, more));
  const [earlier, later] = [node("ul", { class: "play-lines" }), node("ul", { class: "play-lines" })];
  const first = figure("Written before", earlier), now = figure("Written for your votes", later);
  const list = node("ul", { class: "play-weights" }), learned = figure("What the reward model has learned", list);
  const prompt = choice({ label: "Prompt", options: Object.keys(config.choices).map((name) => [name, name]), changed: (name) => change({ prompt: name }) });
  const beta = slider({ label: "β", low: -2, high: 0.5, step: 0.1, log: 10, format: (value) => fixed(value, 3), changed: (value, settled) => change({ beta: value }, settled) });
  const names = ["each four words more", ...words];

  function draw(state) {
    const its = tasteOf(state, config), number = state.votes.length, pair = pairs[number];
    both.forEach((one, i) => {
      one.hidden = !pair;
      one.textContent = pair ? sentence(pair[i]) : "";
    });
    question.note(pair ? `Pair ${number + 1} of ${pairs.length}` : "There are no more pairs.");
    [[earlier, its.before], [later, its.lines]].forEach(([place, lines]) => place.replaceChildren(...lines.map((line) => node("li", {}, sentence(line)))));
    now.note(`${its.count} votes, KL ${fixed(its.kl, 1)} nats${its.foreseen.length ? `; of the last ${its.foreseen.length} votes it foresaw ${its.foreseen.filter(Boolean).length}` : ""}`);
    const order = its.count ? [...its.weights.keys()].sort((a, b) => its.weights[b] - its.weights[a] || a - b) : [];
    list.replaceChildren(...[...order.slice(0, shown), ...order.slice(-shown)].map((i) => {
      const weight = its.weights[i], wide = Math.min(1, Math.abs(weight) / 2);
      return node("li", { class: weight < 0 ? "minus" : "" }, node("span", {}, names[i]), node("i", { style: `--share: ${(100 * wide).toFixed(1)}%` }), node("span", {}, `${weight < 0 ? "−" : "+"}${fixed(Math.abs(weight), 1)}`));
    }));
    learned.note(its.count ? "the largest and the smallest weights; the bars end at ±2" : "nothing yet");
    prompt.show(state.prompt);
    beta.show(state.beta);
  }

  const goals = tasteGoals.map((goal) => (now) => goal(now, tasteOf(now, config), config));
  const { build, change, state, remove } = stage({ root, config, kernel, start: config.start, goals, draw, words: (now) => tasteWords(now, config) });
  build([question, now, first, learned], [prompt, beta]);
  return remove;
}
