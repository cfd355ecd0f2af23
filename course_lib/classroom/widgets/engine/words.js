/* Each word a token: course_lib/text/words.py; and the words of the translation grammar: data/translation/text.py. */

import { Tokenizer } from "./tokenizer.js";

const AT_SPACE = /\P{White_Space}+/gu;
const LETTERS = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}";  // Python's \w
const AT_PUNCTUATION = new RegExp(`[${LETTERS}]+|[^${LETTERS}\\p{White_Space}]+`, "gu");

/* Runs of letters and digits, and runs of other signs: course_lib/text/splitting.py. */
export const splitAtPunctuation = (text) => text.match(AT_PUNCTUATION) ?? [];

export class WordTokenizer extends Tokenizer {
  constructor(state) {
    super(state);
    this.lower = state.lower;
    this.pattern = state.cut_punctuation ? AT_PUNCTUATION : AT_SPACE;
    this.unknown = this.ids.get(["<unk>", "[UNK]"].find((token) => this.specials.has(token)));
  }

  encodePlain(text) {
    const words = (this.lower ? text.toLowerCase() : text).match(this.pattern) ?? [];
    return words.map((word) => this.ids.get(word) ?? this.unknown);
  }

  join(tokens) {
    return tokens.join(" ");
  }
}

const CONTRACTIONS = {
  "won't": ["will", "not"],
  "can't": ["can", "not"],
  cannot: ["can", "not"],
  "he's": ["he", "is"],
  "she's": ["she", "is"],
  "they're": ["they", "are"],
};

/* Lower-case words with one full stop at the end: "They don't sign it!" gives they do not sign it . */
export function tokenizeEnglish(text) {
  const words = text.toLowerCase().replaceAll("’", "'").match(/[\p{L}\p{N}]+(?:'[\p{L}\p{N}]+)*/gu) ?? [];
  const tokens = words.flatMap((word) => {
    if (Object.hasOwn(CONTRACTIONS, word)) return CONTRACTIONS[word];
    if (word.endsWith("n't")) return [word.slice(0, -3), "not"];
    if (word.endsWith("'ll")) return [word.slice(0, -3), "will"];
    return [word];
  });
  return tokens.length ? [...tokens, "."] : [];
}

/* Text with the spaces of French: l' accord . becomes l'accord. */
export function detokenizeFrench(tokens) {
  const glued = (text, token) => !text || text.endsWith("'") || token === ".";
  return tokens.reduce((text, token) => text + (glued(text, token) ? token : ` ${token}`), "");
}
