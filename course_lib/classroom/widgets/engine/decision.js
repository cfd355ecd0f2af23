/* The Decision Transformer, Chen et al. 2021: course_lib/models/decision_transformer.py. */

import { add, concat, gather, normalize, project } from "./tensor.js";
import { TransformerBlock, causalMask } from "./attention.js";

const EMBED_EPS = 1e-5;  // of the LayerNorm behind the embeddings

export class DecisionTransformer {
  /* weights of readSafetensors, config as in `DecisionTransformerConfig`. */
  constructor(weights, config) {
    this.weights = weights;
    this.config = config;
    this.blocks = Array.from({ length: config.depth }, (_, l) => new TransformerBlock(weights, `blocks.${l}`, config));
  }

  /* The logits (A,) of the next action of an episode of t steps: `toGo`, the return that is to go at each of them,
     `states` (t arrays of S numbers) and `actions` (t - 1 arrays of A numbers). It sees the last `context_steps`. */
  act(toGo, states, actions) {
    const { context_steps, norm_eps } = this.config, tokens = [];
    const times = this.weights.get("time_embed.table");
    const place = (x, t, name) => tokens.push(add(project(x, this.weights, name), gather(times, [t])));
    for (let t = Math.max(0, states.length - context_steps); t < states.length; t++) {
      place(Float32Array.of(toGo[t]), t, "return_embed");
      place(states[t], t, "state_embed");
      if (t < actions.length) place(actions[t], t, "action_embed");
    }
    let x = normalize(concat(...tokens), this.weights, "embed_norm", EMBED_EPS);
    for (const block of this.blocks) ({ x } = block.forward(x, { mask: causalMask(tokens.length, tokens.length) }));
    const last = normalize(x.subarray(x.length - this.config.dim), this.weights, "norm", norm_eps);
    return project(last, this.weights, "head");
  }
}
