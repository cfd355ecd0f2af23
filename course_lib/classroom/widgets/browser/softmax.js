/* Softmax over five scores that are dragged, with a width d_k and a temperature T (lesson 05). */
import { stage, bars, heatMap, slider, toggle, fixed } from "./kit.js";

const EQUAL = 0.005;  // weights that differ by less are called equal
const SATURATED = 0.02;  // norm of the Jacobian: below, hardly any gradient comes through

/* What a score is divided by on its way into the softmax. */
function softmaxDivisor({ d_k, scaled, temperature }) {
  return (scaled ? Math.sqrt(d_k) : 1) * temperature;
}

/* The inputs of the softmax: a score at d_k = 1 grows with √d_k, and is divided. */
export function softmaxInputs(state) {
  return state.scores.map((score) => (score * Math.sqrt(state.d_k)) / softmaxDivisor(state));
}

/* exp(z_i) / sum_j exp(z_j). */
export function softmaxWeights(inputs) {
  const most = Math.max(...inputs), powers = inputs.map((z) => Math.exp(z - most));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
}

/* dp_i / dz_j = p_i (1[i = j] - p_j), with respect to the inputs of the softmax. */
export function softmaxJacobian(weights) {
  return weights.map((p, i) => weights.map((q, j) => p * ((i === j) - q)));
}

/* The norm of the Jacobian. */
export function softmaxGradient(weights) {
  return Math.hypot(...softmaxJacobian(weights).flat());
}

export const softmaxGoals = [
  (state) => Math.abs(state.temperature - 1) < 0.01 && Math.max(...softmaxWeights(softmaxInputs(state))) > 0.99,
  (state) => state.d_k === 64 && !state.scaled && softmaxGradient(softmaxWeights(softmaxInputs(state))) > 0.2,
  (state) => { const p = softmaxWeights(softmaxInputs(state)); return Math.max(...p) - Math.min(...p) < EQUAL; },
];

function largestWeights(weights) {
  const most = Math.max(...weights);
  const first = weights.flatMap((p, i) => (most - p < EQUAL ? [i + 1] : [])), last = first.pop();
  if (first.length + 1 === weights.length) return "they are equal";
  return first.length ? `keys ${first.join(", ")} and ${last} have the largest` : `key ${last} has the largest`;
}

export function softmaxWords(state) {
  const weights = softmaxWeights(softmaxInputs(state)), size = softmaxGradient(weights), divisor = softmaxDivisor(state);
  const general = (value) => `${Number(value.toPrecision(6))}`;
  const back = state.scaled ? ", and the division takes that back" : "";
  const chain = Math.abs(divisor - 1) < 1e-9 ? ""
    : `With respect to the scores q·k it is divided by ${general(divisor)}: ${fixed(size / divisor, 3)}. `;
  return `The weights of keys 1 to ${weights.length} are ${weights.map((p) => fixed(p)).join(", ")}; ${largestWeights(weights)}. ` +
    `d_k = ${state.d_k} multiplies the standard deviation of the scores by √d_k = ${general(Math.sqrt(state.d_k))}${back}. ` +
    `The gradient with respect to the softmax's inputs (norm of the Jacobian) is ${fixed(size, 3)}. ${chain}` +
    (size < SATURATED ? "The softmax is saturated: hardly any gradient comes through." : "A change of the scores moves the weights.");
}

export function softmax({ root, config, kernel }) {
  const names = config.start.scores.map((_, i) => `key ${i + 1}`), digits = names.map((_, i) => `${i + 1}`);
  const scores = bars({
    label: "Scores: drag them", names, low: -3, high: 3, ticks: [-3, -2, -1, 0, 1, 2, 3], colour: "var(--score)", digits: 1,
    changed: (i, value, settled) => change(value === null ? {} : { scores: state().scores.with(i, value) }, settled),
    said: (i) => `; softmax input ${fixed(softmaxInputs(state())[i])}, weight ${fixed(softmaxWeights(softmaxInputs(state()))[i])}`,
  });
  const weights = bars({ label: "Attention weights", names, low: 0, high: 1, ticks: [0, 0.25, 0.5, 0.75, 1], colour: "var(--weight)" });
  const slopes = heatMap({ label: "Jacobian of the softmax", rows: digits, columns: digits, high: 0.25 });
  const width = slider({ label: "Width d_k", low: 0, high: 10, step: 1, log: 2, whole: true, format: (d) => `${Math.round(d)}`, changed: (d, settled) => change({ d_k: Math.round(d) }, settled) });
  const scaled = toggle({ label: "Divide by √d_k", words: ["no", "yes, as in the paper"], changed: (on) => change({ scaled: on }) });
  const heat = slider({ label: "Temperature T", low: -3, high: 5, step: 0.125, log: 2, changed: (temperature, settled) => change({ temperature }, settled) });

  function draw(now) {
    const inputs = softmaxInputs(now), p = softmaxWeights(inputs), size = softmaxGradient(p);
    const factor = Math.sqrt(now.d_k) / softmaxDivisor(now), same = Math.abs(factor - 1) < 1e-9;
    scores.show(now.scores, same ? [] : inputs);
    scores.note(same ? "softmax input = score" : `dashed: softmax input = ${fixed(factor)} × score, largest ${fixed(Math.max(...inputs), 1)}`);
    weights.show(p);
    slopes.show(softmaxJacobian(p));
    slopes.note(`∂ weight (row) / ∂ softmax input (column); norm ${fixed(size, 3)}${size < SATURATED ? ": saturated" : ""}`);
    width.show(now.d_k);
    scaled.show(now.scaled);
    heat.show(now.temperature);
  }

  const { build, change, state, remove } = stage({ root, config, kernel, start: config.start, goals: softmaxGoals, draw, words: softmaxWords });
  build([scores, weights, slopes], [width, scaled, heat]);
  return remove;
}
