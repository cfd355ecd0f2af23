/* What segmentation networks say of each pixel of an image: reading, words and maps for lesson 14. */
import { node, put, figure, fixed } from "./kit.js";
import { canvasOf, cividis, paintColours } from "./images.js";
import { siteModel } from "./site.js";
import { argmax, softmaxRows } from "../engine/tensor.js";
import { standardise } from "../engine/image.js";
import { UNet } from "../engine/unet.js";

const CLASSES = 11;  // background, and the digits 0 to 9
const SMALLEST = 12;  // pixels of an object
const MOST = 2.4;  // nats: the entropy of eleven equally likely classes

/* The result of a generator, which pauses between its steps so often that the page can follow a hand. */
async function inSteps(steps) {
  for (let since = performance.now(), step; ; ) {
    if ((step = steps.next()).done) return step.value;
    if (performance.now() - since < 12) continue;
    await new Promise((done) => { setTimeout(done); });
    since = performance.now();
  }
}

/* A function from side x side pixels, from 0 to 1, to the logits (N, 11) of each U-Net: by the kernel, or with
   checkpoints of the site. */
export function segmenters({ kernel, models, side }) {
  let loaded = null;
  const load = () => Promise.all(models.map((name) => siteModel(name))).then((all) => all.map(({ weights, config }) => new UNet(weights, config)));
  return async (pixels) => {
    if (kernel) {
      const logits = await kernel.ask("logits", { pixels: Array.from(pixels) }), size = logits.length / models.length;
      return models.map((_, k) => logits.subarray(k * size, (k + 1) * size));
    }
    loaded ??= load().catch((error) => { loaded = null; throw error; });
    const image = { height: side, width: side, data: standardise(pixels) }, found = [];
    for (const unet of await loaded) found.push((await inSteps(unet.steps(image))).data);
    return found;
  };
}

/* The connected areas of pixels that are not background, as lists of indices; pixels connect to those above, below, left
   and right. */
function areasOf(classes, side) {
  const left = new Set([...classes.keys()].filter((i) => classes[i])), areas = [];
  for (const first of left) {
    const area = [first];
    left.delete(first);
    for (const i of area)  // grows while it is walked through
      for (const near of [i - side, i + side, i % side ? i - 1 : -1, (i + 1) % side ? i + 1 : -1]) if (left.delete(near)) area.push(near);
    areas.push(area);
  }
  return areas;
}

/* The class of each pixel, background where no digit has a probability above the threshold; the entropy of each pixel, in
   nats; and the objects, { digit, score, box: [x0, y0, x1, y1] }: connected areas of 12 pixels or more. */
export function readLabels(logits, side, threshold = 0.5) {
  const probs = softmaxRows(logits, CLASSES), pixels = Array.from({ length: side * side }, (_, i) => probs.subarray(i * CLASSES, (i + 1) * CLASSES));
  const classes = Uint8Array.from(pixels, (chances) => (chances[0] < 1 - threshold ? 1 + argmax(chances.subarray(1)) : 0));
  const entropy = Float32Array.from(pixels, (chances) => chances.reduce((sum, p) => sum - (p && p * Math.log(p)), 0));
  const objects = areasOf(classes, side).filter((area) => area.length >= SMALLEST).map((area) => {
    const means = Array.from({ length: CLASSES - 1 }, (_, digit) => area.reduce((sum, i) => sum + pixels[i][digit + 1], 0) / area.length);
    const x = area.map((i) => i % side), y = area.map((i) => Math.floor(i / side)), digit = argmax(means);
    return { digit, score: means[digit], box: [Math.min(...x), Math.min(...y), Math.max(...x) + 1, Math.max(...y) + 1] };
  });
  return { classes, entropy, objects };
}

export function labelWords({ classes, objects }) {
  if (!objects.length) return "No digit is found.";
  const found = objects.map(({ digit, score }) => `a ${digit} (${fixed(100 * score, 0)}%)`).join(", ");
  return `${objects.length} object${objects.length > 1 ? "s" : ""}: ${found}. ${classes.filter(Boolean).length} pixels are labelled as digits.`;
}

/* A map of the classes or of the entropy of the pixels, with a box around each object. */
export function labelMap({ label, side, colours }) {
  const canvas = canvasOf(side, { role: "img", "aria-label": label }), boxes = node("div", { class: "play-boxes", "aria-hidden": "true" });
  const rgb = colours.map((colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16))), share = (value) => `${(100 * value) / side}%`;
  return {
    ...figure(label, node("div", { class: "play-patches" }, canvas, boxes)),
    show(read, kind) {
      paintColours(canvas, kind === "entropy" ? Array.from(read.entropy, (value) => cividis(value / MOST)) : Array.from(read.classes, (k) => rgb[k]));
      put(canvas, { "aria-label": `${label}. ${labelWords(read)}` });
      boxes.replaceChildren(...read.objects.map(({ digit, score, box: [x0, y0, x1, y1] }) =>
        node("div", { class: y0 < side / 8 ? "below" : null, style: `left: ${share(x0)}; top: ${share(y0)}; width: ${share(x1 - x0)}; height: ${share(y1 - y0)}` },
          node("span", {}, `${digit}: ${fixed(100 * score, 0)}%`))));
    },
  };
}

/* Which colour each digit has in the maps. */
export function labelColours(colours) {
  const dark = (colour) => [1, 3, 5].reduce((sum, at, k) => sum + [0.299, 0.587, 0.114][k] * parseInt(colour.slice(at, at + 2), 16), 0) < 115;
  const square = (colour, digit) => node("span", { style: `background: ${colour}; color: ${dark(colour) ? "#fff" : "#000"}` }, `${digit}`);
  return node("div", { class: "play-swatches", role: "group", "aria-label": "Colours of the digits" }, ...colours.slice(1).map(square));
}
