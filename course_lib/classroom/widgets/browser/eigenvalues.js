/* A pair of eigenvalues that is dragged in the complex plane, and what it does to a state and a gradient (lesson 03). */
import { stage, slider, choice, clamp, fixed, node } from "./kit.js";
import { plane, point } from "./plane.js";

const LARGEST = 1.6, HIGHEST = 6;  // of a state that is drawn; powers of ten of a length
const degrees = (angle) => (angle * Math.PI) / 180;

/* r exp(± i angle) are the eigenvalues of this rotation that also stretches. */
function turned([a, b], { radius, angle }, back = 1) {
  const c = radius * Math.cos(degrees(angle)), s = back * radius * Math.sin(degrees(angle));
  return [c * a - s * b, s * a + c * b];
}

/* The states A_t = θ A_(t-1), or their tanh, and the lengths of a gradient that is sent back from the last one. */
export function eigenvalueFate(state, { steps, first }) {
  const squashed = state.between === "tanh", states = [first], lengths = [1];
  for (let t = 0; t < steps; t++) {
    const next = turned(states.at(-1), state);
    states.push(squashed ? next.map(Math.tanh) : next);
  }
  let gradient = [1, 0];
  for (let t = steps; t > 0; t--) {
    gradient = turned(gradient.map((value, i) => value * (squashed ? 1 - states[t][i] ** 2 : 1)), state, -1);
    lengths.push(Math.hypot(...gradient));
  }
  return { states, gradient: lengths };
}

/* Goals are given what is set and what follows from it. */
export const eigenvalueGoals = [
  ({ between }, { gradient }) => between === "nothing" && gradient.at(-1) > 1e5,
  ({ between }, { states }) => between === "nothing" && firstReturn(states) === 8,
  ({ between, radius }, { states, gradient }) => between === "tanh" && radius >= 1.2 && Math.hypot(...states.at(-1)) > 0.1 && gradient.at(-1) < 0.01,
];

/* After how many steps a state is for the first time where it began, to within 5 % of its length; -1 if it never is. */
function firstReturn(states) {
  const [a, b] = states[0];
  return states.findIndex(([x, y], t) => t && Math.hypot(x - a, y - b) < 0.05 * Math.hypot(a, b));
}

/* A number with two digits, as Python's :.2g writes it. */
function twoDigits(value) {
  const [digits, power] = value.toExponential(1).split("e").map(Number);
  if (power >= -4 && power < 2) return `${Number(value.toPrecision(2))}`;
  return `${digits}e${power < 0 ? "-" : "+"}${`${Math.abs(power)}`.padStart(2, "0")}`;
}

export function eigenvalueWords(state, config) {
  const { states, gradient } = eigenvalueFate(state, config), size = Math.hypot(...states.at(-1)) / Math.hypot(...states[0]);
  return `Eigenvalues of absolute value ${fixed(state.radius)} and angle ±${fixed(state.angle, 0)}°${state.between === "tanh" ? ", and a tanh in each step" : ""}. ` +
    `After ${config.steps} steps the state is ${twoDigits(size)} times as long as at the start; ` +
    `a gradient that was sent back ${config.steps} steps, ${twoDigits(gradient.at(-1))} times.`;
}

/* A trajectory up to where it leaves the plane. */
function within(states) {
  const out = states.findIndex((state) => Math.max(...state.map(Math.abs)) > LARGEST);
  if (out < 0) return states;
  const from = states[out - 1], to = states[out];
  const part = Math.min(...[0, 1].map((k) => (Math.abs(to[k]) > LARGEST ? (Math.sign(to[k]) * LARGEST - from[k]) / (to[k] - from[k]) : 1)));
  return [...states.slice(0, out), from.map((value, k) => value + part * (to[k] - value))];
}

