/* A drawing, and what a U-Net says of each of its pixels (lesson 14). */
import { stage, button, buttons, choice } from "./kit.js";
import { newest } from "./newest.js";
import { bytesOf, drawingPad, pixelImage } from "./images.js";
import { needsModel } from "./site.js";
import { labelColours, labelMap, labelWords, readLabels, segmenters } from "./labels.js";
import { asDigit, resizeByArea } from "../engine/digits.js";

const MUCH_INK = 100;  // pixels of the pad

/* What the network gets of a drawing: a digit of its size on a background of its kind, or the drawing itself. */
export function drawingPixels({ side, papers }, { source, ground }) {
  const ink = Float32Array.from(source, (value) => value / 255);
  if (!papers[ground]) return resizeByArea(ink, side);
  const digit = asDigit(ink), small = Math.sqrt(digit.length), edge = (side - small) / 2;
  return Float32Array.from(bytesOf(papers[ground]), (level, i) => {
    const row = Math.floor(i / side) - edge, column = (i % side) - edge, inside = Math.min(row, column) >= 0 && Math.max(row, column) < small;
    return level / 255 + (inside ? digit[row * small + column] : 0) * (0.95 - level / 255);
  });
}

/* `its` is what was read last: { source, ground, pixels, classes, entropy, objects }. */
export function drawingGoals() {
  const goal = (fits) => ({ source, ground, its }) => Boolean(its && its.source === source && its.ground === ground && fits(its));
  return [
    goal(({ classes }) => Array.from({ length: 10 }, (_, digit) => classes.filter((k) => k === digit + 1).length).filter((count) => count >= 30).length >= 2),
    goal(({ source, objects }) => source.filter((ink) => ink > 127).length >= MUCH_INK && !objects.length),
  ];
}

export function drawingWords({ source, its }, { empty }) {
  if (!its) return "";
  return source.some(Boolean) ? labelWords(its) : `${empty} ${labelWords(its)}`;
}

export function drawing({ root, config, kernel }) {
  needsModel(kernel, config.models);
  const { side, pad, colours, models } = config, logitsOf = segmenters({ kernel, models, side });
  const sources = Object.entries(config.sources).map(([name, text]) => [name, bytesOf(text)]);
  const start = { source: sources[0][1], ground: "plain", its: null };
  let held = false;
  const touch = (changes, settled) => { held = !settled; change(changes, settled); };
  const paper = drawingPad({ label: "Draw a digit, or anything", size: pad.size, brush: pad.brush, changed: (source, settled) => touch({ source }, settled) });
  const given = pixelImage({ label: "Input of the U-Net", side });
  const classes = labelMap({ label: "Segmentation", side, colours }), entropy = labelMap({ label: "Uncertainty", side, colours });
  const examples = buttons("Examples", sources.map(([text, source]) => button({ text, clicked: () => touch({ source }, true) })));
  const ground = choice({ label: "Background", options: Object.entries(config.grounds), changed: (chosen) => touch({ ground: chosen }, true) });
  const reader = newest({
    async read(now) {
      const pixels = drawingPixels(config, now), [logits] = await logitsOf(pixels);
      return { source: now.source, ground: now.ground, pixels, ...readLabels(logits, side) };
    },
    done: (its) => change({ its }, !held, false),
    failed: (error) => classes.note(error.message),
  });

  function draw(now) {
    const { source, its } = now;
    paper.show(source);
    ground.show(now.ground);
    given.show(drawingPixels(config, now));
    if (its) {
      classes.show(its, "classes");
      classes.note(source.some(Boolean) ? "" : config.empty);
      entropy.show(its, "entropy");
    }
    if (its?.source !== source || its.ground !== now.ground) reader.ask(now);
  }

  const { build, change, state, remove } = stage({ root, config, kernel, start, goals: drawingGoals(), draw, words: (now) => drawingWords(now, config) });
  classes.root.append(labelColours(colours));
  entropy.note("entropy of the classes; bright: much");
  build([paper, given, classes, entropy], [examples, ground]);
  if (!state().its) classes.note("Loading the model …");
  return () => { reader.close(); remove(); };
}
