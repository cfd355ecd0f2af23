/* Reads the weights of a checkpoint; its config and tokenizers come as JSON, see course_lib/site/models.py.

   The format: eight bytes with the length of the header, the header as JSON, then the numbers, all little-endian. */

const INTO_FLOATS = {
  F32: (bytes) => new Float32Array(bytes),
  F16: (bytes) => lookedUp(new Uint16Array(bytes), halfValues()),
  BF16: (bytes) => fromBfloat16(new Uint16Array(bytes)),
  I64: (bytes) => Float32Array.from(new BigInt64Array(bytes), Number),
};

/* Map of name -> { shape, data: Float32Array }. Throws a RangeError for a type of number that no checkpoint has. */
export function readSafetensors(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true)), start = 8 + length;
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const tensors = new Map();
  for (const [name, { dtype, shape, data_offsets }] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    if (!(dtype in INTO_FLOATS)) throw new RangeError(`${name} has numbers of type ${dtype}`);
    const [first, last] = data_offsets;
    tensors.set(name, { shape, data: INTO_FLOATS[dtype](buffer.slice(start + first, start + last)) });
  }
  return tensors;
}

function lookedUp(codes, values) {
  const floats = new Float32Array(codes.length);
  for (let i = 0; i < codes.length; i++) floats[i] = values[codes[i]];
  return floats;
}

function fromBfloat16(codes) {
  const bits = new Uint32Array(codes.length);  // a bfloat16 is the upper half of a float32
  for (let i = 0; i < codes.length; i++) bits[i] = codes[i] << 16;
  return new Float32Array(bits.buffer);
}

let halves = null;

/* The value of each of the 65,536 half-precision numbers (IEEE 754: 1 sign, 5 exponent and 10 fraction bits). */
function halfValues() {
  if (halves) return halves;
  halves = new Float32Array(1 << 16);
  for (let code = 0; code < halves.length; code++) {
    const sign = code >> 15 ? -1 : 1, exponent = (code >> 10) & 31, fraction = code & 1023;
    if (exponent === 0) halves[code] = sign * fraction * 2 ** -24;
    else if (exponent === 31) halves[code] = fraction ? NaN : sign * Infinity;
    else halves[code] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return halves;
}