export function eigenvalues({ root, config, kernel }) {
  const square = { height: 312, xTicks: [-1, 0, 1], yTicks: [-1, 0, 1] };
  const complex = plane({ label: "Eigenvalues: drag one", x: [-1.5, 1.5], y: [-1.5, 1.5], ...square, xLabel: "real part", yLabel: "imaginary part", role: "group" });
  complex.area.append(node("circle", { class: "play-line", stroke: "var(--quiet)", cx: complex.x(0), cy: complex.y(0), r: complex.x(1) - complex.x(0) }));
  const state2 = plane({ label: "The state over 40 steps", x: [-LARGEST, LARGEST], y: [-LARGEST, LARGEST], ...square, xLabel: "first component", yLabel: "second component" });
  const field = state2.line("var(--line)", { thin: true }), way = state2.line("var(--weight)"), places = state2.line("var(--weight)", { dots: true });
  const begin = state2.line("var(--ink)", { dots: true, name: "start" });
  const powers = [-6, -3, 0, 3, 6].map((power) => [power, ["10⁻⁶", "10⁻³", "1", "10³", "10⁶"][power / 3 + 2]]);
  const lengths = plane({ label: "Length over the steps", x: [0, config.steps], y: [-HIGHEST, HIGHEST], xTicks: [0, 10, 20, 30, 40], yTicks: powers, height: 312, xLabel: "steps", yLabel: "times the first length" });
  const forward = lengths.line("var(--weight)", { name: "state" }), back = lengths.line("var(--score)", { name: "gradient", dashed: true });

  const set = (changes, settled) => change({ ...changes, ...("radius" in changes && { radius: clamp(Number(changes.radius.toFixed(2)), 0, config.most) }) }, settled);
  const hand = {
    colour: "#d55e00", end: () => change({}),
    dragged: (a, b) => set({ radius: Math.hypot(a, b), angle: Math.round(Math.abs(Math.atan2(b, a)) * 180 / Math.PI) }, false),
  };
  const lower = point(complex, hand);
  const upper = point(complex, {
    ...hand, label: "Eigenvalue; up and down: absolute value, left and right: angle",
    keys: (right, up) => set({ radius: state().radius + up / 100, angle: clamp(state().angle - right, 0, 180) }, true),
  });
  const size = slider({ label: "|λ|", low: 0, high: config.most, step: 0.01, changed: (radius, settled) => set({ radius }, settled) });
  const angle = slider({ label: "Angle (°)", low: 0, high: 180, step: 1, whole: true, format: (value) => fixed(value, 0), changed: (value, settled) => set({ angle: value }, settled) });
  const between = choice({ label: "Each step", options: config.between, changed: (value) => set({ between: value }, true) });

  function draw(now) {
    const { states, gradient } = eigenvalueFate(now, config), a = now.radius * Math.cos(degrees(now.angle)), b = now.radius * Math.sin(degrees(now.angle));
    upper.show(a, b, now.radius, `absolute value ${fixed(now.radius)}, angle ${now.angle} degrees`);
    lower.show(a, -b);
    complex.note(`λ = ${fixed(a)} ± ${fixed(b)} i, |λ| = ${fixed(now.radius)}; the circle is |λ| = 1.`);
    const grid = [-1.4, -1.05, -0.7, -0.35, 0, 0.35, 0.7, 1.05, 1.4].flatMap((x, _, all) => all.map((y) => [x, y]));
    field.show(grid.map((at) => {
      const to = turned(at, now).map((value) => (now.between === "tanh" ? Math.tanh(value) : value));
      return [at, at.map((value, k) => value + (to[k] - value) / 4)];
    }));
    const shown = within(states), power = (length) => clamp(Math.log10(Math.max(length, 1e-30)), -HIGHEST, HIGHEST);
    way.show(shown);
    places.show(shown.length < states.length ? shown.slice(0, -1) : shown);
    begin.show([states[0]]);
    state2.note(shown.length < states.length ? `It leaves the plane at step ${shown.length - 1}.` : "Thin lines: where one step moves a state, a quarter of the way.");
    forward.show(states.map((one, t) => [t, power(Math.hypot(...one) / Math.hypot(...states[0]))]));
    back.show(gradient.map((length, t) => [t, power(length)]));
    lengths.note(`After ${config.steps} steps: state × ${twoDigits(Math.hypot(...states.at(-1)) / Math.hypot(...states[0]))}, gradient × ${twoDigits(gradient.at(-1))}.`);
    size.show(now.radius);
    angle.show(now.angle);
    between.show(now.between);
  }

  const goals = eigenvalueGoals.map((goal) => (now) => goal(now, eigenvalueFate(now, config)));
  const { build, change, state, remove } = stage({ root, config, kernel, start: config.start, goals, draw, words: (now) => eigenvalueWords(now, config) });
  build([complex, state2, lengths], [size, angle, between]);
  return remove;
}
