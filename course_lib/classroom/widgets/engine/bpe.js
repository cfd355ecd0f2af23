/* Byte-level byte-pair encoding, as GPT-2's: course_lib/text/bpe.py. Radford et al. 2019, section 2.2. */

import { Tokenizer } from "./tokenizer.js";

/* A word takes the space before it along; letters, digits and signs stay apart. JavaScript's \s is not Python's. */
const GPT2_WORD = new RegExp(
  [
    "'s|'t|'re|'ve|'m|'ll|'d",
    " ?\\p{L}+| ?\\p{N}+| ?[^\\p{White_Space}\\p{L}\\p{N}]+",
    "\\p{White_Space}+(?!\\P{White_Space})|\\p{White_Space}+",
  ].join("|"),
  "gu",
);

export class ByteLevelBPE extends Tokenizer {
  constructor(state) {
    super(state);
    this.rules = new Map();  // a pair of ids, as one number -> which merge it is, and the id of both joined
    state.merges.forEach(([left, right], rank) => {
      this.rules.set(this.pair(this.ids.get(left), this.ids.get(right)), { rank, id: this.ids.get(left + right) });
    });
    this.letters = byteLetters();
    this.bytes = new Map(this.letters.map((letter, byte) => [letter, byte]));
  }

  pair(left, right) {
    return left * this.vocabulary.length + right;
  }

  encodePlain(text) {
    return (text.match(GPT2_WORD) ?? []).flatMap((word) => this.encodeWord(word));
  }

  /* The bytes of a word in UTF-8; then the pair that was learned first, the leftmost of several, is joined until no
     pair is left. A surrogate without its partner, which is no character, becomes U+FFFD. */
  encodeWord(word) {
    const ids = Array.from(new TextEncoder().encode(word), (byte) => this.ids.get(this.letters[byte]));
    for (;;) {
      let first = null, at = 0;
      for (let i = 0; i + 1 < ids.length; i++) {
        const rule = this.rules.get(this.pair(ids[i], ids[i + 1]));
        if (rule && (!first || rule.rank < first.rank)) [first, at] = [rule, i];
      }
      if (!first) return ids;
      ids.splice(at, 2, first.id);
    }
  }

  /* Bytes that are no UTF-8, as half a character's, become U+FFFD. */
  join(tokens) {
    const bytes = tokens.flatMap((token) => {
      if (this.specials.has(token)) return [...new TextEncoder().encode(token)];
      return Array.from(token, (letter) => this.bytes.get(letter));
    });
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
  }
}

/* GPT-2's letter for each byte: itself where that is a printable one of Latin-1, else from U+0100 on in turn. */
export function byteLetters() {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) =>
    String.fromCodePoint(/[!-~¡-¬®-ÿ]/.test(String.fromCharCode(byte)) ? byte : next++),
  );
}
