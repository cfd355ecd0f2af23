/* An image whose patches are hidden with a brush, and what a masked autoencoder reconstructs of it (lesson 13). */
import { stage, button, buttons, choice, fixed } from "./kit.js";
import { bytesOf, drawingPad, patchBrush, pixelImage } from "./images.js";
import { needsModel, siteModel } from "./site.js";
import { argmax } from "../engine/tensor.js";
import { restore, standardise } from "../engine/image.js";
import { asDigit, resizeSmoothly } from "../engine/digits.js";
import { MAE } from "../engine/mae.js";
import { ViT } from "../engine/vit.js";

/* A drawing as the digits of the training are: 28 x 28 pixels from 0 to 1, a little smaller than those of lesson 11. */
export function maskingDigit(drawing) {
  const small = resizeSmoothly(asDigit(Float32Array.from(drawing, (ink) => ink / 255)), 24), digit = new Float32Array(28 * 28);
  for (let row = 0; row < 24; row++) digit.set(small.subarray(24 * row, 24 * (row + 1)), 28 * (row + 2) + 2);
  return digit;
}

/* Mean squared error of the hidden patches, as a fraction of the error of plain grey: the mean of the visible pixels. */
export function maskingError(pixels, painted, hidden) {
  const side = Math.sqrt(pixels.length), grid = Math.sqrt(hidden.length), size = side / grid;
  const hole = (i) => hidden[Math.floor(i / side / size) * grid + Math.floor((i % side) / size)];
  const all = [...pixels.keys()], holes = all.filter(hole), rest = all.filter((i) => !hole(i));
  const grey = rest.reduce((sum, i) => sum + pixels[i], 0) / rest.length;
  const mean = (guess) => holes.reduce((sum, i) => sum + (guess(i) - pixels[i]) ** 2, 0) / holes.length;
  return mean((i) => painted[i]) / Math.max(mean(() => grey), 1e-3);
}

/* The reconstruction, and the probabilities of the digits in it and in the image itself. */
export function maskingReading({ mae, reader }, pixels, hidden) {
  const visible = [...hidden.keys()].filter((i) => !hidden[i]), image = standardise(pixels);
  const painted = restore(mae.reconstruct(image, visible)).map((value) => Math.min(1, Math.max(0, value)));
  return { painted, probs: reader.classify(standardise(painted)).probs, first: reader.classify(image).probs };
}

const count = (hidden) => hidden.filter(Boolean).length;

/* `its` is { source, hidden, pixels, painted, error, probs, first }, what was read last: the probabilities of the digits
   in the reconstruction and in the image itself; `painted` is null where all patches are hidden. */
export function maskingGoals({ few, well }) {
  const goal = (fits) => ({ source, hidden, its }) =>
    its?.source === source && its.hidden === hidden && its.painted && count(hidden) > 0 && its.pixels.some((value) => value > 0) && fits(its);
  return [
    goal(({ hidden, probs, first }) => hidden.length - count(hidden) <= few && argmax(probs) === argmax(first) && Math.max(...probs) > 0.5),
    goal(({ probs, first }) => argmax(probs) !== argmax(first) && Math.max(...probs) >= 0.98),
    goal(({ hidden, error }) => count(hidden) >= 10 && error <= well),
  ].map((reached) => (state) => Boolean(reached(state)));
}

export function maskingWords({ hidden, its }) {
  const total = hidden.length, some = count(hidden);
  if (some === total) return "All patches are hidden: leave the encoder one at least.";
  if (!its?.painted) return `${total - some} of ${total} patches are visible.`;
  const digit = argmax(its.probs), reads = `as ${digit} (${fixed(100 * its.probs[digit], 0)}%).`;
  if (!some) return `No patch is hidden, so there is nothing to reconstruct. Lesson 11's ViT classifies the image ${reads}`;
  return `${total - some} of ${total} patches are visible. Error (MSE) of the hidden patches: ${fixed(100 * its.error, 0)}% of plain grey's. ` +
    `Lesson 11's ViT classifies the reconstruction ${reads}`;
}

