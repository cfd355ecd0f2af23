/* The receptive field of a position that is dragged over an image, through windows that are shifted or not (lesson 12). */
import { stage, bars, choice, clamp, draggable, figure, node, plain, put } from "./kit.js";
import { bytesOf, canvasOf, paintPixels } from "./images.js";

const shiftOf = (block, { shifted }, { window }) => (shifted && block % 2 ? window / 2 : 0);

/* Where the windows of positions from `low` to `high` begin and end, in one direction; the border cuts windows off. */
function windowsAround([low, high], side, window, shift) {
  const begin = (at) => Math.floor((at - shift) / window) * window + shift;
  return [Math.max(begin(low), 0), Math.min(begin(high) + window, side) - 1];
}

/* What the position depends on at the input of each block and, last, the position: [[top, bottom], [left, right]]. */
export function receptiveFields(state, config) {
  const fields = [[[state.row, state.row], [state.column, state.column]]];
  for (let block = state.blocks - 1; block >= 0; block--) {
    const shift = shiftOf(block, state, config);
    fields.unshift(fields[0].map((range) => windowsAround(range, state.side, config.window, shift)));
  }
  return fields;
}

/* How many positions the receptive field has. */
export function receptiveSize(state, config) {
  return receptiveFields(state, config)[0].reduce((count, [low, high]) => count * (high - low + 1), 1);
}

export function receptiveGoals(config) {
  const size = (state) => receptiveSize(state, config);
  return [
    (state) => size(state) === 64,
    (state) => state.shifted && state.blocks === 2 && size(state) === 4,
    (state) => state.side === 4 && state.blocks === 2 && size(state) === 16,
  ];
}

const placeWords = ({ row, column, side }) => `${row * side + column + 1} (row ${row + 1}, column ${column + 1})`;

export function receptiveWords(state, config) {
  const { side, blocks, shifted } = state;
  return `Position ${placeWords(state)} of stage ${side === 8 ? 1 : 2}, windows ${shifted ? "shifted in every second block" : "never shifted"}: ` +
    `after ${blocks} block${blocks > 1 ? "s" : ""} its receptive field has ${receptiveSize(state, config)} of ${side * side} positions.`;
}

export function receptive({ root, config, kernel }) {
  const { size, most, window } = config, all = [...Array(most).keys()], start = { ...config.start };
  const canvas = canvasOf(size), veil = node("path", { class: "play-veil", "fill-rule": "evenodd" });
  const grid = node("path", { class: "play-lines thin" }), chosen = node("rect", { class: "play-chosen" });
  const image = node("svg", { class: "play-over", viewBox: `0 0 ${size} ${size}`, tabindex: 0, role: "slider", "aria-label": "Position", "aria-valuemin": 1 }, veil, grid, chosen);
  const coin = figure("Drag over the image: the receptive field of a position", node("div", { class: "play-patches" }, canvas, image));
  const maps = all.map(() => [node("rect", { class: "play-inside" }), node("path", { class: "play-lines" }), node("rect", { class: "play-chosen" })]);
  const drawn = maps.map((parts, block) => node("figure", {}, node("svg", { viewBox: `-1 -1 ${size + 2} ${size + 2}` }, ...parts), node("figcaption", {}, `block ${block + 1}`)));
  const inputs = figure("The windows of each block", node("div", { class: "play-maps", role: "img", "aria-label": "The windows of each block", style: "--columns: 2" }, ...drawn));
  const share = bars({ label: "Receptive field (% of the feature map)", names: all.map((block) => `${block + 1}`), low: 0, high: 100, ticks: [0, 25, 50, 75, 100], colour: "var(--weight)", digits: 0, height: 236 });

  const move = (row, column, settled) => change({ row: clamp(row, 0, state().side - 1), column: clamp(column, 0, state().side - 1) }, settled);
  draggable(image, (event) => {
    const box = image.getBoundingClientRect(), at = (place, low, long) => Math.floor(((place - low) / long) * state().side);
    move(at(event.clientY, box.top, box.height), at(event.clientX, box.left, box.width), false);
  }, () => change({}));
  image.addEventListener("keydown", (event) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by || !plain(event)) return;
    event.preventDefault();
    event.stopPropagation();
    move(state().row + by[0], state().column + by[1], true);
  });
  const controls = [
    choice({ label: "Blocks", options: all.map((block) => [`${block + 1}`, block + 1]), changed: (blocks) => change({ blocks }) }),
    choice({ label: "Blocks 2 and 4", options: config.shifts, changed: (shifted) => change({ shifted }) }),
    choice({
      label: "Stage", options: config.stages,
      changed: (side) => change({ side, row: Math.floor((state().row * side) / state().side), column: Math.floor((state().column * side) / state().side) }),
    }),
  ];

  const lines = (places) => places.map((at) => `M${at} 0V${size}M0 ${at}H${size}`).join("");
  const boxOf = ([[top, bottom], [left, right]], cell) => ({ x: left * cell, y: top * cell, width: (right - left + 1) * cell, height: (bottom - top + 1) * cell });

  function draw(now) {
    const cell = size / now.side, fields = receptiveFields(now, config), { x, y, width, height } = boxOf(fields[0], cell);
    put(veil, { d: `M0 0H${size}V${size}H0ZM${x} ${y}h${width}v${height}h${-width}Z` });
    put(grid, { d: lines([...Array(now.side + 1).keys()].map((at) => at * cell)) });
    put(chosen, boxOf(fields.at(-1), cell));
    put(image, { "aria-valuemax": now.side ** 2, "aria-valuenow": now.row * now.side + now.column + 1, "aria-valuetext": placeWords(now) });
    coin.note(`${receptiveSize(now, config)} of ${now.side ** 2} positions are in the receptive field of the orange one.`);
    maps.forEach(([inside, windows, output], block) => {
      const cuts = [...Array(now.side + 1).keys()].filter((at) => at % now.side === 0 || (at - shiftOf(block, now, config)) % window === 0);
      put(windows, { d: lines(cuts.map((at) => at * cell)) });
      drawn[block].classList.toggle("unused", block >= now.blocks);
      if (block >= now.blocks) return;
      put(inside, boxOf(fields[block], cell));
      put(output, boxOf(fields[block + 1], cell));
    });
    inputs.note("Orange: needed of the block's output; blue: of its input, the whole windows.");
    const counts = (shifted) => all.map((block) => (100 * receptiveSize({ ...now, shifted, blocks: block + 1 }, config)) / now.side ** 2);
    share.show(counts(now.shifted), counts(!now.shifted));
    share.note(`after so many blocks; dashed: ${now.shifted ? "without" : "with"} the shift`);
    controls[0].show(now.blocks);
    controls[1].show(now.shifted);
    controls[2].show(now.side);
  }

  const { build, change, state, remove } = stage({ root, config, kernel, start, goals: receptiveGoals(config), draw, words: (now) => receptiveWords(now, config) });
  paintPixels(canvas, Float32Array.from(bytesOf(config.image), (value) => value / 255));
  build([coin, inputs, share], controls);
  return remove;
}
