/* A GPT to write with: temperature, top-k and top-p, token by token (lesson 08). */
import { stage, tokens, nextTokens, slider, choice, button, buttons, fixed } from "./kit.js";
import { textBox } from "./text.js";
import { END, languageModel, seen } from "./language.js";
import { needsModel } from "./site.js";
import { argmaxOf, chances, drawn, randomAt, softmaxOf } from "./sampling.js";

const MOST_WRITTEN = 60, SHOWN = 10;  // tokens that are written, and next tokens that are shown

/* Whether somewhere three tokens or more stand three times in a row. */
export function repeatsItself(ids) {
  const same = (i, n) => ids.slice(i, i + n).every((id, j) => id === ids[i + n + j] && id === ids[i + 2 * n + j]);
  for (let n = 3; 3 * n <= ids.length; n++) for (let i = 0; i + 3 * n <= ids.length; i++) if (same(i, n)) return true;
  return false;
}

/* A written token is { id, text, chance, top, temperature }: `top` was the most probable one, and greedy decoding has
   the temperature 0; one that was chosen by hand has NaN. `first` is the largest probability after the prompt. */
export const writerGoals = [
  ({ first }) => first > 0.9,
  ({ written }) => written.length >= 20 && written.every(({ id, top, temperature }) => temperature >= 1.5 && id === top),
  ({ written }) => repeatsItself(written.filter(({ temperature }) => temperature <= 0.1).map(({ id }) => id)),
];

/* How strong a token's colour is: 0 for a sure one, 1 for one of 8 bits or more. */
const surprise = (chance) => Math.min(1, -Math.log2(Math.max(chance, 1e-9)) / 8);
const percent = (chance) => `${fixed(100 * chance, chance < 0.1 ? 1 : 0)} %`;

export function writer({ root, config, kernel }) {
  needsModel(kernel, config.models);
  const start = { prompt: config.examples[0], written: [], next: null, first: 0, temperature: 1, topK: 0, topP: 1, seed: 1 };
  let model = null, reads = 0, running = false, rewriting = false;

  const text = tokens({ label: "The text", clicked: (i) => i > 0 && cut(i - 1) });
  const bars = nextTokens({ label: "Next token", clicked: (_, i) => pressed(() => add(() => likely(state())[i], NaN)) });
  const prompt = textBox({ label: "Prompt", examples: config.examples, changed: (words) => restart({ prompt: words }) });
  const heat = slider({ label: "Temperature", low: -4, high: 2, step: 0.1, log: 2, changed: (temperature, settled) => change({ temperature }, settled) });
  const keptK = choice({ label: "Top-k", options: [["off", 0], ["1", 1], ["2", 2], ["5", 5], ["10", 10], ["40", 40]], changed: (k) => change({ topK: k }) });
  const keptP = slider({ label: "Top-p", low: 0.05, high: 1, step: 0.05, changed: (p, settled) => change({ topP: p }, settled) });
  const write = button({ text: "Write", primary: true, clicked: () => (running ? (running = false) : pressed(run)) });
  const pen = buttons("Pen", [
    write,
    button({ text: "One token", clicked: () => pressed(() => add(sampled, state().temperature)) }),
    button({ text: "Most probable token", clicked: () => pressed(() => add(() => argmaxOf(state().next), 0)) }),
    button({ text: "Clear", clicked: () => restart({}) }),
    button({ text: "Other random numbers", clicked: () => restart({ seed: state().seed + 1 }) }),
  ]);

  /* Read the text as it is; false if it has changed in the meantime. */
  async function read() {
    const mine = ++reads;
    model ??= languageModel({ config, kernel, told: (part) => bars.note(`Loading the model: ${Math.round(100 * part)} %`) });
    const { tokenizer, logits } = await model, { prompt: words, written } = state();
    const ids = [...tokenizer.encode(END + words, { specials: false }), ...written.map(({ id }) => id)];
    if (ids.length > config.most) throw new Error(`This text has ${ids.length} tokens; please keep to ${config.most}.`);
    const next = await logits(ids);
    if (mine !== reads) return false;
    change({ next, tokenizer, ...(!written.length && { first: Math.max(...softmaxOf(next)) }) }, !running, false);
    return true;
  }

  const sampled = () => drawn(chances(state().next, state()), randomAt(state().seed, state().written.length));

  /* Write the token that `pick` returns; false where nothing more can be written. */
  async function add(pick, temperature) {
    if (!state().next && !(await read())) return false;
    const { next, written, tokenizer } = state(), id = pick();
    if (written.length >= MOST_WRITTEN) return false;
    const chance = softmaxOf(next)[id], text = tokenizer.decode([id]);
    return rewrite({ written: [...written, { id, text, chance, top: argmaxOf(next), temperature }] });
  }

  async function run() {
    running = true;
    write.show("Stop");
    try {
      do { await seen(); } while (running && (await add(sampled, state().temperature)) && state().written.at(-1).text !== END);
    } finally {
      running = false;
      write.show("Write");
      change({});
    }
  }

  function rewrite(changes) {
    rewriting = true;
    change({ ...changes, next: null }, false);
    rewriting = false;
    return read();
  }

  const stopped = (changes) => { running = false; return pressed(() => rewrite(changes)); };
  const cut = (count) => stopped({ written: state().written.slice(0, count) });
  const restart = (changes) => stopped({ ...changes, written: [], first: 0 });

  /* Do what a button asks for; what goes wrong is said in a sentence. */
  const pressed = (act) => Promise.resolve(act()).catch((error) => { model = null; bars.note(error.message); });

  const likely = ({ next }) => [...next.keys()].sort((a, b) => next[b] - next[a]).slice(0, SHOWN);

  function draw(now) {
    prompt.show(now.prompt);
    heat.show(now.temperature);
    keptK.show(now.topK);
    keptP.show(now.topP);
    const written = now.written.map(({ text: words, chance }) => ({
      text: words === END ? "⏎" : words, colour: "var(--minus)", strength: surprise(chance), title: `${percent(chance)}; press to cut the text here`,
    }));
    text.show([{ text: now.prompt, title: "the prompt" }, ...written]);
    text.note(`${now.written.length} tokens written; the stronger the colour, the less the model expected the token.`);
    if (!now.next) {
      if (!rewriting && model) { running = false; pressed(read); }  // back to the start
      return;
    }
    const before = softmaxOf(now.next), after = chances(now.next, now), left = after.reduce((sum, p) => sum + (p > 0), 0);
    bars.show(likely(now).map((id) => [now.tokenizer.decode([id]), after[id], before[id]]));
    bars.note(`${left === after.length ? "all" : left} of ${after.length} tokens can be drawn; pale: before temperature, top-k and top-p. Press a token to write it.`);
  }

  function words({ prompt: begin, written, next, tokenizer }) {
    const done = written.length ? ` Written: “${written.map((token) => token.text).join("").trim()}”.` : "";
    const most = next ? ` Most probable next token: “${tokenizer.decode([argmaxOf(next)]).trim() || "⏎"}”.` : "";
    return `Prompt: “${begin}”.${done}${most}`;
  }

  const { build, change, state, remove } = stage({ root, config, kernel, start, goals: writerGoals, draw, words });
  build([text, bars], [prompt, heat, keptK, keptP, pen]);
  if (kernel) pressed(read);
  else bars.note("Press Write: the model (7.5 MB) is loaded and computes in this page.");
  return () => { running = false; reads += 1; remove(); };
}
