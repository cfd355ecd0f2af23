/* A digit that is drawn: what a Swin Transformer says of it, and the feature maps of its two stages (lesson 12). */
import { bars, fixed } from "./kit.js";
import { pixelImage, mapRows } from "./images.js";
import { byProbability, drawnStage } from "./drawn.js";

export const hierarchyGoals = [
  ({ raw, probs }) => Math.max(...probs) >= 0.9 && byProbability(raw)[0] !== byProbability(probs)[0],
  ({ probs }) => probs[byProbability(probs)[1]] >= 0.3,
];

/* What the kernel answers: 10 probabilities of the drawing as it is, 10 of the prepared one, this image, and the maps. */
export function hierarchyReading(numbers, { side, maps }) {
  const parts = [10, 10, side ** 2, ...maps.map((width) => width ** 2)];
  const [raw, probs, pixels, ...stages] = parts.map((length, i) => {
    const from = parts.slice(0, i).reduce((sum, part) => sum + part, 0);
    return numbers.slice(from, from + length);
  });
  return { raw, probs, pixels, stages };
}

export function hierarchyWords({ source, its: { raw, probs } }, { empty }) {
  if (!source.some(Boolean)) return empty;
  const [first, second] = byProbability(probs), percent = (digit) => `${fixed(100 * probs[digit], 0)}%`;
  const other = probs[second] >= 0.005 ? `, or ${second} (${percent(second)})` : "";
  return `As drawn it would say ${byProbability(raw)[0]}. Prepared, it says ${first} (${percent(first)})${other}.`;
}

export function hierarchy({ root, config, kernel }) {
  const image = pixelImage({ label: "As the network sees it", side: config.side });
  const chances = bars({ label: "Probabilities (%)", names: [..."0123456789"], low: 0, high: 100, ticks: [0, 50, 100], colour: "var(--weight)", digits: 0, height: 280 });
  const maps = mapRows({ label: "Feature maps of both stages", sides: [config.maps], captions: [""] });

  function show({ source, its }) {
    if (!its) return;
    const first = byProbability(its.probs)[0], raw = byProbability(its.raw)[0];
    image.show(its.pixels);
    chances.show(Array.from(its.probs, (chance) => 100 * chance));
    chances.note(source.some(Boolean) ? `It says ${first}; as drawn, not prepared: ${raw} (${fixed(100 * its.raw[raw], 0)}%)` : config.empty);
    maps.show([its.stages]);
  }

  const { build, remove } = drawnStage({
    root, config, kernel, goals: hierarchyGoals, words: (now) => hierarchyWords(now, config), views: [chances, image, maps],
    question: ({ source }) => Array.from(source), answer: (numbers) => hierarchyReading(numbers, config), show,
  });
  image.note("prepared: centred, as tall and bold as in training");
  maps.note(`${config.maps.map((side, i) => `stage ${i + 1}: ${side} x ${side}`).join(", ")}; bright: far from the map of a black image`);
  build();
  return remove;
}
