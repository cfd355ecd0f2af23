/* Two systems on the same input: what did the work before, and the Transformer that took over (lesson 15). */
import { stage, figure, choice, slider, node, put, fixed } from "./kit.js";
import { bytesOf } from "./images.js";
import { mazePlane } from "./maze.js";

/* What both made of an input, at the noise of the state where the field has any. */
export function takeoverPair({ field, number, noise }, { fields, step }) {
  const inputs = fields[field][number];
  return inputs[Math.min(inputs.length - 1, Math.round(noise / step))];
}

/* Goals are given the field and whether each of the two systems was right. */
export const takeoverGoals = [
  (field, [before, after]) => field === "speech" && !before && after,
  (field, [before, after]) => field === "speech" && !before && !after,
  (field, [before, after]) => field === "control" && !before && after,
  (field, [before, after]) => field === "pictures and words" && !before && after,
];

export function takeoverWords(state, config) {
  const { given, names, said } = takeoverPair(state, config);
  return `Given: ${given}. ${names.map((name, i) => `${name}: ${said[i]}`).join(". ")}.`;
}

/* What one of the two said, with a mark where it is known whether that is right, and the trajectory it took. */
function takeoverCard(walls, colour) {
  const text = node("p", { class: "play-answer" }), maze = mazePlane({ label: "Trajectory", walls, height: 290 });
  const way = maze.way(colour), ends = ["#0072b2", "#e69f00"].map((fill) => maze.area.appendChild(node("circle", { class: "play-dot", r: 8, fill })));
  const view = figure("", node("div", {}, text, maze.area));
  return {
    ...view,
    show(name, said, right, places, goal) {
      view.root.firstChild.textContent = name;
      text.textContent = said;
      view.note(right === null ? "" : right ? "✓ correct" : "✗ wrong");
      maze.area.style.display = places ? "" : "none";
      if (!places) return;
      way.show(places);
      [places[0], goal].forEach(([i, j], k) => put(ends[k], { cx: maze.x(j), cy: maze.y(i) }));
      put(maze.area, { "aria-label": `Trajectory of ${places.length - 1} steps` });
    },
  };
}

export function takeover({ root, config, kernel }) {
  const text = node("p", { class: "play-answer" }), canvas = node("canvas", { class: "play-pixels", role: "img" });
  const input = figure("Input", node("div", {}, text, canvas)), cards = ["var(--score)", "var(--weight)"].map((colour) => takeoverCard(config.walls, colour));
  const field = choice({ label: "Field", options: Object.keys(config.fields).map((name) => [name, name]), changed: (name) => change({ field: name }) });
  const number = choice({ label: "Input", options: ["first", "second", "third"].map((name, i) => [name, i]), changed: (value) => change({ number: value }) });
  const noise = slider({ label: "Noise", low: 0, high: config.most, step: config.step, whole: true, format: (value) => fixed(value, 1), changed: (value, settled) => change({ noise: value }, settled) });

  function draw(now) {
    const { given, names, said, right, image, ways, goal } = takeoverPair(now, config);
    text.textContent = given;
    canvas.style.display = image ? "" : "none";
    if (image) {
      const bytes = bytesOf(image.bytes), { width, height } = Object.assign(canvas, { width: image.width, height: bytes.length / image.width });
      const context = canvas.getContext("2d"), drawn = context.createImageData(width, height);
      bytes.forEach((value, i) => drawn.data.fill(value, 4 * i, 4 * i + 3).fill(255, 4 * i + 3, 4 * i + 4));
      context.putImageData(drawn, 0, 0);
      canvas.style.aspectRatio = width > height ? "2" : "1";
      put(canvas, { "aria-label": image.label });
    }
    input.note(image?.label ?? "");
    cards.forEach((card, i) => card.show(names[i], said[i], right && right[i], ways?.[i], goal));
    field.show(now.field);
    number.show(now.number);
    noise.show(now.noise);
    noise.root.style.display = now.field === "speech" ? "" : "none";
  }

  const goals = takeoverGoals.map((goal) => (now) => { const { right } = takeoverPair(now, config); return right !== null && goal(now.field, right); });
  const { build, change, remove } = stage({ root, config, kernel, start: config.start, goals, draw, words: (now) => takeoverWords(now, config) });
  build([input, ...cards], [field, number, noise]);
  return remove;
}
