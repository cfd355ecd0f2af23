/* Any drawing, and what a network says of it that knows the digits 0 to 5 alone (lesson 01). */
import { bars, fixed } from "./kit.js";
import { pixelImage } from "./images.js";
import { byProbability, drawnStage } from "./drawn.js";

export function sixWords({ its: { probs } }) {
  const [digit] = byProbability(probs);
  return `It knows 0 to 5, and says ${digit} (${fixed(100 * probs[digit], 0)}%).`;
}

export function six({ root, config, kernel }) {
  const chances = bars({ label: "Probabilities (%)", names: [..."012345"], low: 0, high: 100, ticks: [0, 50, 100], colour: "var(--weight)", digits: 0, height: 280 });
  const image = pixelImage({ label: "As the network sees it", side: config.side });

  function show({ its }) {
    if (!its) return;
    chances.show(Array.from(its.probs, (chance) => 100 * chance));
    chances.note(sixWords({ its }));
    image.show(its.pixels);
  }

  const { build, remove } = drawnStage({
    root, config, kernel, goals: [], words: sixWords, views: [chances, image], question: ({ source }) => Array.from(source),
    answer: (numbers) => ({ probs: numbers.slice(0, 6), pixels: numbers.slice(6) }), show,
  });
  image.note("prepared: centred, as tall and bold as in training, bright on dark grey");
  build();
  return remove;
}
