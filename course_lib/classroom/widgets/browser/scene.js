/* A scene of digits to drag, and what U-Nets with and without skips say of its pixels (lesson 14). */
import { stage, node, put, plain, choice, slider, draggable, clamp, fixed } from "./kit.js";
import { newest } from "./newest.js";
import { bytesOf, pixelImage } from "./images.js";
import { needsModel } from "./site.js";
import { labelColours, labelMap, labelWords, readLabels, segmenters } from "./labels.js";

const SCENE_NETS = ["With skips", "Without skips"];

/* How much ink each pixel gets from a shape of 32 x 32 numbers around (x, y): bilinear, and twice as steep around 0.4. */
function digitInk(shape, side, { x, y }, size) {
  const pixel = (column, row) => (column >= 0 && column < 32 && row >= 0 && row < 32 ? shape[row * 32 + column] : 0);
  const source = (i, middle) => ((2 * i + 1 - 2 * middle) / size + 1) * 16 - 0.5;
  return Float32Array.from({ length: side * side }, (_, i) => {
    const u = source(i % side, x), v = source(Math.floor(i / side), y), column = Math.floor(u), row = Math.floor(v), du = u - column, dv = v - row;
    const upper = (1 - du) * pixel(column, row) + du * pixel(column + 1, row), lower = (1 - du) * pixel(column, row + 1) + du * pixel(column + 1, row + 1);
    return clamp(((1 - dv) * upper + dv * lower - 0.4) * 2 + 0.4, 0, 1);
  });
}

/* A function from a state to the pixels of its scene, from 0 to 1, and where digits are. */
export function sceneOf({ side, shapes, textures, grounds }) {
  const floats = new Float32Array(bytesOf(shapes).buffer);
  const pixelsOf = Object.fromEntries(Object.entries(textures).map(([name, text]) => [name, Float32Array.from(bytesOf(text), (value) => value / 255)]));
  return ({ ground, digits, size }) => {
    const [name, contrast] = grounds[ground], texture = pixelsOf[name], mean = texture.reduce((sum, value) => sum + value, 0) / texture.length;
    const inks = digits.filter(({ digit }) => digit >= 0).map((one) => digitInk(floats.subarray(1024 * one.digit, 1024 * (one.digit + 1)), side, one, size));
    const ink = Float32Array.from(texture, (_, i) => Math.max(...inks.map((each) => each[i]))), colour = mean < 0.55 ? 0.95 : 0.05;
    const pixels = texture.map((value, i) => { const back = mean + contrast * (value - mean); return back + ink[i] * (colour - back); });
    return { pixels, truth: Uint8Array.from(ink, (value) => value > 0.5) };
  };
}

/* Intersection over union of the pixels that are labelled as digits and those that are. */
function digitIou(classes, truth) {
  const count = (test) => classes.filter(test).length;
  return count((k, i) => k && truth[i]) / Math.max(count((k, i) => k || truth[i]), 1);
}

/* `its` is what was read last: { ground, digits, size, truth, logits, reads }, a reading for each of the networks. */
export function sceneGoals() {
  const goal = (fits) => ({ ground, digits, size, its }) =>
    Boolean(its && its.ground === ground && its.digits === digits && its.size === size && its.reads.some((read) => fits(read, digits, its.truth)));
  return [
    goal(({ objects }, [a, b]) => b.digit >= 0 && Math.hypot(a.x - b.x, a.y - b.y) >= 8 && objects.length === 1),
    goal(({ classes, objects }, [a, b], truth) => b.digit < 0 && digitIou(classes, truth) >= 0.8 && objects.length === 1 && objects[0].digit !== a.digit),
    goal(({ objects }, [, b]) => b.digit < 0 && !objects.length),
  ];
}

export function sceneWords({ its }) {
  if (!its) return "";
  return its.reads.map((read, k) => `${SCENE_NETS[k]}: ${labelWords(read)} IoU of the digit pixels: ${fixed(digitIou(read.classes, its.truth))}.`).join(" ");
}

