/* A digit that is drawn, and what a kernel's model makes of it: what the playgrounds of lessons 01, 02 and 12 share. */
import { stage, button, buttons } from "./kit.js";
import { newest } from "./newest.js";
import { bytesOf, drawingPad } from "./images.js";
import { needsKernel } from "./site.js";

/* A stage with a pad, examples, and these views and controls. `question(state)` is asked of the kernel as "read", and
   `answer(array, state)` makes `state.its` of what comes back, or null. `depends` names what in the state, beside the
   drawing, it is read from. Neither empty paper nor what is there at the start reaches a goal. */
export function drawnStage({ root, config, kernel, start = {}, depends = [], goals, words, views, controls = [], question, answer, show }) {
  needsKernel(kernel);
  const sources = Object.entries(config.sources).map(([name, text]) => [name, bytesOf(text)]), keys = ["source", ...depends];
  const first = { source: sources[0][1], its: null, ...start }, same = (one, other) => keys.every((key) => one[key] === other[key]);
  const current = (now) => Boolean(now.its) && same(now.its, now);
  let held = false;

  const touch = (changes, settled = true) => { held = !settled; change(changes, settled); };
  const paper = drawingPad({ label: "Draw a digit", size: config.pad.size, brush: config.pad.brush, changed: (source, settled) => touch({ source }, settled) });
  const examples = sources.map(([text, source]) => button({ text, clicked: () => touch({ source }) }));
  if (config.random) examples.push(button({ text: "any digit", clicked: () => kernel.ask("example", null).then((bytes) => touch({ source: Uint8Array.from(bytes) }), failed) }));

  const failed = (error) => views[0].note(error.message);
  const reading = newest({
    read: async (now) => ({ ...Object.fromEntries(keys.map((key) => [key, now[key]])), ...answer(await kernel.ask("read", question(now)), now) }),
    done: (its) => change({ its }, !held, false), failed,
  });

  function draw(now) {
    paper.show(now.source);
    show(now);
    if (!current(now)) reading.ask(now);
  }

  const { build, change, state, remove } = stage({
    root, config, kernel, start: first, draw,
    goals: goals.map((goal) => (now) => current(now) && !same(now, first) && now.source.some(Boolean) && goal(now.its, now)),
    words: (now) => (current(now) ? words(now) : ""),
  });
  return {
    touch, state,
    build() { build([paper, ...views], [buttons("Examples", examples), ...controls]); },
    remove() { reading.close(); remove(); },
  };
}

/* The indices of probabilities, the largest first. */
export const byProbability = (probs) => [...probs.keys()].sort((a, b) => probs[b] - probs[a]);