export function masking({ root, config, kernel }) {
  needsModel(kernel, config.models);
  const { side, grid, pad } = config, total = grid * grid, images = new WeakMap();
  const sources = Object.entries(config.sources).map(([name, text]) => [name, bytesOf(text)]);
  const start = { source: sources[0][1], hidden: Array.from({ length: total }, (_, i) => config.hidden.includes(i + 1)), its: null };
  let models = null, busy = false, held = false, removed = false;

  const imageOf = (source) => {
    if (!images.has(source)) images.set(source, pad ? maskingDigit(source) : Float32Array.from(source, (value) => value / 255));
    return images.get(source);
  };
  const touch = (changes, settled) => { held = !settled; change(changes, settled); };
  const patches = patchBrush({
    label: "Drag over patches to hide them", side, grid,
    painted: {
      is: (i, j) => state().hidden[i * grid + j],
      set: (i, j, on) => touch(state().hidden[i * grid + j] === on ? {} : { hidden: state().hidden.with(i * grid + j, on) }, false),
      end: () => touch({}, true),
    },
  });
  const painted = pixelImage({ label: "Reconstruction", side });
  const given = pad
    ? drawingPad({ label: "Draw a digit", size: pad.size, brush: pad.brush, changed: (source, settled) => touch({ source }, settled) })
    : pixelImage({ label: "Original", side });
  const chooser = pad
    ? buttons("Examples", sources.map(([text, source]) => button({ text, clicked: () => touch({ source }, true) })))
    : choice({ label: "Image", options: sources, changed: (source) => touch({ source }, true) });
  const hide = (text, of) => button({ text, clicked: () => touch({ hidden: of(state().hidden) }, true) });
  const brushes = buttons("Patches", [
    hide("Show all", (hidden) => hidden.map(() => false)),
    hide("Swap visible and hidden", (hidden) => hidden.map((off) => !off)),
    hide("Hide 75 % at random", (hidden) => {
      const order = hidden.map(Math.random), last = order.toSorted((a, b) => a - b)[Math.round(0.75 * total) - 1];
      return order.map((noise) => noise <= last);
    }),
  ]);

  async function siteModels() {
    const [mae, reader] = await Promise.all(config.models.map((name) => siteModel(name)));
    return { mae: new MAE(mae.weights, mae.config), reader: new ViT(reader.weights, reader.config) };
  }

  async function read({ source, hidden }) {
    const pixels = imageOf(source), its = { source, hidden, pixels, painted: null };
    if (count(hidden) === total) return its;
    if (kernel) {
      const off = [...hidden.keys()].filter((i) => hidden[i]).map((i) => i + 1);
      const answer = await kernel.ask("reconstruct", { pixels: Array.from(pixels), hidden: off }), end = pixels.length;
      Object.assign(its, { painted: answer.subarray(0, end), probs: answer.subarray(end, end + 10), first: answer.subarray(end + 10) });
    } else Object.assign(its, maskingReading(await (models ??= siteModels()), pixels, hidden));
    return { ...its, error: count(hidden) ? maskingError(pixels, its.painted, hidden) : null };
  }

  /* Read what is on the page; what has changed in the meantime is read next. */
  async function update() {
    if (busy || removed) return;
    busy = true;
    const its = await read(state()).catch((error) => { models = null; painted.note(error.message); });
    busy = false;
    if (its && !removed) change({ its }, !held, false);
  }

  function draw({ source, hidden, its }) {
    const pixels = imageOf(source), some = count(hidden);
    patches.show(pixels, hidden);
    patches.note(`${total - some} of ${total} patches are visible.`);
    given.show(pad ? source : pixels);
    if (!pad) chooser.show(source);
    if (its?.source !== source || its.hidden !== hidden) { update(); return; }
    painted.show(its.painted ?? pixels.map(() => 0.5));
    if (!its.painted) { painted.note("All patches are hidden: leave the encoder one at least."); return; }
    const error = some ? `error: ${fixed(100 * its.error, 0)}% of plain grey's; ` : "";
    painted.note(`${error}the ViT classifies it as ${argmax(its.probs)} (${fixed(100 * Math.max(...its.probs), 0)}%)`);
  }

  const { build, change, state, remove } = stage({ root, config, kernel, start, goals: maskingGoals(config), draw, words: maskingWords });
  build(pad ? [given, patches, painted] : [patches, painted, given], [chooser, brushes]);
  if (!state().its) painted.note("Loading the model …");
  return () => { removed = true; remove(); };
}
