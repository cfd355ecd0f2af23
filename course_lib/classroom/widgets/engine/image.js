/* Operations on images and feature maps: { height, width, data }, all channels of a pixel side by side in data. */

import { linear } from "./tensor.js";

/* (pixels - 0.5) / 0.25, for pixels from 0 (black) to 1 (white): what all models of the course expect. */
export function standardise(pixels) {
  return pixels.map((value) => (value - 0.5) / 0.25);
}

/* Pixels from 0 to 1 out of what `standardise` made of them. */
export function restore(standardised) {
  return standardised.map((value) => value * 0.25 + 0.5);
}

export function numChannels({ height, width, data }) {
  return data.length / (height * width);
}

/* The windows that a convolution sees, a row of C k k numbers for each; outside of the image there are zeros. */
export function unfold(image, { size, stride = 1, padding = 0 }) {
  const channels = numChannels(image), { height, width, data } = image;
  const rows = Math.floor((height + 2 * padding - size) / stride) + 1;
  const columns = Math.floor((width + 2 * padding - size) / stride) + 1;
  const windows = new Float32Array(rows * columns * channels * size * size);
  for (let row = 0, window = 0; row < rows; row++)
    for (let column = 0; column < columns; column++, window += channels * size * size)
      for (let i = 0; i < size; i++)
        for (let j = 0; j < size; j++) {
          const y = row * stride + i - padding, x = column * stride + j - padding;
          if (y < 0 || y >= height || x < 0 || x >= width) continue;
          for (let c = 0; c < channels; c++)
            windows[window + (c * size + i) * size + j] = data[(y * width + x) * channels + c];
        }
  return { height: rows, width: columns, data: windows };
}

/* torch.nn.Conv2d with a square kernel, as a matrix product with the windows. */
export function conv2d(image, weight, bias, { stride = 1, padding = 0 } = {}) {
  const { height, width, data } = unfold(image, { size: weight.shape[2], stride, padding });
  return { height, width, data: linear(data, weight, bias) };
}

/* torch.nn.ConvTranspose2d with a stride as large as its kernel: each pixel becomes a patch of its own. */
export function convTranspose2d(image, weight, bias) {
  const [numIn, numOut, size] = weight.shape, { width, data } = image;
  const result = { height: image.height * size, width: width * size };
  result.data = new Float32Array(result.height * result.width * numOut);
  for (let y = 0; y < result.height; y++)
    for (let x = 0; x < result.width; x++) {
      const from = (Math.floor(y / size) * width + Math.floor(x / size)) * numIn, at = (y * result.width + x) * numOut;
      const corner = (y % size) * size + (x % size);
      for (let o = 0; o < numOut; o++) {
        let sum = bias.data[o];
        for (let i = 0; i < numIn; i++) sum += data[from + i] * weight.data[(i * numOut + o) * size * size + corner];
        result.data[at + o] = sum;
      }
    }
  return result;
}

/* The largest of each 2 x 2 pixels. */
export function maxPool2(image) {
  const channels = numChannels(image), { width, data } = image, height = image.height >> 1, half = width >> 1;
  const result = { height, width: half, data: new Float32Array(height * half * channels) };
  for (let y = 0, at = 0; y < height; y++)
    for (let x = 0; x < half; x++)
      for (let c = 0; c < channels; c++, at++) {
        const i = (2 * y * width + 2 * x) * channels + c, below = i + width * channels;
        result.data[at] = Math.max(data[i], data[i + channels], data[below], data[below + channels]);
      }
  return result;
}

/* Batch normalisation at inference time: (x - mean) / sqrt(variance + eps) * weight + bias for each channel. */
export function batchNorm(image, weights, name, eps = 1e-5) {
  const get = (kind) => weights.get(`${name}.${kind}`).data, channels = numChannels(image);
  const scale = get("weight").map((value, c) => value / Math.sqrt(get("running_var")[c] + eps));
  const shift = get("bias").map((value, c) => value - get("running_mean")[c] * scale[c]);
  return { ...image, data: image.data.map((value, i) => value * scale[i % channels] + shift[i % channels]) };
}

/* Two maps of one size, the channels of the first before those of the second. */
export function joinChannels(first, second) {
  const a = numChannels(first), b = numChannels(second), pixels = first.height * first.width;
  const data = new Float32Array(pixels * (a + b));
  for (let i = 0; i < pixels; i++) {
    data.set(first.data.subarray(i * a, (i + 1) * a), i * (a + b));
    data.set(second.data.subarray(i * b, (i + 1) * b), i * (a + b) + a);
  }
  return { ...first, data };
}
