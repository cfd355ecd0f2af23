/* Byte-pair encoding on the letters of one text, at each number of merges: lessons/lesson_06/merging.py.
   Sennrich et al. 2016. */
import { splitAtPunctuation } from "./words.js";

export const WORD_END = "</w>";
const MOST_MERGES = 200;

/* A word in letters, the last one marked. */
const pieces = (word) => [...word].map((letter, i, all) => (i + 1 < all.length ? letter : letter + WORD_END));
const pairKey = (left, right) => `${left} ${right}`;  // no token has a space

function withPairJoined(parts, [left, right]) {
  const made = [];
  for (let i = 0; i < parts.length; i++) {
    made.push(parts[i] === left && parts[i + 1] === right ? left + parts[++i] : parts[i]);
  }
  return made;
}

/* How often two tokens are neighbours: "left right" -> [count, left, right]. */
function neighbours(words, counts) {
  const found = new Map();
  words.forEach((parts, n) => {
    for (let i = 0; i + 1 < parts.length; i++) {
      const key = pairKey(parts[i], parts[i + 1]), entry = found.get(key) ?? [0, parts[i], parts[i + 1]];
      found.set(key, entry);
      entry[0] += counts[n];
    }
  });
  return found;
}

/* The merges that a text teaches, and itself after each number of them. */
export class Merging {
  constructor(text) {
    this.words = splitAtPunctuation(text);
    this.letters = [...this.words.join("")].length;
    this.counts = new Map();
    for (const word of this.words) this.counts.set(word, (this.counts.get(word) ?? 0) + 1);
    let words = [...this.counts.keys()].map(pieces);
    const used = new Set(words.flat()), inText = new Set(this.words.join(""));
    const letters = [...inText].sort((a, b) => a.codePointAt(0) - b.codePointAt(0));
    this.start = new Set([...letters, ...letters.map((letter) => letter + WORD_END).filter((end) => used.has(end))]);
    this.ranks = new Map();
    this.merges = [];
    const ids = new Map([...this.start].map((token, id) => [token, id])), most = ids.size + MOST_MERGES;
    const times = [...this.counts.values()], order = ([, left, right]) => [ids.get(left), ids.get(right)];
    const earlier = ([a, b], [c, d]) => a - c || b - d;  // of pairs that are equally frequent
    while (ids.size < most) {
      const first = (one, other) => other[0] - one[0] || earlier(order(one), order(other));
      const pairs = [...neighbours(words, times).values()];
      const best = pairs.reduce((one, other) => (first(one, other) <= 0 ? one : other), [1]);
      if (best[0] < 2) break;
      const pair = best.slice(1), key = pairKey(...pair), joined = pair.join("");
      if (!this.ranks.has(key)) this.ranks.set(key, this.merges.push(pair) - 1);
      if (!ids.has(joined)) ids.set(joined, ids.size);
      words = words.map((parts) => withPairJoined(parts, pair));
    }
    this.cuts = [];
  }

  /* A word in tokens; null is a letter that the text does not have. The pair that was learned first is joined first. */
  cut(word, merges) {
    const parts = pieces(word).map((piece) => (this.start.has(piece) ? piece : null));
    for (;;) {
      let rank = merges, at = 0;
      for (let i = 0; i + 1 < parts.length; i++) {
        const found = this.ranks.get(pairKey(parts[i], parts[i + 1])) ?? merges;
        if (found < rank) [rank, at] = [found, i];
      }
      if (rank === merges) return parts;
      parts.splice(at, 2, parts[at] + parts[at + 1]);
    }
  }

  /* After so many merges: { parts: word -> tokens, tokens: how many in the text, size: of the vocabulary, pairs }. */
  at(merges) {
    if (this.cuts[merges]) return this.cuts[merges];
    const parts = new Map([...this.counts.keys()].map((word) => [word, this.cut(word, merges)]));
    const times = [...this.counts.values()];
    const tokens = [...parts.values()].reduce((sum, cut, i) => sum + cut.length * times[i], 0);
    const size = new Set([...this.start, ...this.merges.slice(0, merges).map((pair) => pair.join(""))]).size;
    return (this.cuts[merges] = { parts, tokens, size, pairs: neighbours([...parts.values()], times) });
  }

  count(pair, merges) { return this.at(merges).pairs.get(pairKey(...pair))[0]; }
}
