/* A point (N, D) that is dragged over the plane of a scaling law, along or across its line of equal compute (lesson 09). */
import { stage, slider, choice, clamp, fixed, node } from "./kit.js";
import { plane, point } from "./plane.js";

const NEAR = 2;  // a run is near a budget that is this many times larger or smaller, at most
const LOSSES = [0.8, 4], LEVELS = [1.2, 1.4, 1.8, 3];  // of the axis, and of the lines of equal loss
const lg = Math.log10;

/* E + A / N^alpha + B / D^beta, Hoffmann et al. 2022, eq. (2). */
export function scalingLoss({ E, A, B, alpha, beta }, size, tokens) {
  return E + A / size ** alpha + B / tokens ** beta;
}

/* What a model of this size makes of a budget C = 6 N D, and the best model for it, eq. (4). */
export function scalingSpent({ budget, size }, { law }) {
  const { A, B, alpha, beta } = law, balance = ((alpha * A) / (beta * B)) ** (1 / (alpha + beta));
  const best = balance * (budget / 6) ** (beta / (alpha + beta)), tokens = budget / (6 * size);
  return { tokens, loss: scalingLoss(law, size, tokens), best, lowest: scalingLoss(law, best, budget / (6 * best)) };
}

/* Goals are given the point and what follows from it. */
export const scalingGoals = [
  ({ size }, { best, loss, lowest }) => size >= 2 * best && loss <= 1.03 * lowest,
  ({ size }, { best }) => Math.abs(size / 1e5 - 1) < 0.1 && Math.abs(best / 1e5 - 1) < 0.1,
  ({ size }, { tokens, loss, lowest }) => tokens < size && loss > 1.3 * lowest,
];

/* Two digits, with thousands parted, or as a power of ten. */
function amount(value) {
  if (value >= 1e8) {
    const [digits, power] = value.toExponential(1).split("e+");
    return `${digits}e${power.padStart(2, "0")}`;
  }
  const unit = 10 ** Math.max(0, `${Math.trunc(value)}`.length - 2);
  return (Math.round(value / unit) * unit).toLocaleString("en");
}

const above = ({ loss, lowest }) => fixed(Math.max(0, 100 * (loss / lowest - 1)), 0);

export function scalingWords(state, config) {
  const spent = scalingSpent(state, config);
  return `${amount(state.size)} parameters and ${amount(state.budget)} operations leave ${amount(spent.tokens)} tokens for training. ` +
    `The law predicts a loss of ${fixed(spent.loss)} nats per character. ` +
    `The best size for this budget is ${amount(spent.best)} parameters, with ${fixed(spent.lowest)} nats: yours is ${above(spent)} % above it.`;
}

