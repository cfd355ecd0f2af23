/* An image whose patches are hidden with a brush: the classes of a ViT, its rollout and its heads (lesson 11). */
import { stage, bars, button, buttons, choice, fixed } from "./kit.js";
import { newest } from "./newest.js";
import { bytesOf, patchBrush, patchMaps } from "./images.js";
import { needsModel, siteModel } from "./site.js";
import { patchReading, patchWords, rankedDigits } from "./digit.js";
import { ViT } from "../engine/vit.js";

/* `its` is what was read last: { source, hidden, whole } and what patchReading returns; `whole` is the same of the image
   with nothing hidden. */
export function hideGoals({ few }) {
  const goal = (fits) => ({ source, hidden, its }) => {
    if (!its || its.source !== source || its.hidden !== hidden || hidden.every(Boolean)) return false;
    const [digit] = rankedDigits(its.now), same = digit === rankedDigits(its.whole.now)[0];
    return fits({ count: hidden.filter(Boolean).length, same, sure: its.now[digit], ...its });
  };
  return [
    goal(({ count, same }) => count <= 2 && !same),
    goal(({ count, same, sure, hidden }) => count >= hidden.length - few && same && sure > 0.95),
    goal(({ same, hidden, whole }) => same && rankedDigits(whole.rollout).slice(0, few).every((i) => hidden[i])),
  ];
}

export const hideWords = ({ its }) => (its ? patchWords(its.now, its.hidden) : "");

export function hide({ root, config, kernel }) {
  needsModel(kernel, config.models);
  const { side, grid } = config, total = grid * grid, images = new WeakMap(), wholes = new WeakMap(), nothing = Array(total).fill(false);
  const sources = Object.entries(config.sources).map(([name, text]) => [name, bytesOf(text)]);
  for (const [, source] of sources) images.set(source, Float32Array.from(source, (level) => level / 255));
  const start = { source: sources[0][1], hidden: nothing, map: "rollout", its: null };
  let vit = null, held = false;
  const touch = (changes, settled) => { held = !settled; change(changes, settled); };
  const patches = patchBrush({
    label: "Drag over patches to hide them", side, grid,
    painted: {
      is: (i, j) => state().hidden[i * grid + j],
      set: (i, j, on) => touch(state().hidden[i * grid + j] === on ? {} : { hidden: state().hidden.with(i * grid + j, on) }, false),
      end: () => touch({}, true),
    },
  });
  const chances = bars({ label: "Probabilities (%)", names: [..."0123456789"], low: 0, high: 100, ticks: [0, 50, 100], colour: "var(--weight)", digits: 0, height: 280 });
  const before = patchMaps({ label: "Rollout, nothing hidden", grid }), maps = patchMaps({ label: "Attention now", grid });
  const hideAll = (text, of) => button({ text, clicked: () => touch({ hidden: of(state().hidden) }, true) });
  const image = choice({ label: "Image", options: sources, changed: (source) => touch({ source }, true) });
  const map = choice({ label: "Attention now", options: [["rollout", "rollout"], ["each head", "heads"]], changed: (kind) => touch({ map: kind }, true) });
  const brushes = buttons("Patches", [hideAll("Show all", (all) => all.map(() => false)), hideAll("Swap visible and hidden", (all) => all.map((off) => !off))]);

  async function look(pixels, hidden) {
    if (!kernel) {
      vit ??= siteModel(config.models[0]).then(({ weights, config: sizes }) => new ViT(weights, sizes)).catch((error) => { vit = null; throw error; });
      return patchReading(await vit, pixels, hidden);
    }
    const off = [...hidden.keys()].filter((i) => hidden[i]).map((i) => i + 1);
    const answer = await kernel.ask("look", { pixels: Array.from(pixels), hidden: off });
    const all = Array.from({ length: (answer.length - 10) / total }, (_, i) => answer.subarray(10 + i * total, 10 + (i + 1) * total));
    return { now: answer.subarray(0, 10), rollout: all[0], heads: all.slice(1) };
  }

  const reader = newest({
    async read({ source, hidden }) {
      const pixels = images.get(source);
      if (!wholes.has(source)) wholes.set(source, await look(pixels, nothing));
      return { source, hidden, whole: wholes.get(source), ...(await look(pixels, hidden)) };
    },
    done: (its) => change({ its }, !held, false),
    failed: (error) => chances.note(error.message),
  });

  function draw(now) {
    const { source, hidden, its } = now, percent = (probs) => Array.from(probs, (chance) => 100 * chance);
    patches.show(images.get(source), hidden);
    image.show(source);
    map.show(now.map);
    if (its) {
      const [digit] = rankedDigits(its.now);
      chances.show(percent(its.now), percent(its.whole.now));
      chances.note(`It says ${digit} (${fixed(100 * its.now[digit], 0)}%); dashed: nothing hidden`);
      before.show([its.whole.rollout], nothing);
      maps.show(now.map === "heads" ? its.heads : [its.rollout], its.hidden);
      maps.note(now.map === "heads" ? "rows: blocks, columns: heads; bright: much" : "rollout through all blocks; bright: much");
    }
    if (its?.source !== source || its.hidden !== hidden) reader.ask(now);
  }

  const { build, change, state, remove } = stage({ root, config, kernel, start, goals: hideGoals(config), draw, words: hideWords });
  build([patches, chances, before, maps], [image, brushes, map]);
  if (!state().its) chances.note("Loading the model …");
  return () => { reader.close(); remove(); };
}
