/* A digit that is drawn, on its way through a ResNet: feature maps of each depth, and what a linear probe reads there
   (lesson 01). */
import { bars, fixed } from "./kit.js";
import { mapRows } from "./images.js";
import { byProbability, drawnStage } from "./drawn.js";

/* What the kernel answers: of each depth the probabilities that its probe gives, then some maps of each depth. */
export function stagesReading(numbers, { depths, sides, shown }) {
  let at = 0;
  const take = (length) => numbers.slice(at, (at += length));
  const probs = depths.map(() => take(10));
  return { probs, maps: sides.map((side) => Array.from({ length: shown }, () => take(side ** 2))) };
}

/* The digit that each probe reads, and its probability. */
const readings = ({ probs }) => probs.map((chances) => ({ digit: byProbability(chances)[0], sure: Math.max(...chances) }));

export const stagesGoals = [
  (its) => readings(its).at(-1).sure > 0.95,
  (its) => readings(its)[0].digit === readings(its).at(-1).digit,
  (its) => readings(its).some(({ digit, sure }) => sure > 0.6 && digit !== readings(its).at(-1).digit),
];

const readText = ({ digit, sure }) => `${digit} (${fixed(100 * sure, 0)}%)`;

export function stagesWords({ its }, { depths }) {
  const read = readings(its);
  return `A probe at each depth reads: ${depths.map((name, i) => `${name} ${readText(read[i])}`).join(", ")}.`;
}

export function stages({ root, config, kernel }) {
  const { depths, sides, shown } = config, last = depths.length - 1;
  const maps = mapRows({ label: "The strongest feature maps of each depth", sides: sides.map((side) => Array(shown).fill(side)), captions: depths });
  const sure = bars({ label: "Each probe's probability of its digit (%)", names: depths, low: 0, high: 100, ticks: [0, 50, 100], colour: "var(--weight)", digits: 0, height: 280 });

  function show({ its }) {
    if (!its) return;
    const read = readings(its), digit = read[last].digit;
    maps.show(its.maps, depths.map((name, i) => `${name}: its probe reads ${readText(read[i])}`));
    sure.show(read.map((one) => 100 * one.sure), its.probs.map((chances) => 100 * chances[digit]));
    sure.note(`The probes read ${read.map((one) => one.digit).join(", ")}; dashed: the probability of ${digit}, the last one's digit.`);
  }

  const { build, remove } = drawnStage({
    root, config, kernel, goals: stagesGoals, words: (now) => stagesWords(now, config), views: [maps, sure],
    question: ({ source }) => Array.from(source), answer: (numbers) => stagesReading(numbers, config), show,
  });
  build();
  return remove;
}
