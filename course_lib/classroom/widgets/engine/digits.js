/* A drawing made to look like the digits that a network was trained on: course_lib/classroom/widgets/digits.py.

   All images are square, with pixels from 0 to 1. */

const SIDE = 28, MOST_HIGH = 23.4, MOST_WIDE = 20;  // pixels of an image, and of the digit in it
const INK = 178;  // the sum of a training digit's pixels
const EDGE = Math.fround(0.4);  // from here on a pixel belongs to the digit; rounded as the pixels are

/* A drawing of N x N pixels -> 28 x 28: white on black, in the middle, as tall and as bold as the training digits. */
export function asDigit(drawing) {
  const side = Math.sqrt(drawing.length), at = (row, column) => drawing[row * side + column];
  let border = 0;
  for (let i = 0; i < side; i++) border += at(0, i) + at(side - 1, i) + at(i, 0) + at(i, side - 1);
  const ink = border > 2 * side ? drawing.map((value) => 1 - value) : drawing;  // dark ink on bright paper
  return ink.some((value) => value > EDGE) ? bolder(centred(ink, side)) : new Float32Array(SIDE * SIDE);
}

/* The digit's box in the middle, at the training digits' height; bilinear interpolation, zeros outside. */
function centred(ink, side) {
  const inked = Array.from(ink.keys()).filter((i) => ink[i] > EDGE);
  const [left, right, top, bottom] = [(i) => i % side, (i) => Math.floor(i / side)].flatMap((coordinate) => {
    const found = inked.map(coordinate);
    return [Math.min(...found), Math.max(...found) + 1];
  });
  const scale = Math.min(MOST_HIGH / (bottom - top), MOST_WIDE / (right - left));
  const source = (i, low, high) => (i + 0.5 - SIDE / 2) / scale + (low + high) / 2 - 0.5;
  const pixel = (x, y) => (x >= 0 && x < side && y >= 0 && y < side ? ink[y * side + x] : 0);
  return Float32Array.from({ length: SIDE * SIDE }, (_, i) => {
    const x = source(i % SIDE, left, right), column = Math.floor(x), dx = x - column;
    const y = source(Math.floor(i / SIDE), top, bottom), row = Math.floor(y), dy = y - row;
    const upper = (1 - dx) * pixel(column, row) + dx * pixel(column + 1, row);
    return (1 - dy) * upper + dy * ((1 - dx) * pixel(column, row + 1) + dx * pixel(column + 1, row + 1));
  });
}

/* Strokes so thick or thin that there is as much ink as in a training digit. */
function bolder(picture) {
  const bell = [-3, -2, -1, 0, 1, 2, 3].map((i) => Math.exp(-(i ** 2) / 2)), sum = bell.reduce((a, b) => a + b);
  const soft = eachAxis(picture, SIDE, SIDE, (i) => bell.map((weight, k) => [i + k - 3, weight / sum]));
  const withEdge = (edge) => soft.map((value) => Math.min(Math.max((value - edge) * 5 + 0.5, 0), 1));
  let low = 0, high = 1, bold;
  for (let step = 0; step < 12; step++) {  // where the edge has to be, by halving
    const edge = (low + high) / 2;
    bold = withEdge(edge);
    if (bold.reduce((a, b) => a + b) > INK) low = edge;
    else high = edge;
  }
  return bold;
}

/* An image of another size: each pixel the mean of those that it covers, as torch's "area". */
export function resizeByArea(image, size) {
  const side = Math.sqrt(image.length);
  return eachAxis(image, side, size, (i) => {
    const first = Math.floor((i * side) / size), end = Math.ceil(((i + 1) * side) / size);
    return Array.from({ length: end - first }, (_, k) => [first + k, 1 / (end - first)]);
  });
}

/* An image of another size, interpolated linearly, as torch's "bilinear" with antialias=True. */
export function resizeSmoothly(image, size) {
  const side = Math.sqrt(image.length), scale = Math.max(side / size, 1);
  return eachAxis(image, side, size, (i) => {
    const middle = ((i + 0.5) * side) / size - 0.5, all = Array.from({ length: side }, (_, k) => k);
    const near = all.map((k) => [k, 1 - Math.abs(k - middle) / scale]).filter(([, weight]) => weight > 0);
    const sum = near.reduce((total, [, weight]) => total + weight, 0);
    return near.map(([k, weight]) => [k, weight / sum]);
  });
}

/* Weighted sums along rows and then along columns: weightsOf(i) lists [index, weight] for the new pixel i. */
function eachAxis(image, side, size, weightsOf) {
  const along = (pixels) => {  // each row gets its new length, and becomes a column
    const rows = pixels.length / side, result = new Float32Array(size * rows);
    for (let i = 0; i < size; i++)
      for (const [k, weight] of weightsOf(i).filter(([k]) => k >= 0 && k < side))
        for (let row = 0; row < rows; row++) result[i * rows + row] += weight * pixels[row * side + k];
    return result;
  };
  return along(along(image));
}
