/* Beam search laid open: the tree of hypotheses, and what each head of cross-attention attends to (lesson 06). */
import { stage, figure, node, put, heatMap, nextTokens, slider, choice } from "./kit.js";
import { newest } from "./newest.js";
import { textBox } from "./text.js";
import { needsKernel } from "./site.js";

const BOX = { width: 84, height: 34 };

/* The box that is looked into: the one that was pressed, otherwise the winner's in the same step. */
export function chosenBox({ at, its }) {
  const ofWinner = its.boxes.filter(({ kind }) => kind === "wins"), last = Math.min(at.step, ofWinner.length);
  return its.boxes.find(({ words }) => words.join(" ") === at.words) ?? ofWinner.find(({ step }) => step === last);
}

/* `its` is Python's answer to { text, beams, penalty }, with that question in it. */
const answered = ({ text, beams, penalty, its }) => its && its.text === text && its.beams === beams && its.penalty === penalty;

export const beamGoals = [0, 1, 2].map((i) => (state) => Boolean(answered(state) && state.its.reached[i]))
  .concat((state) => Boolean(answered(state) && state.look >= 0 && state.its.heads[state.look].follows));

export function beamWords(state) {
  if (!state.its) return "";
  return `${state.its.remark} ${state.its.words} ${state.look < 0 ? chosenBox(state).where : state.its.heads[state.look].where}`.trim();
}

/* The tree; from left to right where there is room, else downwards. `pressed(box)` hears of a box that is pressed. */
function beamTree({ label, pressed }) {
  const svg = node("svg", { role: "group", "aria-label": label }), view = figure(label, svg);
  let drawn = null, items = [];
  const wide = () => view.root.clientWidth > 600;
  const place = ({ step, row }, across) => (across ? [16 + (step - 1) * 98, 8 + row * 40] : [4 + row * 92, 18 + (step - 1) * 52]);
  const watch = new ResizeObserver(() => { if (drawn && drawn.across !== wide()) build(drawn.boxes, wide()); });
  watch.observe(view.root);

  function build(boxes, across) {
    drawn = { boxes, across };
    const at = boxes.map((box) => place(box, across)), [right, low] = [0, 1].map((k) => Math.max(...at.map((point) => point[k])));
    const size = [right + BOX.width + 6, low + BOX.height + 6], order = ["", "led", "wins"];  // the winner's line on top
    put(svg, { viewBox: `0 0 ${size.join(" ")}`, style: `max-width: ${size[0] * 1.15}px` });
    const lines = boxes.flatMap((box, i) => (box.parent === null ? [] : [{ kind: box.kind, from: at[box.parent], to: at[i] }]))
      .sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
    items = boxes.map((box, i) => {
      const [x, y] = at[i], middle = { x: x + BOX.width / 2, "text-anchor": "middle" };
      const item = node("g", { class: `play-beam ${box.kind}${box.lost ? " lost" : ""}`, role: "button", tabindex: 0 },
        node("title", {}, box.said),
        node("rect", { x, y, ...BOX, rx: 6 }), node("text", { ...middle, y: y + 15, ...(box.label.length > 11 && { textLength: 76, lengthAdjust: "spacingAndGlyphs" }) }, box.label),
        node("text", { ...middle, y: y + 29 }, box.value), box.lost ? node("text", { x: x + BOX.width - 4, y: y + 5 }, "✕") : "");
      item.addEventListener("click", () => pressed(box));
      item.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pressed(box); } });
      return item;
    });
    svg.replaceChildren(...lines.map(({ kind, from: [a, b], to: [c, d] }) => {
      const [x1, y1, x2, y2] = across ? [a + BOX.width, b + 17, c, d + 17] : [a + 42, b + BOX.height, c + 42, d], half = across ? (x1 + x2) / 2 : (y1 + y2) / 2;
      return node("path", { class: `play-branch ${kind}`, d: across ? `M${x1} ${y1}C${half} ${y1} ${half} ${y2} ${x2} ${y2}` : `M${x1} ${y1}C${x1} ${half} ${x2} ${half} ${x2} ${y2}` });
    }), ...items);
  }

  return {
    ...view,
    show(boxes, chosen) {
      if (drawn?.boxes !== boxes) build(boxes, wide());
      boxes.forEach((box, i) => put(items[i], { "aria-pressed": `${box === chosen}` }));
    },
    close: () => watch.disconnect(),
  };
}

