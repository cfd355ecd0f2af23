/* BERT with its masked-language-model head, Devlin et al. 2018: course_lib/models/bert.py and bert_tasks.py. */

import { ACTIVATIONS, add, gather, linear, normalize, project, weightsUnder } from "./tensor.js";
import { TransformerBlock } from "./attention.js";

export class BERT {
  /* weights of readSafetensors, config as in `BERTConfig`, with a tied head. */
  constructor(weights, config) {
    this.config = { ...config, pre_norm: false };
    this.weights = weightsUnder(weights, "bert.");
    this.head = weightsUnder(weights, "head.");
    const block = (_, l) => new TransformerBlock(this.weights, `blocks.${l}`, this.config);
    this.blocks = Array.from({ length: config.depth }, block);
  }

  /* The features (T, D) of tokens, all of sentence A, and of each block the attention weights (H, T, T). Throws a
     RangeError for more tokens than there are positions. */
  encode(ids) {
    const embed = (name, indices) => gather(this.weights.get(name), indices), weights = [];
    const tokens = add(embed("token_embed.weight", ids), embed("segment_embed.weight", ids.map(() => 0)));
    let x = add(tokens, embed("pos_embed.table", ids.map((_, t) => t)));
    x = normalize(x, this.weights, "norm", this.config.norm_eps);
    for (const block of this.blocks) {
      const output = block.forward(x);
      x = output.x;
      weights.push(output.weights);
    }
    return { features: x, weights };
  }

  /* What each token may have been: norm(act(W h + b)) E^T + c, the logits (T, V) of features (T, D). */
  logits(features) {
    const { activation, norm_eps } = this.config;
    const transformed = ACTIVATIONS[activation](project(features, this.head, "transform"));
    const h = normalize(transformed, this.head, "norm", norm_eps);
    return linear(h, this.weights.get("token_embed.weight"), this.head.get("bias"));
  }
}
