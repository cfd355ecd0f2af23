/* U-Net, Ronneberger et al. 2015: course_lib/models/unet.py, with batch normalisation and transposed convolutions. */

import { ACTIVATIONS } from "./tensor.js";
import { batchNorm, conv2d, convTranspose2d, joinChannels, maxPool2 } from "./image.js";

export class UNet {
  /* weights of readSafetensors, config as in `UNetConfig`. */
  constructor(weights, config) {
    if (config.trunk || !config.norm || config.up !== "transposed")
      throw new RangeError("only a U-Net with norms, transposed convolutions and no trunk can be computed here");
    this.weights = weights;
    this.config = config;
  }

  /* The logits (H, W, K) of every pixel of an image (H, W) of standardised grey pixels, both { height, width, data }.
     Throws a RangeError for a height or width that cannot be halved as often as the encoder does. */
  logits(image) {
    const steps = this.steps(image);
    for (let step; ; ) if ((step = steps.next()).done) return step.value;
  }

  /* The same with a pause after each convolution, in which a page can draw. */
  *steps(image) {
    const depth = this.config.widths.length - 1, maps = [], get = (name) => this.weights.get(name);
    if (image.height % 2 ** depth || image.width % 2 ** depth)
      throw new RangeError(`${image.height} x ${image.width} pixels are no multiples of ${2 ** depth}`);
    let x = image;
    for (let level = 0; level <= depth; level++) {
      x = yield* this.convs(level ? maxPool2(x) : x, `encoder.${level}`);
      maps.push(x);
    }
    for (let level = 0; level < depth; level++) {
      x = convTranspose2d(x, get(`decoder.${level}.up.weight`), get(`decoder.${level}.up.bias`));
      x = yield* this.convs(this.config.skips ? joinChannels(maps[depth - 1 - level], x) : x, `decoder.${level}.convs`);
    }
    return conv2d(x, get("head.weight"), get("head.bias"));
  }

  /* Two 3 x 3 convolutions, each with its norm and ReLU. */
  *convs(x, name) {
    for (const layer of [`${name}.0`, `${name}.1`]) {
      x = conv2d(x, this.weights.get(`${layer}.conv.weight`), null, { padding: 1 });
      x = batchNorm(x, this.weights, `${layer}.norm`);
      x = { ...x, data: ACTIVATIONS.relu(x.data) };
      yield;
    }
    return x;
  }
}
