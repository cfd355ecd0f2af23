/* From logits to a token: course_lib/functional/sampling.py. -Infinity marks what may not be drawn. */

const descending = (logits) => [...logits.keys()].sort((a, b) => logits[b] - logits[a] || a - b);

export function softmaxOf(logits) {
  const most = logits.reduce((a, b) => Math.max(a, b)), powers = Float64Array.from(logits, (z) => Math.exp(z - most));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
}

/* The k most probable tokens, and those that tie with the last of them; k = 0 leaves all. */
export function topK(logits, k) {
  if (!k || k >= logits.length) return logits;
  const least = logits[descending(logits)[k - 1]];
  return logits.map((z) => (z < least ? -Infinity : z));
}

/* The nucleus: the fewest tokens whose probabilities sum to p or more; p = 1 leaves all. */
export function topP(logits, p) {
  if (p >= 1) return logits;
  const probs = softmaxOf(logits), kept = new Set();
  let sum = 0;
  for (const token of descending(logits)) {
    if (sum >= p) break;
    kept.add(token);
    sum += probs[token];
  }
  return logits.map((z, token) => (kept.has(token) ? z : -Infinity));
}

/* The probabilities after temperature, top-k and top-p, in this order. */
export function chances(logits, { temperature, topK: k, topP: p }) {
  return softmaxOf(topP(topK(Float64Array.from(logits, (z) => z / temperature), k), p));
}

/* The token on whose part of the line from 0 to 1 a number falls, the most probable token first. */
export function drawn(probs, number) {
  let sum = 0, last = 0;
  for (const token of descending(probs)) {
    if (!probs[token]) break;
    last = token;
    sum += probs[token];
    if (number < sum) break;
  }
  return last;
}

/* A number from 0 to 1 that depends on nothing but the seed and the position (splitmix32). */
export function randomAt(seed, position) {
  let z = (Math.imul(seed, 0x9e3779b9) + Math.imul(position + 1, 0x85ebca6b)) | 0;
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return ((z ^ (z >>> 15)) >>> 0) / 2 ** 32;
}

export const argmaxOf = (numbers) => numbers.reduce((best, value, i) => (value > numbers[best] ? i : best), 0);
