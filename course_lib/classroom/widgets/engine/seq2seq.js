/* The recurrent translators of lesson 05: course_lib/models/seq2seq.py, with scaled attention or one fixed vector.

   Bahdanau, Cho & Bengio, "Neural machine translation by jointly learning to align and translate", 2015. */

import { add, argmax, concat, dot, gather, linear, project, softmaxRows } from "./tensor.js";
import { tokenizeEnglish } from "./words.js";

export class Seq2Seq {
  /* weights of readSafetensors, config as in `Seq2SeqConfig`. */
  constructor(weights, config) {
    if (config.attention !== "none" && !(config.attention === "scaled" && config.looks_first))
      throw new RangeError(`attention ${config.attention} is not among those that can be computed here`);
    this.weights = weights;
    this.config = config;
    this.attends = config.attention !== "none";
    this.decoder = this.attends ? "decoder.gru" : "decoder.gru.cells.0";
  }

  /* The sentence read from both ends: annotations h_j = [forward h_j; backward h_j], section 3.2. */
  encode(ids) {
    const x = gather(this.weights.get("source_embed.weight"), ids), size = x.length / ids.length;
    const words = ids.map((_, j) => x.subarray(j * size, (j + 1) * size));
    const forward = this.scan("encoder.cells.0", words);
    const backward = this.scan("encoder.cells.1", words.reverse()).reverse();
    const annotations = concat(...forward.map((h, j) => concat(h, backward[j])));
    const keys = this.attends ? linear(annotations, this.weights.get("decoder.attention.W")) : null;  // W h_j
    return { annotations, keys, length: ids.length, summary: concat(forward.at(-1), backward[0]) };
  }

  /* The states of a GRU after each of the inputs. */
  scan(name, inputs) {
    let h = new Float32Array(this.config.encoder_dim);
    return inputs.map((x) => (h = gruStep(x, h, this.weights, name)));
  }

  /* s_0 = tanh(W_s c). */
  start(source) {
    return project(source.summary, this.weights, "initial_state").map(Math.tanh);
  }

  /* Weights a_j = softmax_j(s^T W h_j / sqrt(d)) and context c = sum_j a_j h_j; one fixed c without attention. */
  look(state, { annotations, keys, length, summary }) {
    if (!this.attends) return { context: summary, weights: null };
    const size = summary.length, scale = 1 / Math.sqrt(size), context = new Float32Array(size);
    const score = (_, j) => scale * dot(state, 0, keys, j * state.length, state.length);
    const weights = softmaxRows(Float32Array.from({ length }, score));
    for (let j = 0; j < length; j++)
      for (let i = 0; i < size; i++) context[i] += weights[j] * annotations[j * size + i];
    return { context, weights };
  }

  /* One word of the target: s_i = GRU(s_{i-1}, [y_{i-1}; c_i]) and the logits (V,) of y_i. */
  step(word, state, source) {
    const embedded = gather(this.weights.get("target_embed.weight"), [word]);
    const { context, weights } = this.look(state, source);
    state = gruStep(concat(embedded, context), state, this.weights, this.decoder);
    const features = project(concat(state, embedded, context), this.weights, "readout.0").map(Math.tanh);
    return { logits: project(features, this.weights, "readout.2"), state, weights };
  }

  /* Greedy decoding until the end sign, which is left out: ids and for each the weights (T_k,) over the source. */
  greedyDecode(ids, maxLength = 60) {
    const source = this.encode(ids), words = [], weights = [];
    for (let state = this.start(source), word = this.config.start_id; words.length < maxLength; ) {
      const step = this.step(word, state, source);
      [word, state] = [argmax(step.logits), step.state];
      if (word === this.config.end_id) break;
      words.push(word);
      weights.push(step.weights);
    }
    return { ids: words, weights: this.attends ? weights : null };
  }
}

/* r, z = sigmoid(W x + U h), n = tanh(W_n x + r U_n h), and the new state (1 - z) n + z h: Cho et al. 2014, (5)-(8). */
export function gruStep(x, h, weights, name) {
  const get = (kind) => weights.get(`${name}.${kind}`), size = h.length;
  const wx = linear(x, get("weight_ih"), get("bias_ih")), uh = linear(h, get("weight_hh"), get("bias_hh"));
  const gates = add(wx.subarray(0, 2 * size), uh.subarray(0, 2 * size)).map((value) => 1 / (1 + Math.exp(-value)));
  return h.map((old, i) => {
    const r = gates[i], z = gates[size + i], n = Math.tanh(wx[2 * size + i] + r * uh[2 * size + i]);
    return (1 - z) * n + z * old;
  });
}

/* One English sentence as typed: its words (source), the French ones (target), weights as in greedyDecode, and the
   source words that the model has never seen (unknown). Throws a RangeError for a text without a word. */
export function translate(model, english, french, text) {
  const source = tokenizeEnglish(text);
  if (!source.length) throw new RangeError("There is no word to translate: type an English sentence.");
  const { ids, weights } = model.greedyDecode(english.encode(source.join(" ")), 2 * source.length + 10);
  const unknown = [...new Set(source)].filter((word) => !english.ids.has(word));
  return { source, target: ids.map((id) => french.token(id)), weights, unknown };
}
