/* Views of images: pixels, patches to hide with a brush, and a pad to draw on. */
import { node, figure, button, draggable, paintable, plain } from "./kit.js";

/* The bytes that Python writes in base64. */
export const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/* Draw numbers from 0 (black) to 1 (white) on a canvas that has a pixel for each of them. */
export function paintPixels(canvas, pixels) {
  const context = canvas.getContext("2d"), drawn = context.createImageData(canvas.width, canvas.height);
  pixels.forEach((value, i) => drawn.data.fill(Math.round(255 * Math.min(1, Math.max(0, value))), 4 * i, 4 * i + 3).fill(255, 4 * i + 3, 4 * i + 4));
  context.putImageData(drawn, 0, 0);
}

/* Draw colours [red, green, blue], from 0 to 255. */
export function paintColours(canvas, colours) {
  const context = canvas.getContext("2d"), drawn = context.createImageData(canvas.width, canvas.height);
  colours.forEach((colour, i) => drawn.data.set([...colour, 255], 4 * i));
  context.putImageData(drawn, 0, 0);
}

export const canvasOf = (side, more = {}) => node("canvas", { class: "play-pixels", width: side, height: side, ...more });

/* A grey image of side x side pixels. */
export function pixelImage({ label, side }) {
  const canvas = canvasOf(side, { role: "img", "aria-label": label });
  return { ...figure(label, canvas), show(pixels) { paintPixels(canvas, pixels); } };
}

/* An image in grid x grid patches, which a stroke hides or shows: `painted` as in `heatMap`, where a patch is painted when
   it is hidden. `show(pixels, hidden)` takes a truth value for each patch; a shadow of what is hidden is left. */
export function patchBrush({ label, side, grid, painted }) {
  const canvas = canvasOf(side), places = [...Array(grid).keys()];
  const square = (i, j) => node("div", { role: "gridcell", "data-at": `${i} ${j}`, tabindex: i + j ? -1 : 0 });
  const squares = places.map((i) => places.map((j) => square(i, j)));
  const cover = node("div", { class: "play-cover", role: "grid", "aria-label": label, style: `--grid: ${grid}` },
    ...squares.map((cells) => node("div", { role: "row" }, ...cells)));
  const place = (target) => (cover.contains(target) && target.closest("[data-at]")?.dataset.at.split(" ").map(Number)) || null;
  paintable(cover, squares, place, () => {}, painted);
  return {
    ...figure(label, node("div", { class: "play-patches" }, canvas, cover)),
    show(pixels, hidden) {
      paintPixels(canvas, pixels);
      squares.flat().forEach((cell, i) => {
        cell.classList.toggle("off", hidden[i]);
        cell.setAttribute("aria-selected", `${hidden[i]}`);
        cell.setAttribute("aria-label", `patch ${i + 1}, ${hidden[i] ? "hidden" : "visible"}`);
      });
    },
  };
}

/* A drawing of size x size bytes with one more line: round ends, and an edge one pixel wide. */
export function withLine(drawing, size, brush, [ax, ay], [bx, by]) {
  const dx = bx - ax, dy = by - ay, long = dx * dx + dy * dy;
  return drawing.map((ink, i) => {
    const px = (i % size) + 0.5 - ax, py = Math.floor(i / size) + 0.5 - ay;
    const t = long ? Math.min(1, Math.max(0, (px * dx + py * dy) / long)) : 0;
    const full = brush / 2 + 0.5 - Math.hypot(px - t * dx, py - t * dy);
    return Math.max(ink, Math.round(255 * Math.min(1, Math.max(0, full))));
  });
}

/* A pad of size x size pixels to draw on with a pointer or the keyboard. `changed(drawing, settled)` gets its bytes, from
   0 (paper) to 255 (ink); `show` draws such bytes. */
