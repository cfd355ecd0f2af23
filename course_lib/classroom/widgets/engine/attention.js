/* What every Transformer of the course is stacked from (course_lib/layers/transformer.py).

   Vaswani et al., "Attention is all you need", 2017. */

import { ACTIVATIONS, add, dot, normalize, project, softmaxRows, weightsUnder } from "./tensor.js";

/* softmax(Q K^T / sqrt(d)) V for each head, eq. (1): q (T_q, H d), k and v (T_k, H d) -> output (T_q, H d) and weights
   (H, T_q, T_k). mask(query, key) says which keys a query may attend to, one at least. */
export function attention(q, k, v, { dim, numHeads, mask = () => true }) {
  const size = dim / numHeads, numQueries = q.length / dim, numKeys = k.length / dim, scale = 1 / Math.sqrt(size);
  const scores = new Float32Array(numHeads * numQueries * numKeys).fill(-Infinity);
  for (let h = 0, at = 0; h < numHeads; h++)
    for (let i = 0; i < numQueries; i++)
      for (let j = 0; j < numKeys; j++, at++)
        if (mask(i, j)) scores[at] = scale * dot(q, i * dim + h * size, k, j * dim + h * size, size);
  const weights = softmaxRows(scores, numKeys), output = new Float32Array(q.length);
  for (let h = 0, at = 0; h < numHeads; h++)
    for (let i = 0; i < numQueries; i++)
      for (let j = 0; j < numKeys; j++, at++)
        for (let c = h * size; c < (h + 1) * size; c++) output[i * dim + c] += weights[at] * v[j * dim + c];
  return { output, weights };
}

/* Query i may attend to the keys up to its own position, the last query standing at the last key. */
export function causalMask(numQueries, numKeys) {
  return (query, key) => key <= query + numKeys - numQueries;
}

/* W_2 act(W_1 x + b_1) + b_2 at each position, eq. (2). */
export function feedForward(x, weights, activation) {
  return project(ACTIVATIONS[activation](project(x, weights, "ffn.up_proj")), weights, "ffn.down_proj");
}

export class MultiHeadAttention {
  constructor(weights, name, { dim, numHeads }) {
    this.weights = weightsUnder(weights, `${name}.`);
    this.dim = dim;
    this.numHeads = numHeads;
  }

  /* The keys and values (T_k, D) of a context. */
  keysValues(context) {
    return [project(context, this.weights, "k_proj"), project(context, this.weights, "v_proj")];
  }

  /* Each row of x attends to these keys and values, section 3.2.2. */
  attend(x, [keys, values], mask) {
    const { output, weights } = attention(project(x, this.weights, "q_proj"), keys, values, { ...this, mask });
    return { output: project(output, this.weights, "o_proj"), weights };
  }
}

/* Self-attention, then the feed-forward network, each with a residual path and a norm. */
export class TransformerBlock {
  constructor(weights, name, { dim, num_heads, activation, norm_eps, pre_norm = true }) {
    this.weights = weightsUnder(weights, `${name}.`);
    this.attn = new MultiHeadAttention(this.weights, "attn", { dim, numHeads: num_heads });
    this.activation = activation;
    this.eps = norm_eps;
    this.preNorm = pre_norm;
  }

  /* x (T, D) -> { x: (T, D), weights: (H, T, T_k) }; `remember` may keep keys and values, and give more of them. */
  forward(x, { mask, remember = (keysValues) => keysValues } = {}) {
    const norm1 = (h) => normalize(h, this.weights, "norm1", this.eps);
    const norm2 = (h) => normalize(h, this.weights, "norm2", this.eps);
    const h = this.preNorm ? norm1(x) : x;
    const { output, weights } = this.attn.attend(h, remember(this.attn.keysValues(h)), mask);
    x = add(x, output);
    if (this.preNorm) return { x: add(x, feedForward(norm2(x), this.weights, this.activation)), weights };
    x = norm1(x);
    return { x: norm2(add(x, feedForward(x, this.weights, this.activation))), weights };
  }
}
