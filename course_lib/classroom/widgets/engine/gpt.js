/* GPT-2, Radford et al. 2019: course_lib/models/gpt.py, with a cache of keys and values. */

import { add, gather, linear, normalize } from "./tensor.js";
import { TransformerBlock, causalMask } from "./attention.js";

export class GPT {
  /* weights of readSafetensors, config as in `GPTConfig`. */
  constructor(weights, config) {
    this.weights = weights;
    this.config = config;
    this.blocks = Array.from({ length: config.depth }, (_, l) => new TransformerBlock(weights, `blocks.${l}`, config));
  }

  /* Room for the keys and values of a whole context. */
  newCache() {
    const room = () => new Float32Array(this.config.context_length * this.config.dim);
    return { ids: [], layers: this.blocks.map(() => [room(), room()]) };
  }

  /* The logits (V,) of the token that follows `ids`, a whole text. Only the tokens behind those that the cache has in
     common with it are processed. Throws a RangeError for no tokens, and for more than `context_length`. */
  logits(ids, cache = this.newCache()) {
    const { context_length, dim } = this.config;
    if (!ids.length || ids.length > context_length)
      throw new RangeError(`this model reads 1 to ${context_length} tokens, got ${ids.length}`);
    const start = Math.min(sharedLength(ids, cache.ids), ids.length - 1);
    cache.ids.length = start;
    const x = this.features(ids.slice(start), cache);
    return this.head(x.subarray(x.length - dim));
  }

  /* The logits (T, V) behind each token of a text: what the model expected in place of the next one. */
  allLogits(ids) {
    return this.head(this.features(ids, this.newCache()));
  }

  /* What the blocks make (T, D) of tokens that follow those in the cache. */
  features(ids, cache) {
    const start = cache.ids.length, end = start + ids.length, { dim, norm_eps, pre_norm } = this.config;
    const embed = (name, indices) => gather(this.weights.get(name), indices), mask = causalMask(ids.length, end);
    let x = add(embed("token_embed.weight", ids), embed("pos_embed.table", ids.map((_, t) => start + t)));
    this.blocks.forEach((block, l) => {
      const remember = (keysValues) =>
        keysValues.map((rows, which) => {
          cache.layers[l][which].set(rows, start * dim);
          return cache.layers[l][which].subarray(0, end * dim);
        });
      ({ x } = block.forward(x, { mask, remember }));
    });
    cache.ids.push(...ids);
    return pre_norm ? normalize(x, this.weights, "norm", norm_eps) : x;
  }

  head(x) {
    return linear(x, this.weights.get("head.weight") ?? this.weights.get("token_embed.weight"));
  }
}

function sharedLength(a, b) {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}