export function drawingPad({ label, size, brush, changed }) {
  const canvas = canvasOf(size, { tabindex: 0, role: "application", "aria-label": `${label}. Arrow keys move the cursor, space paints, shift and an arrow key paint a line.` });
  const cursor = node("div", { class: "play-cursor", hidden: true });
  const undo = button({ text: "Undo", clicked: () => before.length && changed(before.pop(), true) });
  const clear = button({ text: "Clear", clicked: () => { remember(); changed(new Uint8Array(size * size), true); } });
  let shown = null, last = null, at = [size >> 1, size >> 1];
  const before = [], remember = () => { before.push(shown); before.splice(0, before.length - 50); };
  const middle = () => at.map((place) => place + 0.5);

  draggable(canvas, (event, first) => {
    const box = canvas.getBoundingClientRect(), passed = event.getCoalescedEvents?.() ?? [];
    if (first) { remember(); last = null; canvas.focus({ preventScroll: true, focusVisible: false }); }
    let drawing = shown;
    for (const { clientX, clientY } of passed.length ? passed : [event]) {
      const to = [((clientX - box.left) / box.width) * size, ((clientY - box.top) / box.height) * size];
      drawing = withLine(drawing, size, brush, last ?? to, to);
      last = to;
    }
    changed(drawing, false);
  }, () => changed(shown, true));
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    if (!(by || event.key === " ") || !plain(event)) return;
    event.preventDefault();
    event.stopPropagation();
    const from = middle();
    if (by) at = at.map((place, i) => Math.min(size - 1, Math.max(0, place + by[i])));
    cursor.style.cssText = `left: ${(100 * at[0]) / size}%; top: ${(100 * at[1]) / size}%; width: ${100 / size}%`;
    cursor.hidden = false;
    if (by && !event.shiftKey) return;
    remember();
    changed(withLine(shown, size, brush, from, middle()), true);
  });
  const content = node("div", {}, node("div", { class: "play-patches" }, canvas, cursor), node("div", { class: "play-buttons" }, undo.root, clear.root));
  return {
    ...figure(label, content),
    show(drawing) {
      shown = drawing;
      paintPixels(canvas, Float32Array.from(drawing, (ink) => ink / 255));
    },
  };
}

const CIVIDIS = [[0, 34, 78], [67, 78, 108], [125, 124, 120], [188, 175, 111], [254, 232, 56]];

/* The colour of a number from 0 (dark) to 1 (bright). */
export function cividis(value) {
  const at = Math.min(value * 4, 3.999), low = Math.floor(at);
  return CIVIDIS[low].map((from, k) => Math.round(from + (CIVIDIS[low + 1][k] - from) * (at - low)));
}

/* Maps of grid x grid patches, one large or many in a square: in each, the largest number is brightest, and hidden patches
   are white. */
export function patchMaps({ label, grid }) {
  const root = node("div", { class: "play-maps", role: "img" });
  return {
    ...figure(label, root),
    show(maps, hidden) {
      root.style.setProperty("--columns", Math.ceil(Math.sqrt(maps.length)));
      while (root.children.length < maps.length) root.append(canvasOf(grid));
      while (root.children.length > maps.length) root.lastChild.remove();
      maps.forEach((values, n) => {
        const most = Math.max(...values, 1e-9);
        paintColours(root.children[n], Array.from(values, (value, i) => (hidden[i] ? [255, 255, 255] : cividis(value / most))));
      });
      const [first] = maps, most = first.indexOf(Math.max(...first));
      root.setAttribute("aria-label", maps.length > 1 ? `${label}, ${maps.length} heads` : `${label}: ${first[most] ? `most at patch ${most + 1}` : "no patch is left"}`);
    },
  };
}

function paintMap(canvas, numbers) {
  const most = Math.max(...numbers, 1e-9);
  paintColours(canvas, Array.from(numbers, (value) => cividis(Math.max(value, 0) / most)));
}

/* Rows of square maps, with words above each row: `sides` has the pixels a side of each row's maps, and `show(rows, texts)`
   takes their numbers; in each map the largest is brightest, unless another `paint` is given. */
export function mapRows({ label, sides, captions, paint = paintMap }) {
  const maps = sides.map((row) => row.map((side) => canvasOf(side))), texts = captions.map((text) => node("div", {}, text));
  const rows = maps.map((row, i) => node("div", {}, texts[i], node("div", { class: "play-maps", style: `--columns: ${row.length}` }, ...row)));
  return {
    ...figure(label, node("div", { class: "play-map-rows", role: "img", "aria-label": label }, ...rows)),
    show(numbers, words = []) {
      words.forEach((text, i) => { texts[i].textContent = text; });
      maps.forEach((row, i) => row.forEach((canvas, j) => paint(canvas, numbers[i][j])));
    },
  };
}
