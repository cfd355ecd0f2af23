/* The language model of a playground: a kernel's, which may be the learner's own, or one that the site delivers. */
import { siteModel } from "./site.js";
import { GPT } from "../engine/gpt.js";
import { ByteLevelBPE } from "../engine/bpe.js";

export const END = "\n";  // an entry of the dictionary begins and ends with a line feed

/* { tokenizer, logits(ids) -> Promise of Float32Array (V,) }. `told(fraction)` hears how much of it is loaded. */
export async function languageModel({ config, kernel, told = () => {} }) {
  if (kernel) {
    const tokenizer = new ByteLevelBPE(await kernel.ask("tokenizer", null));
    return { tokenizer, logits: (ids) => kernel.ask("logits", { ids }) };
  }
  const { weights, config: sizes, tokenizers } = await siteModel(config.models[0], told);
  const gpt = new GPT(weights, sizes), cache = gpt.newCache();
  return { tokenizer: new ByteLevelBPE(tokenizers.text), logits: async (ids) => gpt.logits(ids, cache) };
}

/* The next frame: what was drawn is seen before the next token is computed. */
export const seen = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
