/* The masked autoencoder, He et al. 2022: course_lib/models/mae.py, without a class token. */

import { add, normalize, project, weightsUnder } from "./tensor.js";
import { TransformerBlock } from "./attention.js";
import { ViT, takeRows } from "./vit.js";

export class MAE {
  /* weights of readSafetensors, config as in `MAEConfig`. */
  constructor(weights, config) {
    const { decoder_dim, decoder_depth, decoder_num_heads, encoder } = config;
    if (encoder.pool !== "mean" || encoder.in_channels !== 1 || config.normalised)
      throw new RangeError("only an MAE of grey pixels as they are, without a class token, can be computed here");
    const settings = { dim: decoder_dim, num_heads: decoder_num_heads, activation: "gelu", norm_eps: encoder.norm_eps };
    this.config = config;
    this.encoder = new ViT(weightsUnder(weights, "encoder."), encoder);
    this.weights = weightsUnder(weights, "decoder.");
    const block = (_, l) => new TransformerBlock(this.weights, `blocks.${l}`, settings);
    this.blocks = Array.from({ length: decoder_depth }, block);
  }

  /* The patches (N, P) that the decoder predicts of all positions, when the encoder sees the `visible` indices only. */
  predict(image, visible) {
    const { dim } = this.encoder.config, size = this.config.decoder_dim;
    const { features } = this.encoder.encode(takeRows(this.encoder.embed(image), dim, visible));
    const known = project(features, this.weights, "embed"), positions = this.weights.get("pos_embed").data;
    let x = positions.slice().fill(0);
    for (let at = 0; at < x.length; at += size) x.set(this.weights.get("mask_token").data, at);
    visible.forEach((index, i) => x.set(known.subarray(i * size, (i + 1) * size), index * size));
    x = add(x, positions);
    for (const block of this.blocks) ({ x } = block.forward(x));
    return project(normalize(x, this.weights, "norm", this.encoder.config.norm_eps), this.weights, "pred");
  }

  /* The image with its hidden patches reconstructed and the `visible` ones as they are. */
  reconstruct(image, visible) {
    const { image_size: side, patch_size: size } = this.encoder.config, columns = side / size, seen = new Set(visible);
    const patches = this.predict(image, visible);
    return image.map((value, i) => {
      const x = i % side, y = Math.floor(i / side), patch = Math.floor(y / size) * columns + Math.floor(x / size);
      return seen.has(patch) ? value : patches[(patch * size + (y % size)) * size + (x % size)];
    });
  }
}
