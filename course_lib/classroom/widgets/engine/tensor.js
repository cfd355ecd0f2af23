/* The operations that all models of the course share.

   A matrix is a Float32Array, row by row; its number of rows follows from its length. A weight is { shape, data } as
   readSafetensors gives it, with the shape that PyTorch stores. Sums are made in double precision. */

/* y = x W^T + b for each row of x: (T, in) -> (T, out), with W (out, in), as torch.nn.Linear. */
export function linear(x, weight, bias = null) {
  const [numOut] = weight.shape, numIn = weight.data.length / numOut, rows = x.length / numIn, W = weight.data;
  if (!Number.isInteger(rows)) throw new RangeError(`linear: ${x.length} numbers are no rows of ${numIn}`);
  const y = new Float32Array(rows * numOut), b = bias ? bias.data : new Float32Array(numOut);
  let o = 0;
  for (; o + 4 <= numOut; o += 4) {  // four outputs at once: each number of x is read once for all four
    const w0 = o * numIn, w1 = w0 + numIn, w2 = w1 + numIn, w3 = w2 + numIn;
    for (let t = 0; t < rows; t++) {
      const row = t * numIn, out = t * numOut + o;
      let y0 = b[o], y1 = b[o + 1], y2 = b[o + 2], y3 = b[o + 3];
      for (let i = 0; i < numIn; i++) {
        const value = x[row + i];
        y0 += value * W[w0 + i];
        y1 += value * W[w1 + i];
        y2 += value * W[w2 + i];
        y3 += value * W[w3 + i];
      }
      y[out] = y0;
      y[out + 1] = y1;
      y[out + 2] = y2;
      y[out + 3] = y3;
    }
  }
  for (; o < numOut; o++)
    for (let t = 0; t < rows; t++) y[t * numOut + o] = b[o] + dot(x, t * numIn, W, o * numIn, numIn);
  return y;
}

/* sum_i a[from + i] b[start + i] over `size` numbers. */
export function dot(a, from, b, start, size) {
  let sum = 0;
  for (let i = 0; i < size; i++) sum += a[from + i] * b[start + i];
  return sum;
}

/* The rows of a table at these indices: embeddings of tokens or positions. */
export function gather(table, indices) {
  const [length] = table.shape, size = table.data.length / length;
  const rows = new Float32Array(indices.length * size);
  indices.forEach((index, t) => {
    if (!(index >= 0 && index < length)) throw new RangeError(`index ${index} is outside of a table of ${length} rows`);
    rows.set(table.data.subarray(index * size, (index + 1) * size), t * size);
  });
  return rows;
}

/* x + y, number by number. */
export function add(x, y) {
  return x.map((value, i) => value + y[i]);
}

/* The arrays one after the other. */
export function concat(...arrays) {
  const all = new Float32Array(arrays.reduce((length, array) => length + array.length, 0));
  let at = 0;
  for (const array of arrays) {
    all.set(array, at);
    at += array.length;
  }
  return all;
}

/* (x - mean) / sqrt(variance + eps) * weight + bias for each row (Ba et al. 2016). */
export function layerNorm(x, weight, bias, eps) {
  const size = weight.data.length, y = new Float32Array(x.length);
  for (let row = 0; row < x.length; row += size) {
    let mean = 0, variance = 0;
    for (let i = 0; i < size; i++) mean += x[row + i] / size;
    for (let i = 0; i < size; i++) variance += (x[row + i] - mean) ** 2 / size;
    const scale = 1 / Math.sqrt(variance + eps);
    for (let i = 0; i < size; i++) y[row + i] = (x[row + i] - mean) * scale * weight.data[i] + bias.data[i];
  }
  return y;
}

/* exp(x_i) / sum_j exp(x_j) for each row of `size` numbers, x itself if none is given. */
export function softmaxRows(x, size = x.length) {
  const y = new Float32Array(x.length);
  for (let row = 0; row < x.length; row += size) {
    let largest = -Infinity, sum = 0;
    for (let i = row; i < row + size; i++) largest = Math.max(largest, x[i]);
    for (let i = row; i < row + size; i++) sum += y[i] = Math.exp(x[i] - largest);
    for (let i = row; i < row + size; i++) y[i] /= sum;
  }
  return y;
}

/* The index of the largest number, the first of equals. */
export function argmax(x) {
  let best = 0;
  for (let i = 1; i < x.length; i++) if (x[i] > x[best]) best = i;
  return best;
}

/* The weights whose names begin with `prefix`, by the rest of their names. */
export function weightsUnder(weights, prefix) {
  const entries = [...weights].filter(([name]) => name.startsWith(prefix));
  return new Map(entries.map(([name, weight]) => [name.slice(prefix.length), weight]));
}

/* linear and layerNorm by the name of their weights. */
export function project(x, weights, name) {
  return linear(x, weights.get(`${name}.weight`), weights.get(`${name}.bias`));
}

export function normalize(x, weights, name, eps) {
  return layerNorm(x, weights.get(`${name}.weight`), weights.get(`${name}.bias`), eps);
}

/* The activation functions by the names that configs give them. */
export const ACTIVATIONS = {
  relu: (x) => x.map((value) => Math.max(value, 0)),
  gelu: (x) => x.map((value) => 0.5 * value * (1 + erf(value * Math.SQRT1_2))),
  gelu_tanh: (x) =>
    x.map((value) => 0.5 * value * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * value * (1 + 0.044715 * value * value)))),
};

/* The error function, to 1.5e-7 (Abramowitz & Stegun 1964, formula 7.1.26). */
export function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return Math.sign(x) * (1 - poly * Math.exp(-x * x));
}