export function beams({ root, config, kernel }) {
  needsKernel(kernel);
  const start = { text: config.start.text, beams: config.start.beams, penalty: config.start.penalty, at: { step: config.start.step, words: "" }, look: -1, its: null };
  const french = node("div", { class: "play-sentence", lang: "fr" }), said = figure("", node("div", { class: "wide" }));
  said.root.querySelector(".wide").append(french);
  const tree = beamTree({ label: "Beams: press a box to look into it", pressed: ({ step, words }) => change({ at: { step, words: words.join(" ") }, look: -1 }) });
  tree.root.querySelector("svg").classList.add("wide");
  const maps = node("div", { class: "play-small" }), attention = figure("Cross-attention: English words in columns", maps), likely = nextTokens({ label: "Most probable words at this step" });
  const typed = textBox({ label: "English sentence", examples: config.texts, changed: (text) => change({ text }) });
  const count = slider({ label: "Number of beams", low: 1, high: 5, step: 1, whole: true, format: (n) => `${Math.round(n)}`, changed: (n, settled) => touch({ beams: Math.round(n) }, settled) });
  const length = slider({ label: "Length penalty", low: 0, high: 2, step: 0.1, whole: true, changed: (penalty, settled) => touch({ penalty }, settled) });
  const look = choice({ label: "Attention of", options: [["all", -1], ...config.heads.map((name, i) => [name, i])], changed: (index) => change({ look: index }) });
  let held = false, shown = null;
  const touch = (changes, settled) => { held = !settled; change(changes, settled); };

  const asked = newest({
    read: async ({ text, beams, penalty }) => ({ ...(await kernel.ask("search", { text, beams, penalty })), text, beams, penalty }),
    done: (its) => change({ its }, !held, false),
    failed: (error) => said.note(error.message),
  });

  /* A map is built anew when other rows or columns are to be seen. */
  function attend(rows, columns, numbers, links) {
    const key = JSON.stringify([rows, columns]);
    if (shown?.key !== key) {
      shown = { key, map: heatMap({ label: "Attention weights", rows, columns, text: () => "" }) };
      maps.replaceChildren(shown.map.root);
    }
    shown.map.show(numbers);
    for (const cell of maps.querySelectorAll("td[data-at]")) {
      const at = cell.dataset.at.split(" ").map(Number);
      cell.classList.toggle("ring", links.some(([i, j]) => i === at[0] && j === at[1]));
      cell.title = numbers[at[0]][at[1]].toFixed(2);
    }
  }

  function draw(now) {
    typed.show(now.text);
    count.show(now.beams);
    length.show(now.penalty);
    look.show(now.look);
    if (!answered(now)) asked.ask(now);
    if (!now.its) return;
    const { its } = now, box = chosenBox(now);
    french.textContent = its.winner || "–";
    said.note([...(its.remark ? [its.remark.replace(/\.$/, "")] : []), `Beam search: ${its.score}`, ...its.compared.map(([name, text, rest]) => `${name}: ${text ? `“${text}” (${rest})` : rest}`)].join(". "));
    tree.show(its.boxes, now.look < 0 ? box : null);
    likely.show(box.next);
    if (now.look < 0) {
      attend(config.heads, its.source, box.maps, box.links.flatMap((j) => config.heads.map((_, i) => [i, j])));
      attention.note(`Each head (layer.head): ${box.where.split(":")[0]}.`);
    } else {
      attend(its.rows, its.source, its.heads[now.look].map, its.links);
      attention.note(its.heads[now.look].where);
    }
  }

  tree.note("Number: sum of log-probabilities; at “end”, the score. ★ the winner, blue. Orange: led, but did not win. ✕ died.");
  const { build, change, remove } = stage({ root, config, kernel, start, goals: beamGoals, draw, words: beamWords });
  build([said, tree, attention, likely], [typed, count, length, look]);
  return () => { asked.close(); tree.close(); remove(); };
}
