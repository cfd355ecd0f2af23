/* What each token of an answer is rewarded with, and how far two policies have gone along their training (lesson 10). */
import { stage, heatMap, choice, slider, clamp, fixed } from "./kit.js";
import { newest } from "./newest.js";
import { plane, point } from "./plane.js";

/* The reward of each token, -β ln(π / π_ref) and at the last one the score, and its advantage by generalised advantage
   estimation with a discount of 1 (Schulman et al. 2016). */
export function tokenWorth({ ratios, values, score }, beta, trace) {
  const rewards = ratios.map((ratio, t) => -beta * ratio + (t === ratios.length - 1 ? score : 0)), advantages = [];
  for (let t = ratios.length - 1, total = 0; t >= 0; t--) {
    total = rewards[t] + (values[t + 1] ?? 0) - values[t] + trace * total;
    advantages.unshift(total);
  }
  return { rewards, advantages };
}

export const paidSum = (rewards) => rewards.reduce((a, b) => a + b);

/* Goals are given the state and what the answers of both policies are worth, trained with the penalty and without. */
export const paidGoals = [
  (_, [kept, free]) => paidSum(free.rewards) > paidSum(kept.rewards),
  ({ trace }) => trace === 0,
];

export function paid({ root, config, kernel }) {
  const { answers, most } = config, names = Object.keys(answers), heads = ["ln π / π_ref", "reward", "value", "advantage"];
  const start = { policy: names[0], beta: 0.1, trace: 0.95, at: answers[names[0]].points.length - 1, its: null };
  const same = (now) => now.its && now.its.beta === now.beta && now.its.trace === now.trace;
  const worthOf = (now) => (kernel ? (same(now) ? now.its.worth : null) : names.map((name) => tokenWorth(answers[name], now.beta, now.trace)));

  const signed = (value) => `${value < 0 ? "−" : "+"}${fixed(Math.abs(value), 1)}`;
  const maps = names.map((name) => heatMap({ label: "The answer, token by token", rows: answers[name].words, columns: heads, high: 2, text: signed }));
  maps.forEach((map) => map.root.classList.add("play-dense"));
  const course = plane({ label: "Along the training: drag the point", x: [-2, most.kl], y: [-1, most.reward], xTicks: [0, 10, 20, 30, 40].filter((kl) => kl <= most.kl), yTicks: [0, 2, 4, 6, 8].filter((reward) => reward <= most.reward), xLabel: "KL (nats)", yLabel: "reward", height: 250, role: "group" });
  const colours = ["var(--weight)", "var(--score)"];
  names.forEach((name, i) => course.line(colours[i], { name }).show(answers[name].points.map(({ KL, reward }) => [KL, reward])));
  const equal = course.line("var(--quiet)", { dashed: true, thin: true });
  const go = (at, settled) => change({ at: clamp(at, 0, answers[state().policy].points.length - 1) }, settled);
  const handle = point(course, {
    label: "Point of the training; arrow keys: earlier and later", colour: "#d55e00", end: () => change({}),
    dragged: (x, y) => {
      const far = answers[state().policy].points.map(({ KL, reward }) => Math.hypot((KL - x) / most.kl, (reward - y) / most.reward));
      go(far.indexOf(Math.min(...far)), false);
    },
    keys: (right, up) => go(state().at + right + up, true),
  });
  const policy = choice({ label: "Trained", options: names.map((name) => [name, name]), changed: (name) => change({ policy: name, at: answers[name].points.length - 1 }) });
  const beta = slider({ label: "β", low: -4, high: 0, step: 0.1, log: 10, format: (value) => `${Number(value.toPrecision(2))}`, changed: (value, settled) => change({ beta: value }, settled) });
  const trace = slider({ label: "λ", low: 0, high: 1, step: 0.05, changed: (value, settled) => change({ trace: value }, settled) });

  /* The kernel computes with the learner's own functions. */
  const computed = newest({
    read: async (now) => {
      const all = [...await kernel.ask("worth", { beta: now.beta, trace: now.trace })], take = (count) => all.splice(0, count);
      const worth = names.map((name) => { const count = answers[name].words.length; return { rewards: take(count), advantages: take(count) }; });
      return { beta: now.beta, trace: now.trace, worth };
    },
    done: (its) => change({ its }, true, false),
    failed: (error) => { maps[0].note(error.message); },
  });

  function draw(now) {
    const worth = worthOf(now), { points } = answers[now.policy], here = points[now.at], net = here.reward - now.beta * here.KL;
    maps.forEach((map, i) => { map.root.style.display = names[i] === now.policy ? "" : "none"; });
    worth?.forEach(({ rewards, advantages }, i) => {
      const { ratios, values, score } = answers[names[i]];
      maps[i].show(ratios.map((ratio, t) => [ratio, rewards[t], values[t], advantages[t]]));
      maps[i].note(`Score of the reward model ${fixed(score, 1)}; sum of the rewards, ${names.map((name, k) => `${name} ${fixed(paidSum(worth[k].rewards), 1)}`).join(", ")}.`);
    });
    handle.show(clamp(here.KL, -2, most.kl), clamp(here.reward, -1, most.reward), now.at, `KL ${fixed(here.KL, 1)} nats, reward ${fixed(here.reward, 1)}`);
    equal.show([[-2, net - 2 * now.beta], [most.kl, net + now.beta * most.kl]].map(([kl, reward]) => [kl, clamp(reward, -1, most.reward)]));
    course.note(`Measured ${now.at + 1} of ${points.length}: reward ${fixed(here.reward, 1)} − β · KL ${fixed(here.KL, 1)} = ${fixed(net, 1)}; grammatical ${fixed(100 * here.grammatical, 0)} %. Dashed: as good as this.`);
    policy.show(now.policy);
    beta.show(now.beta);
    trace.show(now.trace);
    if (!worth) computed.ask(now);
  }

  const goals = paidGoals.map((goal) => (now) => { const worth = worthOf(now); return worth !== null && goal(now, worth); });
  const words = (now) => {
    const worth = worthOf(now);
    return worth ? `Rewards of the tokens in all: ${names.map((name, i) => `policy trained ${name}, ${fixed(paidSum(worth[i].rewards), 1)}`).join("; ")}.` : "";
  };
  const { build, change, state, remove } = stage({ root, config, kernel, start, goals, draw, words });
  build([...maps, course], [policy, beta, trace]);
  return () => { computed.close(); remove(); };
}
