/* The Vision Transformer, Dosovitskiy et al. 2021: course_lib/models/vit.py, for square images and its patch stem. */

import { add, concat, gather, normalize, project, softmaxRows } from "./tensor.js";
import { TransformerBlock } from "./attention.js";
import { conv2d } from "./image.js";

export class ViT {
  /* weights of readSafetensors, config as in `ViTConfig`. */
  constructor(weights, config) {
    this.weights = weights;
    this.config = config;
    this.numExtra = weights.has("cls_token") ? 1 : 0;
    this.blocks = Array.from({ length: config.depth }, (_, l) => new TransformerBlock(weights, `blocks.${l}`, config));
  }

  /* Patches (N, D), row by row, with their positions: eq. (1) but for the class token; image: standardised pixels. */
  embed(image) {
    const side = this.config.image_size, stride = this.config.patch_size, get = (name) => this.weights.get(name);
    const pixels = { height: side, width: side, data: image };
    const { data } = conv2d(pixels, get("patch_embed.proj.weight"), get("patch_embed.proj.bias"), { stride });
    return add(data, get("pos_embed").data.subarray(this.numExtra * this.config.dim));
  }

  /* The class token, if there is one, and these patches through all blocks, eqs. (2)-(3): the features (T, D), and of
     each block the attention weights (H, T, T). */
  encode(patches) {
    const { dim, norm_eps } = this.config, get = (name) => this.weights.get(name).data, weights = [];
    let x = patches;
    if (this.numExtra) x = concat(add(get("cls_token"), get("pos_embed").subarray(0, dim)), x);
    for (const block of this.blocks) {
      const output = block.forward(x);
      x = output.x;
      weights.push(output.weights);
    }
    return { features: normalize(x, this.weights, "norm", norm_eps), weights };
  }

  /* Logits and probabilities of the classes by the class token, eq. (4), and the attention weights of the blocks. Only
     the patches of these indices are processed, all of them for null. */
  classify(image, visible = null) {
    const { features, weights } = this.encode(takeRows(this.embed(image), this.config.dim, visible));
    const logits = project(features.subarray(0, this.config.dim), this.weights, "head");
    return { logits, probs: softmaxRows(logits), weights };
  }
}

/* The rows of these indices, in their order; all for null. */
export function takeRows(x, size, indices) {
  return indices === null ? x : gather({ shape: [x.length / size], data: x }, indices);
}

/* How much of each input token has reached each output token (T, T): A_L ... A_1, where A_l is half the mean of the
   heads' weights and half the identity. Abnar & Zuidema 2020, eq. (1). */
export function attentionRollout(weights, numHeads) {
  const size = Math.sqrt(weights[0].length / numHeads);
  let rollout = null;
  for (const heads of weights) {
    const mixed = Float32Array.from({ length: size * size }, (_, at) => {
      let sum = 0;
      for (let h = 0; h < numHeads; h++) sum += heads[h * size * size + at];
      return 0.5 * (sum / numHeads) + (at % (size + 1) === 0 ? 0.5 : 0);
    });
    rollout = rollout ? product(mixed, rollout, size) : mixed;
  }
  return rollout;
}

function product(a, b, size) {
  const result = new Float32Array(size * size);
  for (let i = 0; i < size; i++)
    for (let k = 0; k < size; k++)
      for (let j = 0; j < size; j++) result[i * size + j] += a[i * size + k] * b[k * size + j];
  return result;
}
