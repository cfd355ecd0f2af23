/* What one head of attention costs: four kinds of it, over the number of tokens, which is dragged (lesson 17). */
import { stage, figure, node, slider, choice, clamp } from "./kit.js";
import { plane, point } from "./plane.js";

const COST_COLOURS = { softmax: "var(--weight)", "softmax in blocks": "var(--score)", local: "var(--good)", linear: "#d55e00" };
const COST_NAMES = ["multiplications", "scores held", "numbers kept"], COST_AXIS = [1, 11];  // powers of ten
const written = (count) => Math.round(count).toLocaleString("en");

/* Of one causal head with keys and values of `size`: multiplications for the whole text, scores held, numbers kept. */
export function attentionCosts({ kind, length, size, window }, { block }) {
  const pairs = (length * (length + 1)) / 2;
  if (kind === "linear") return [length * 2 * size * (size + 1), 0, size * (size + 1)];
  if (kind === "local") {
    const near = Math.min(window + 1, length);
    return [2 * size * ((near * (near + 1)) / 2 + (length - near) * near), length * near, 2 * size * near];
  }
  return [2 * size * pairs, length * (kind === "softmax" ? length : Math.min(block, length)), 2 * size * length];
}

const ofSoftmax = (state, config) => attentionCosts({ ...state, kind: "softmax" }, config);
const timesSoftmax = (state, config, which) => `${Number((attentionCosts(state, config)[which] / ofSoftmax(state, config)[which]).toPrecision(3))}`;

/* Goals are given the state, its costs and those of softmax attention. */
export const costGoals = [
  ({ kind }, [work], [most]) => kind === "linear" && work > most,
  ({ kind }, [work], [most]) => kind === "local" && 100 * work < most,
  ({ kind }, [, , kept], [, , most]) => kind === "linear" && 100 * kept < most,
];

export function costWords(state, config) {
  return `One head, ${written(state.length)} tokens: ${state.kind} attention needs ${timesSoftmax(state, config, 0)} times the multiplications of softmax attention.`;
}

export function costs({ root, config, kernel }) {
  const { kinds, lengths, sizes, windows } = config, [shortest, longest] = lengths;
  const table = node("table", { class: "play-score play-costs" }), numbers = figure("One head, by kind of attention", table);
  const field = plane({
    label: "Cost over length: drag the point", x: [shortest - 0.5, longest + 0.7], y: COST_AXIS, xTicks: [4, 6, 8, 10, 12, 14].map((n) => [n, written(2 ** n)]),
    yTicks: [2, 4, 6, 8, 10].map((n) => [n, `10${["⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹", "¹⁰"][n]}`]), xLabel: "tokens", height: 240, role: "group",
  });
  const lines = kinds.map((kind) => field.line(COST_COLOURS[kind], { dashed: kind === "softmax in blocks" }));
  const along = [...Array(4 * (longest - shortest) + 1).keys()].map((k) => shortest + k / 4);
  const to = (power, settled) => change({ length: 2 ** clamp(Math.round(power), shortest, longest) }, settled);
  const here = point(field, {
    label: "Tokens", colour: "var(--ink)", dragged: (power) => to(power, false), end: () => change({}),
    keys: (right, up) => to(Math.log2(state().length) + right + up, true),
  });
  const kind = choice({ label: "Attention", options: kinds.map((name) => [name, name]), changed: (name) => change({ kind: name }) });
  const shown = choice({ label: "Plot", options: COST_NAMES.map((name, which) => [name, which]), changed: (which) => change({ which }) });
  const whole = (label, range, name) => slider({ label, ...range, whole: true, format: (n) => `${Math.round(n)}`, changed: (n, settled) => change({ [name]: Math.round(n) }, settled) });
  const length = whole("Tokens", { low: shortest, high: longest, step: 1, log: 2 }, "length"), size = whole("Size of a head", sizes, "size");
  const near = whole("Window", windows, "window");

  function draw(now) {
    const all = kinds.map((name) => attentionCosts({ ...now, kind: name }, config)), its = all[kinds.indexOf(now.kind)][now.which];
    const heads = ["attention", ...COST_NAMES].map((name) => node("th", { scope: "col" }, name));
    const bold = (name, text) => (name === now.kind ? node("b", {}, text) : text);
    const named = (name) => node("th", { scope: "row" }, node("i", { class: "play-stroke", style: `--line-colour: ${COST_COLOURS[name]}` }), bold(name, name));
    table.replaceChildren(node("thead", {}, node("tr", {}, ...heads)), node("tbody", {}, ...kinds.map((name, i) =>
      node("tr", {}, named(name), ...all[i].map((count) => node("td", {}, bold(name, written(count))))))));
    numbers.note(now.which === 1 && !its ? "Linear attention holds no scores." : `${now.kind}: ${timesSoftmax(now, config, now.which)} times the ${COST_NAMES[now.which]} of softmax attention.`);
    lines.forEach((line, i) => line.show(along
      .map((n) => [n, Math.log10(attentionCosts({ ...now, kind: kinds[i], length: 2 ** n }, config)[now.which])]).filter(([, cost]) => cost >= COST_AXIS[0])));
    here.show(Math.log2(now.length), clamp(Math.log10(its), ...COST_AXIS), now.length, `${written(now.length)} tokens, ${written(its)} ${COST_NAMES[now.which]}`);
    field.note(`${COST_NAMES[now.which]} for ${written(now.length)} tokens: ${written(its)}`);
    kind.show(now.kind);
    shown.show(now.which);
    length.show(now.length);
    size.show(now.size);
    near.show(now.window);
  }

  const goals = costGoals.map((goal) => (now) => goal(now, attentionCosts(now, config), ofSoftmax(now, config)));
  const start = { ...config.start, which: 0 };
  const { build, change, state, remove } = stage({ root, config, kernel, start, goals, draw, words: (now) => costWords(now, config) });
  build([numbers, field], [kind, length, size, near, shown]);
  return remove;
}
