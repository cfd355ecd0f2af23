/* A digit that is drawn: the probabilities of a ViT and its attention to the patches, some of them hidden (lesson 11). */
import { stage, bars, button, buttons, choice, fixed } from "./kit.js";
import { bytesOf, drawingPad, patchBrush, patchMaps } from "./images.js";
import { needsModel, siteModel } from "./site.js";
import { standardise } from "../engine/image.js";
import { asDigit, resizeByArea } from "../engine/digits.js";
import { ViT, attentionRollout } from "../engine/vit.js";

const INKED = Math.fround(0.4);  // a patch has ink where a pixel is brighter than this

/* A drawing as it is, in 28 x 28 pixels, and prepared: centred, as tall and as bold as the digits of the training. */
export function digitImages(drawing) {
  const ink = Float32Array.from(drawing, (value) => value / 255);
  return { raw: resizeByArea(ink, 28), whole: asDigit(ink) };
}

/* Probabilities of an image with patches hidden (`now`), and what the class token attends to: the rollout (N,) and each
   head of each block, zero for hidden patches. */
export function patchReading(vit, pixels, hidden) {
  const visible = [...hidden.keys()].filter((i) => !hidden[i]), heads = vit.config.num_heads, size = visible.length + 1;
  const { probs, weights } = vit.classify(standardise(pixels), visible);
  const spread = (row) => { const all = new Float32Array(hidden.length); visible.forEach((i, k) => { all[i] = row[k + 1]; }); return all; };
  return {
    now: probs,
    rollout: spread(attentionRollout(weights, heads)),
    heads: weights.flatMap((block) => Array.from({ length: heads }, (_, h) => spread(block.subarray(h * size * size)))),
  };
}

/* The same, and the probabilities of the drawing as it is (`raw`) and prepared (`whole`). */
export function digitReading(vit, { raw, whole }, hidden) {
  return { raw: vit.classify(standardise(raw)).probs, whole: vit.classify(standardise(whole)).probs, ...patchReading(vit, whole, hidden) };
}

export const rankedDigits = (probs) => [...probs.keys()].sort((a, b) => probs[b] - probs[a]);

/* The indices of the patches that hold a part of a digit. */
function inkedPatches(pixels, grid) {
  const side = Math.sqrt(pixels.length), size = side / grid, found = new Set();
  pixels.forEach((value, i) => value > INKED && found.add(Math.floor(i / side / size) * grid + Math.floor((i % side) / size)));
  return [...found];
}

/* `its` is what was read last: { source, hidden, images } and what digitReading returns. */
export function digitGoals({ grid }) {
  const goal = (fits) => ({ source, hidden, its }) =>
    Boolean(its && its.source === source && its.hidden === hidden && source.some(Boolean) && !hidden.every(Boolean) && fits(its));
  return [
    goal(({ raw, whole }) => Math.max(...whole) >= 0.9 && rankedDigits(raw)[0] !== rankedDigits(whole)[0]),
    goal(({ now, hidden }) => {
      const [first, second] = rankedDigits(now).map((digit) => now[digit]);
      return !hidden.some(Boolean) && second >= 0.3 && first - second <= 0.2;
    }),
    goal(({ now, whole, hidden, images }) => {
      const ink = inkedPatches(images.whole, grid), gone = ink.filter((i) => hidden[i]).length, [digit] = rankedDigits(now);
      return 3 * ink.length <= 4 * gone && gone < ink.length && digit === rankedDigits(whole)[0] && now[digit] > 0.5;
    }),
  ];
}

export function patchWords(now, hidden) {
  const [first, second] = rankedDigits(now), percent = (digit) => `${fixed(100 * now[digit], 0)}%`;
  const other = now[second] >= 0.005 ? `, or ${second} (${percent(second)})` : "";
  const numbers = [...hidden.keys()].filter((i) => hidden[i]).map((i) => i + 1);
  let rest = numbers.length ? `${numbers.length} of ${hidden.length} patches are hidden: ${numbers.join(", ")}.` : "No patch is hidden.";
  if (numbers.length === hidden.length) rest = "All patches are hidden: this is what it says of nothing.";
  return `It says ${first} (${percent(first)})${other}. ${rest}`;
}

export function digitWords({ source, hidden, its }, { empty }) {
  if (!its) return "";
  const drawn = source.some(Boolean) ? `As drawn it would say ${rankedDigits(its.raw)[0]}.` : empty;
  return `${drawn} Prepared: ${patchWords(its.now, hidden)}`;
}

