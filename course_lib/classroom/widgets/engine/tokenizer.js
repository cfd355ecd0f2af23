/* What every tokenizer of the course offers (course_lib/text/tokenizer.py). */

export class Tokenizer {
  /* The state is what `state_dict` of the same tokenizer in Python gives; a checkpoint keeps it in its metadata. */
  constructor({ vocabulary, specials }) {
    this.vocabulary = vocabulary;
    this.ids = new Map(vocabulary.map((token, id) => [token, id]));
    this.specials = new Set(specials);
    const longestFirst = [...specials].sort((a, b) => b.length - a.length);
    this.specialPattern = new RegExp(longestFirst.map(escaped).join("|") || "(?!)", "gu");  // (?!) is nowhere
  }

  /* The ids of a text. With `specials`, special tokens that are written in it become their ids. */
  encode(text, { specials = true } = {}) {
    let ids = [], done = 0;
    for (const match of specials ? text.matchAll(this.specialPattern) : []) {
      ids = ids.concat(this.encodePlain(text.slice(done, match.index)), this.ids.get(match[0]));
      done = match.index + match[0].length;
    }
    return ids.concat(this.encodePlain(text.slice(done)));
  }

  /* The text of ids, on request without special tokens. Throws a RangeError for an id outside the vocabulary. */
  decode(ids, { stripSpecials = false } = {}) {
    const tokens = [...ids].map((id) => this.token(id));
    return this.join(stripSpecials ? tokens.filter((token) => !this.specials.has(token)) : tokens);
  }

  /* A text in pieces, as they stand in the vocabulary. */
  tokens(text) {
    return this.encode(text).map((id) => this.vocabulary[id]);
  }

  token(id) {
    if (!(id in this.vocabulary)) throw new RangeError(`ids run from 0 to ${this.vocabulary.length - 1}, got ${id}`);
    return this.vocabulary[id];
  }
}

function escaped(text) {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
