/* A mask that is painted beside the attention weights that it leaves (lesson 05). */
import { stage, heatMap, button, buttons, fixed } from "./kit.js";

/* softmax of each row over what the mask lets through; a row that lets nothing through is zero. */
export function maskedWeights(scores, mask) {
  return scores.map((row, i) => {
    const most = Math.max(...row.filter((_, j) => mask[i][j]));
    const powers = row.map((score, j) => (mask[i][j] ? Math.exp(score - most) : 0)), sum = powers.reduce((a, b) => a + b);
    return powers.map((power) => (sum ? power / sum : 0));
  });
}

const seesAnything = (row) => row.some(Boolean);

export const maskGoals = [  // the last word is the padding
  ({ mask }) => mask.slice(0, -1).every((row, i) => row.every((on, j) => on === (j <= i))),
  ({ mask }) => !mask.some((row) => row.at(-1)) && mask.slice(0, -1).every(seesAnything),
  ({ mask }) => mask.filter((row) => !seesAnything(row)).length === 1,
];

export function maskWords({ mask }, { words, scores }) {
  const weights = maskedWeights(scores, mask), named = words.map((word) => `'${word}'`);
  const most = weights.flatMap((row, i) => {
    const high = Math.max(...row);
    return seesAnything(mask[i]) ? [`${named[i]} attends most to ${named[row.indexOf(high)]} (${fixed(high)})`] : [];
  });
  const blind = named.filter((_, i) => !seesAnything(mask[i]));
  const rest = blind.length
    ? `${blind.join(", ")} may attend to nothing: all weights there are zero, and so is the output, not NaN.`
    : "Each row sums to one over what is visible.";
  return `${most.join("; ")}${most.length ? ". " : ""}${rest}`;
}

export function mask({ root, config, kernel }) {
  const { words, scores, presets } = config;
  const squares = heatMap({
    label: "Mask: paint over it", rows: words, columns: words, text: (on) => (on ? "✓" : "·"),
    said: (i, j) => `'${words[i]}' ${state().mask[i][j] ? "may attend" : "may not attend"} to '${words[j]}'`,
    lit: (i, j) => weights.light(i, j),
    painted: {
      is: (i, j) => state().mask[i][j],
      set: (i, j, on) => state().mask[i][j] !== on && change({ mask: state().mask.with(i, state().mask[i].with(j, on)) }, false),
      end: () => change({}),
    },
  });
  const weights = heatMap({ label: "Attention weights", rows: words, columns: words, lit: (i, j) => squares.light(i, j) });
  squares.note("✓ may attend, · hidden; row = query, column = key");
  weights.note("each row: softmax over what is visible");
  const fill = buttons("Start from", Object.entries(presets).map(([text, grid]) => button({ text, clicked: () => change({ mask: grid }) })));

  function draw({ mask }) {
    squares.show(mask.map((row) => row.map(Number)));
    weights.show(maskedWeights(scores, mask), mask.map((row) => row.map((on) => !on)));
  }

  const { build, change, state, remove } = stage({
    root, config, kernel, start: config.start, goals: maskGoals, draw, words: (now) => maskWords(now, config),
  });
  build([squares, weights], [fill]);
  return remove;
}
