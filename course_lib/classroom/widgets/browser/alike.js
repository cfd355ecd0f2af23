/* A digit that is drawn and turned, and which of 400 digits are nearest to it by three kinds of features (lesson 02). */
import { slider } from "./kit.js";
import { mapRows, paintPixels, pixelImage } from "./images.js";
import { drawnStage } from "./drawn.js";

/* What the kernel answers: the pixels that the networks see, then for each kind of features the label and the pixels of
   each of the nearest digits. */
export function neighbourReading(numbers, { side, nearest, names }) {
  const size = side ** 2, one = (k, n) => size + (k * nearest + n) * (size + 1), places = [...Array(nearest).keys()];
  return {
    scene: numbers.slice(0, size),
    labels: names.map((_, k) => places.map((n) => numbers[one(k, n)])),
    images: names.map((_, k) => places.map((n) => numbers.slice(one(k, n) + 1, one(k, n + 1)))),
  };
}

const allOne = (labels) => new Set(labels).size === 1;

export const neighbourGoals = [  // by pixels, before the training, and by SimCLR
  ({ labels: [pixels, , simclr] }) => allOne(simclr) && !allOne(pixels),
  ({ labels: [, , simclr] }) => !allOne(simclr),
];

export function neighbourWords({ its }, { names }) {
  return names.map((name, k) => `Nearest by ${name}: ${its.labels[k].join(", ")}.`).join(" ");
}

export function alike({ root, config, kernel }) {
  const { side, nearest, names } = config;
  const seen = pixelImage({ label: "As the networks see it", side });
  const rows = mapRows({ label: "The nearest of 400 digits", sides: names.map(() => Array(nearest).fill(side)), captions: names, paint: paintPixels });
  const turn = slider({ label: "Turn (degrees)", low: -90, high: 90, step: 5, whole: true, format: (degrees) => `${Math.round(degrees)}`, changed: (degrees, settled) => touch({ turn: Math.round(degrees) }, settled) });

  function show(now) {
    turn.show(now.turn);
    if (!now.its) return;
    seen.show(now.its.scene);
    seen.note("centred, as tall and bold as in training, and turned");
    rows.show(now.its.images, names.map((name, k) => `by ${name}: ${now.its.labels[k].join(", ")}`));
  }

  const { build, touch, remove } = drawnStage({
    root, config, kernel, start: { turn: 0 }, depends: ["turn"], goals: neighbourGoals, words: (now) => neighbourWords(now, config), views: [seen, rows], controls: [turn],
    question: ({ source, turn: degrees }) => ({ drawing: Array.from(source), turn: degrees }), answer: (numbers) => neighbourReading(numbers, config), show,
  });
  build();
  return remove;
}
