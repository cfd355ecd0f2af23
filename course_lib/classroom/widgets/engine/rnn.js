/* Recurrent networks, one step after another: course_lib/functional/recurrent.py. Elman 1990. */
import { linear } from "./tensor.js";

/* The embedding of a model and the weights and biases of its only layer: W and b for x_t, U and d for h_(t-1). */
function layerOf(weights) {
  const named = (name) => weights.get(`rnn.cells.0.${name}`);
  const [W, U, b, d] = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"].map(named);
  return { table: weights.get("token_embed.weight"), W, U, b, d };
}

/* The states h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh) of a model's only layer after each id, from h_0 = 0. */
export function rnnStates(weights, ids) {
  const { table, W, U, b, d } = layerOf(weights);
  const width = table.shape[1], states = [];
  let h = new Float32Array(U.shape[1]);
  for (const id of ids) {
    const input = linear(table.data.subarray(id * width, (id + 1) * width), W, b), before = linear(h, U, d);
    states.push(h = input.map((value, i) => Math.tanh(value + before[i])));
  }
  return states;
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

/* The cell states C_t = f C_(t-1) + i g of an LSTM's only layer after each id, with h_t = o tanh(C_t), from zero.
   Hochreiter & Schmidhuber 1997; Gers et al. 2000. */
export function lstmCells(weights, ids) {
  const { table, W, U, b, d } = layerOf(weights);
  const width = table.shape[1], size = U.shape[1], cells = [];
  let h = new Float32Array(size), c = new Float32Array(size);
  for (const id of ids) {
    const input = linear(table.data.subarray(id * width, (id + 1) * width), W, b), before = linear(h, U, d);
    const gate = (number, j) => input[number * size + j] + before[number * size + j];
    c = c.map((old, j) => sigmoid(gate(1, j)) * old + sigmoid(gate(0, j)) * Math.tanh(gate(2, j)));
    h = c.map((now, j) => sigmoid(gate(3, j)) * Math.tanh(now));
    cells.push(c);
  }
  return cells;
}