export function digit({ root, config, kernel }) {
  needsModel(kernel, config.models);
  const { grid, pad } = config, total = grid * grid, images = new WeakMap();
  const sources = Object.entries(config.sources).map(([name, text]) => [name, bytesOf(text)]);
  const start = { source: sources[0][1], hidden: Array(total).fill(false), map: "rollout", its: null };
  let vit = null, busy = false, held = false, removed = false;

  const imagesOf = (source) => images.get(source) ?? images.set(source, digitImages(source)).get(source);
  const touch = (changes, settled) => { held = !settled; change(changes, settled); };
  const paper = drawingPad({ label: "Draw a digit", size: pad.size, brush: pad.brush, changed: (source, settled) => touch({ source }, settled) });
  const patches = patchBrush({
    label: "Drag over patches to hide them", side: 28, grid,
    painted: {
      is: (i, j) => state().hidden[i * grid + j],
      set: (i, j, on) => touch(state().hidden[i * grid + j] === on ? {} : { hidden: state().hidden.with(i * grid + j, on) }, false),
      end: () => touch({}, true),
    },
  });
  const chances = bars({ label: "Probabilities (%)", names: [..."0123456789"], low: 0, high: 100, ticks: [0, 50, 100], colour: "var(--weight)", digits: 0, height: 280 });
  const maps = patchMaps({ label: "Attention of the class token", grid });
  const hide = (text, of) => button({ text, clicked: () => touch({ hidden: of(state().hidden) }, true) });
  const controls = [
    buttons("Examples", sources.map(([text, source]) => button({ text, clicked: () => touch({ source }, true) }))),
    buttons("Patches", [hide("Show all", (all) => all.map(() => false)), hide("Swap visible and hidden", (all) => all.map((off) => !off))]),
    choice({ label: "Attention", options: [["rollout", "rollout"], ["each head", "heads"]], changed: (map) => touch({ map }, true) }),
  ];

  async function read({ source, hidden }) {
    const its = { source, hidden, images: imagesOf(source) };
    if (!kernel) {
      vit ??= siteModel(config.models[0]).then(({ weights, config: sizes }) => new ViT(weights, sizes));
      return { ...its, ...digitReading(await vit, its.images, hidden) };
    }
    const off = [...hidden.keys()].filter((i) => hidden[i]).map((i) => i + 1);
    const answer = await kernel.ask("look", { raw: Array.from(its.images.raw), whole: Array.from(its.images.whole), hidden: off });
    const [raw, whole, now] = [0, 10, 20].map((at) => answer.subarray(at, at + 10)), rest = answer.subarray(30);
    const all = Array.from({ length: rest.length / total }, (_, i) => rest.subarray(i * total, (i + 1) * total));
    return { ...its, raw, whole, now, rollout: all[0], heads: all.slice(1) };
  }

  /* Read what is on the page; what has changed in the meantime is read next. */
  async function update() {
    if (busy || removed) return;
    busy = true;
    const its = await read(state()).catch((error) => { vit = null; chances.note(error.message); });
    busy = false;
    if (its && !removed) change({ its }, !held, false);
  }

  function draw({ source, hidden, map, its }) {
    paper.show(source);
    patches.show(imagesOf(source).whole, hidden);
    controls[2].show(map);
    if (its) {
      const digits = rankedDigits(its.now), grey = source.some(Boolean) ? `as drawn, not prepared: ${rankedDigits(its.raw)[0]} (${fixed(100 * Math.max(...its.raw), 0)}%)` : config.empty;
      chances.show(Array.from(its.now, (chance) => 100 * chance));
      chances.note(`It says ${digits[0]}; ${grey}`);
      maps.show(map === "heads" ? its.heads : [its.rollout], its.hidden);
      maps.note(map === "heads" ? "rows: blocks, columns: heads; bright: much" : "through all blocks; bright: much");
    }
    if (its?.source !== source || its.hidden !== hidden) update();
  }

  const { build, change, state, remove } = stage({ root, config, kernel, start, goals: digitGoals(config), draw, words: (now) => digitWords(now, config) });
  patches.note("as the network sees the digit: centred, as tall and bold as in training");
  build([paper, patches, chances, maps], controls);
  if (!state().its) chances.note("Loading the model …");
  return () => { removed = true; remove(); };
}