export function compute({ root, config, kernel }) {
  const { law, runs, sizes, budgets } = config, raised = (power) => `10${`${power}`.replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit])}`;
  const x = sizes, ticks = (...powers) => powers.map((power) => [power, raised(power)]), xTicks = ticks(3, 4, 5, 6);
  const field = plane({ label: "Your model: drag it", x, y: [1, 10.6], xTicks, yTicks: ticks(2, 4, 6, 8), xLabel: "parameters N", yLabel: "tokens D", height: 278, role: "group" });
  const valley = plane({ label: "Loss at equal compute", x, y: LOSSES, xTicks, yTicks: [1, 2, 3, 4], xLabel: "parameters N", yLabel: "nats per character", height: 278, role: "group" });
  const ends = (budget) => x.map((n) => [n, budget - lg(6) - n]), along = [...Array(141).keys()].map((k) => x[0] + (k / 140) * (x[1] - x[0]));
  const named = (n, d, text) => field.area.append(node("text", { x: field.x(n), y: field.y(d) - 4, "text-anchor": n > 5 ? "end" : "start" }, text));
  field.line("var(--line)", { thin: true, name: "equal C" }).show([9, 10, 11, 12, 13].map(ends));
  const contours = field.line("var(--weight)", { thin: true, name: "equal loss" });
  contours.show(LEVELS.map((level) => along.map((n) => [n, lg(law.B / (level - law.E - law.A / 10 ** (law.alpha * n))) / law.beta]).filter(([, d]) => d > 1 && d < 9)));
  for (const level of LEVELS) named(x[1] - 0.05, lg(law.B / (level - law.E - law.A / 10 ** (law.alpha * x[1]))) / law.beta, `${level}`);
  field.line("var(--quiet)", { dots: true, name: "runs" }).show(runs.map(([size, tokens]) => [lg(size), lg(tokens)]));
  field.line("var(--good)", { name: "best N, D" }).show(budgets.map((budget) => {
    const { best } = scalingSpent({ budget: 10 ** budget, size: 1 }, config);
    return [lg(best), budget - lg(6) - lg(best)];
  }));
  named(x[0] + 0.06, budgets[1] - lg(6) - x[0], `C = ${raised(budgets[1])}`);
  named(x[1] - 0.05, budgets[0] - lg(6) - x[1], `C = ${raised(budgets[0])}`);
  const mine = field.line("#d55e00"), fittest = field.line("var(--ink)", { dots: true });
  const curve = valley.line("var(--weight)", { name: "the law" }), near = valley.line("var(--quiet)", { dots: true, name: "runs near C" });
  const lowest = valley.line("var(--good)", { dots: true, name: "best N" });

  /* Powers of ten of the point's N and D, kept on the plane. */
  function move(n, d, settled) {
    const size = clamp(Number(n.toFixed(2)), ...x), budget = clamp(Number((size + d + lg(6)).toFixed(2)), ...budgets);
    change({ size: 10 ** size, budget: 10 ** budget }, settled);
  }
  const follow = (n, settled) => move(n, lg(state().budget / 6) - clamp(Number(n.toFixed(2)), ...x), settled);
  const end = () => change({}), keys = (right, up) => (right ? follow(lg(state().size) + right / 20, true) : move(lg(state().size), lg(state().budget / 6) - lg(state().size) + up / 20, true));
  const model = point(field, {
    label: "Your model; left and right: parameters at equal compute, up and down: compute", colour: "#d55e00", end, keys,
    dragged: (n, d) => (state().along ? follow(n, false) : move(n, d, false)),
  });
  const twin = point(valley, { colour: "#d55e00", end, dragged: (n) => follow(n, false) });
  const short = (value) => value.toExponential(1).replace("e+", "e");
  const budget = slider({ label: "Compute C", low: budgets[0], high: budgets[1], step: 0.02, log: 10, format: short, changed: (value, settled) => change({ budget: value }, settled) });
  const size = slider({ label: "Parameters N", low: x[0], high: x[1], step: 0.02, log: 10, format: short, changed: (value, settled) => change({ size: value }, settled) });
  const hand = choice({ label: "Drag", options: [["freely", false], ["at equal C", true]], changed: (value) => change({ along: value }) });

  function draw(now) {
    const spent = scalingSpent(now, config), at = [lg(now.size), clamp(spent.loss, ...LOSSES)];
    model.show(at[0], lg(spent.tokens), fixed(spent.loss), `${amount(now.size)} parameters, ${amount(spent.tokens)} tokens, loss ${fixed(spent.loss)}`);
    mine.show(ends(lg(now.budget)));
    fittest.show([[lg(spent.best), lg(now.budget / 6 / spent.best)]]);
    field.note(`N = ${amount(now.size)}, D = ${amount(spent.tokens)}, C = 6 N D = ${amount(now.budget)} operations; best N = ${amount(spent.best)}.`);
    curve.show(along.map((n) => [n, scalingLoss(law, 10 ** n, now.budget / 6 / 10 ** n)]).filter(([, loss]) => loss <= LOSSES[1]));
    near.show(runs.filter(([, , flops]) => 1 / NEAR < flops / now.budget && flops / now.budget < NEAR).map(([n, , , loss]) => [lg(n), loss]));
    lowest.show([[lg(spent.best), spent.lowest]]);
    twin.show(...at);
    valley.note(`Loss ${fixed(spent.loss)}${spent.loss > LOSSES[1] ? " (above this axis)" : ""}, ${above(spent)} % above the lowest at this compute, ${fixed(spent.lowest)}.`);
    budget.show(now.budget);
    size.show(now.size);
    hand.show(now.along);
  }

  const goals = scalingGoals.map((goal) => (now) => goal(now, scalingSpent(now, config)));
  const { build, change, state, remove } = stage({ root, config, kernel, start: config.start, goals, draw, words: (now) => scalingWords(now, config) });
  build([field, valley], [budget, size, hand]);
  return remove;
}