/* The scene with a handle over each digit: `moved(index, x, y, settled)`. */
function sceneView({ side, low, high, moved }) {
  const image = pixelImage({ label: "The scene: drag the digits", side }), canvas = image.root.querySelector("canvas"), cover = node("div", { class: "play-patches" });
  let shown = [];
  const to = (i, x, y, settled) => moved(i, clamp(Math.round(x), low, high), clamp(Math.round(y), low, high), settled);
  const handles = [0, 1].map((i) => {
    const handle = node("div", { class: "play-grab", role: "slider", tabindex: 0, "aria-valuemin": low, "aria-valuemax": high });
    let from = null;
    draggable(handle, (event, first) => {
      const box = canvas.getBoundingClientRect(), at = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height].map((share) => share * side);
      if (first) { from = [shown[i].x - at[0], shown[i].y - at[1]]; handle.focus({ preventScroll: true, focusVisible: false }); }
      to(i, at[0] + from[0], at[1] + from[1], false);
    }, () => to(i, shown[i].x, shown[i].y, true));
    handle.addEventListener("keydown", (event) => {
      const by = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0], PageUp: [0, -8], PageDown: [0, 8], Home: [-8, 0], End: [8, 0] }[event.key];
      if (!by || !plain(event)) return;
      event.preventDefault();
      event.stopPropagation();
      to(i, shown[i].x + by[0], shown[i].y + by[1], true);
    });
    return handle;
  });
  canvas.replaceWith(cover);
  cover.append(canvas, ...handles);
  return {
    ...image,
    show(pixels, digits, size) {
      shown = digits;
      image.show(pixels);
      digits.forEach(({ digit, x, y }, i) => put(handles[i], {
        hidden: digit < 0, style: `left: ${(100 * x) / side}%; top: ${(100 * y) / side}%; width: ${(100 * size) / side}%; height: ${(100 * size) / side}%`,
        "aria-label": `Position of the ${digit}`, "aria-valuenow": x, "aria-valuetext": `${x} pixels from the left, ${y} from the top`,
      }));
    },
  };
}

export function scene({ root, config, kernel }) {
  needsModel(kernel, config.models);
  const { side, models, colours, bounds } = config, drawn = sceneOf(config), logitsOf = segmenters({ kernel, models, side });
  const start = { ...config.start, map: "classes", its: null };
  let held = false;
  const touch = (changes, settled) => { held = !settled; change(changes, settled); };
  const withDigit = (i, changes) => ({ digits: state().digits.with(i, { ...state().digits[i], ...changes }) });
  const read = ({ its, threshold }) => its.logits.map((logits) => readLabels(logits, side, threshold));

  const picture = sceneView({ side, ...bounds.position, moved: (i, x, y, settled) => {
    const at = state().digits[i];
    touch(at.x === x && at.y === y ? {} : withDigit(i, { x, y }), settled);
  } });
  const maps = SCENE_NETS.map((label) => labelMap({ label, side, colours }));
  const digits = Array.from({ length: 10 }, (_, digit) => [`${digit}`, digit]);
  const controls = {
    ground: choice({ label: "Background", options: Object.keys(config.grounds).map((name) => [name, name]), changed: (ground) => touch({ ground }, true) }),
    first: choice({ label: "Digit", options: digits, changed: (digit) => touch(withDigit(0, { digit }), true) }),
    second: choice({ label: "Second digit", options: [["none", -1], ...digits], changed: (digit) => touch(withDigit(1, { digit }), true) }),
    size: slider({ label: "Size (pixels)", ...bounds.size, whole: true, format: (value) => fixed(value, 0), changed: (size, settled) => touch({ size }, settled) }),
    threshold: slider({ label: "Threshold", ...bounds.threshold, whole: true, changed: (threshold, settled) => {
      const { its } = state();
      touch({ threshold, its: its && { ...its, reads: read({ its, threshold }) } }, settled);
    } }),
    map: choice({ label: "Map", options: [["class", "classes"], ["uncertainty", "entropy"]], changed: (map) => touch({ map }, true) }),
  };
  const reader = newest({
    async read(now) {
      const { ground, digits: those, size } = now, { pixels, truth } = drawn(now);
      return { ground, digits: those, size, truth, logits: await logitsOf(pixels) };
    },
    done: (its) => change({ its: { ...its, reads: read({ its, threshold: state().threshold }) } }, !held, false),
    failed: (error) => maps[0].note(error.message),
  });

  function draw(now) {
    const { ground, digits: [first, second], size, its } = now;
    picture.show(drawn(now).pixels, now.digits, size);
    for (const [name, value] of Object.entries({ ...now, first: first.digit, second: second.digit })) controls[name]?.show(value);
    if (its) {
      its.reads.forEach((one, k) => {
        maps[k].show(one, now.map);
        maps[k].note(`IoU of the digit pixels with the ground truth: ${fixed(digitIou(one.classes, its.truth))}`);
      });
    }
    if (its?.ground !== ground || its.digits !== now.digits || its.size !== size) reader.ask(now);
  }

  const { build, change, state, remove } = stage({ root, config, kernel, start, goals: sceneGoals(), draw, words: sceneWords });
  picture.root.append(labelColours(colours));
  build([picture, ...maps], Object.values(controls));
  if (!state().its) maps[0].note("Loading the models …");
  return () => { reader.close(); remove(); };
}
