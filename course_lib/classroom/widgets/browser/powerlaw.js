/* A power law with a floor that is bent by hand through measured losses (lesson 09). */
import { stage, bars, slider, clamp, fixed } from "./kit.js";
import { plane, point } from "./plane.js";

const FAR = 8, AXIS = [0, 2.4];  // a power of ten: the size for which the law promises a loss; and the axis of losses

/* c + a N^-b with this exponent b and floor c, and the factor a that fits best in logarithms: its values `at(n)`, by what
   fraction it misses each run, the largest of these, and the loss that it promises. */
export function powerLaw({ exponent, floor }, { sizes, losses }) {
  const logs = losses.map((loss, i) => Math.log(loss - floor) + exponent * Math.log(sizes[i]));
  const a = Math.exp(logs.reduce((sum, log) => sum + log) / logs.length), at = (n) => floor + a * n ** -exponent;
  const misses = losses.map((loss, i) => at(sizes[i]) / loss - 1);
  return { at, misses, worst: Math.max(...misses.map(Math.abs)), promised: at(10 ** FAR) };
}

/* Goals are given the state and its law. */
export const powerLawGoals = [
  ({ floor }, { worst }) => floor === 0 && worst < 0.05,
  (_, { worst, promised }) => worst < 0.04 && promised < 0.8,
  (_, { worst, promised }) => worst < 0.04 && promised > 1.1,
];

export function powerLawWords(state, config) {
  const { worst, promised } = powerLaw(state, config);
  return `With exponent ${fixed(state.exponent)} and floor ${fixed(state.floor)} the curve misses a run by ${fixed(100 * worst, 0)} % at most. ` +
    `For 100 million parameters it promises ${fixed(promised)} nats.`;
}

export function powerlaw({ root, config, kernel }) {
  const { sizes, losses, exponents, floors } = config, steps = ({ low, high, step }) => Array.from({ length: Math.round((high - low) / step) + 1 }, (_, k) => Number((low + k * step).toFixed(2)));
  const along = [...Array(91).keys()].map((k) => 3.5 + k / 20);
  const field = plane({ label: "Bend the curve: drag its end, and its floor", x: [3.5, FAR], y: AXIS, xTicks: [[4, "10⁴"], [5, "10⁵"], [6, "10⁶"], [7, "10⁷"], [8, "10⁸"]], yTicks: [0, 0.5, 1, 1.5, 2], xLabel: "parameters N", yLabel: "nats per character", height: 258, role: "group" });
  const misses = bars({ label: "Error of the curve at each run (%)", names: sizes.map((size) => size.toLocaleString("en")), low: -20, high: 20, ticks: [-20, -10, 0, 10, 20], colour: "var(--weight)", digits: 1, height: 222 });
  const curve = field.line("var(--weight)", { name: "the law" }), ground = field.line("var(--good)", { name: "floor c", dashed: true });
  field.line("var(--ink)", { dots: true, name: "runs" }).show(sizes.map((size, i) => [Math.log10(size), losses[i]]));

  /* The value among the steps of a control that `miss` makes smallest. */
  const nearest = (range, miss) => { const all = steps(range), far = all.map(miss); return all[far.indexOf(Math.min(...far))]; };
  const to = (name, { low, high }, value, settled) => change({ [name]: clamp(Number(value.toFixed(2)), low, high) }, settled);
  const end = () => change({});
  const bottom = point(field, {
    label: "Floor c", colour: "#00734f", end, keys: (right, up) => to("floor", floors, state().floor + (up + right) * floors.step, true),
    dragged: (_, y) => change({ floor: nearest(floors, (floor) => Math.abs(floor - y)) }, false),
  });
  const promise = point(field, {
    label: "Loss promised for 100 million parameters; down: a larger exponent b", colour: "#d55e00", end,
    keys: (right, up) => to("exponent", exponents, state().exponent + (right - up) * exponents.step, true),
    dragged: (_, y) => change({ exponent: nearest(exponents, (exponent) => Math.abs(powerLaw({ ...state(), exponent }, config).promised - y)) }, false),
  });
  const exponent = slider({ label: "Exponent b", ...exponents, whole: true, changed: (value, settled) => to("exponent", exponents, value, settled) });
  const floor = slider({ label: "Floor c", ...floors, whole: true, changed: (value, settled) => to("floor", floors, value, settled) });

  function draw(now) {
    const law = powerLaw(now, config), top = clamp(law.promised, ...AXIS);
    curve.show(along.map((n) => [n, law.at(10 ** n)]).filter(([, loss]) => loss <= AXIS[1]));
    ground.show([[3.5, now.floor], [FAR, now.floor]]);
    bottom.show(4.6, now.floor, now.floor, `floor ${fixed(now.floor)}`);
    promise.show(FAR - 0.06, top, fixed(law.promised), `${fixed(law.promised)} nats, exponent ${fixed(now.exponent)}`);
    field.note(`b = ${fixed(now.exponent)}, c = ${fixed(now.floor)}: ${fixed(law.promised)} nats promised for 100 million parameters.`);
    misses.show(law.misses.map((miss) => 100 * miss));
    misses.note(`largest error: ${fixed(100 * law.worst, 1)} %; above 0, the curve promises too much loss`);
    exponent.show(now.exponent);
    floor.show(now.floor);
  }

  const goals = powerLawGoals.map((goal) => (now) => goal(now, powerLaw(now, config)));
  const { build, change, state, remove } = stage({ root, config, kernel, start: config.start, goals, draw, words: (now) => powerLawWords(now, config) });
  build([field, misses], [exponent, floor]);
  return remove;
}
