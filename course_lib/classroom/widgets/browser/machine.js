/* One LSTM cell whose gates are dragged by hand (lesson 04). */
import { stage, bars, choice, fixed } from "./kit.js";
import { plane } from "./plane.js";

const GATES = ["f", "i", "o"];

/* c_t = f c_(t-1) + i g and h = o tanh(c), with gates that are the same in each step, but for an input gate that may be
   open in the first one only. */
export function machineRun({ signal, f, i, o, open }, { signals }) {
  const candidate = signals[signal], write = candidate.map((_, t) => (open === "always" || t === 0 ? i : 0)), cell = [];
  candidate.forEach((g, t) => cell.push(f * (cell[t - 1] ?? 0) + write[t] * g));
  return { candidate, write, cell, hidden: cell.map((c) => o * Math.tanh(c)) };
}

/* Goals are given what is set and what follows from it; config.message and config.marks are names of signals. */
export const machineGoals = [
  ({ signal }, { cell }, { message }) => signal === message && cell[0] >= 0.3 && cell.every((c) => Math.abs(c - cell[0]) < 0.01 * cell[0]),
  ({ signal }, { cell }, { marks }) => signal === marks && Math.abs(cell.at(-1) - 5) < 0.05,
  ({ open }, { cell }) => open === "first" && Math.abs(cell[10] - cell[0] / 2) < 0.03 * cell[0],
];

/* A number with two digits, as Python's :.2g writes it. */
function gradientText(value) {
  const [digits, power] = value.toExponential(1).split("e").map(Number);
  return power >= -4 ? `${Number(value.toPrecision(2))}` : `${digits}e-${`${-power}`.padStart(2, "0")}`;
}

export function machineWords(state, config) {
  const { cell, hidden } = machineRun(state, config), steps = cell.length;
  return `f = ${fixed(state.f)}, i = ${fixed(state.i)}, o = ${fixed(state.o)}. After ${steps} steps the cell state is ${fixed(cell.at(-1))} and ` +
    `the hidden state ${fixed(hidden.at(-1))}; of the gradient at the last cell state, ${gradientText(state.f ** (steps - 1))} reaches the first.`;
}

export function machine({ root, config, kernel }) {
  const steps = config.signals[config.start.signal].length, x = [0, steps + 1], xTicks = [1, 10, 20, 30, 40, 50];
  const gates = bars({
    label: "Gates: drag them", names: ["forget f", "input i", "output o"], low: 0, high: 1, ticks: [0, 0.25, 0.5, 0.75, 1], step: 0.01, height: 228, colour: "var(--score)",
    changed: (i, value, settled) => change(value === null ? {} : { [GATES[i]]: value }, settled),
  });
  const memory = plane({ label: "Cell state c", x, y: [-2, 7], xTicks, yTicks: [-1, 0, 1, 3, 5], height: 272, xLabel: "step" });
  const stems = memory.line("var(--quiet)", { name: "candidate g", thin: true }), dots = memory.line("var(--score)", { name: "i · g", dots: true });
  const cells = memory.line("var(--weight)", { name: "state c" });
  const output = plane({ label: "Hidden state h = o · tanh c", x, y: [-1.05, 1.05], xTicks, yTicks: [-1, -0.5, 0, 0.5, 1], height: 272, xLabel: "step" });
  const hidden = output.line("var(--quiet)");
  const signal = choice({ label: "Candidate g", options: Object.keys(config.signals).map((name) => [name, name]), changed: (name) => change({ signal: name }) });
  const open = choice({ label: "i is open", options: config.open, changed: (value) => change({ open: value }) });

  function draw(now) {
    const run = machineRun(now, config), along = (values) => values.map((value, t) => [t + 1, value]);
    gates.show(GATES.map((gate) => now[gate]));
    stems.show(run.candidate.map((g, t) => [[t + 1, 0], [t + 1, g]]));
    dots.show(along(run.write.map((i, t) => i * run.candidate[t])));
    cells.show(along(run.cell));
    memory.note(`c = f · c + i · g in each step; it ends at ${fixed(run.cell.at(-1))}. Of the gradient f^${steps - 1} = ${gradientText(now.f ** (steps - 1))} comes back.`);
    hidden.show(along(run.hidden));
    output.note(`It ends at ${fixed(run.hidden.at(-1))}.`);
    signal.show(now.signal);
    open.show(now.open);
  }

  const goals = machineGoals.map((goal) => (now) => goal(now, machineRun(now, config), config));
  const { build, change, remove } = stage({ root, config, kernel, start: config.start, goals, draw, words: (now) => machineWords(now, config) });
  build([gates, memory, output], [signal, open]);
  return remove;
}
