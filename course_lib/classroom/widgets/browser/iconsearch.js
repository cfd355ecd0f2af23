/* Words, and the icons whose vectors are most like theirs: what a kernel's CLIP finds (lesson 16). */
import { stage, choice, clamp, figure, fixed, node } from "./kit.js";
import { bytesOf, canvasOf, paintColours } from "./images.js";
import { newest } from "./newest.js";
import { needsKernel } from "./site.js";
import { textBox } from "./text.js";

/* `its` is what was found last: { query, where, error, known, hits: [{ name, cosine, pixels }] }; `known` says whether the
   query is a name that training had. */
const foundFor = ({ query, where, its }) => its && its.query === query && its.where === where && !its.error;
const plainQuery = (text) => text.toLowerCase().split(/\s+/).filter(Boolean).join(" ");

export function iconSearchGoals({ hits, sure }) {
  const goal = (fits) => (now) => Boolean(foundFor(now)) && fits(now.its, (first) => now.its.hits.slice(0, first).some(({ name }) => name === plainQuery(now.query)), now);
  return [
    goal((_, has, { where }) => where === "new names" && has(1)),
    goal(({ known }, has, { where }) => where === "new designer" && known && !has(hits)),
    goal((its) => !its.known && its.hits[0].cosine > sure),
  ];
}

export function iconSearchWords(now) {
  if (!now.its) return "";
  if (now.its.error) return now.its.error;
  return `The icons with the highest cosine for “${now.its.query.trim()}”: ${now.its.hits.map(({ name, cosine }) => `${name} (${fixed(cosine)})`).join(", ")}.`;
}

export function iconsearch({ root, config, kernel }) {
  needsKernel(kernel);
  const { side, hits } = config, start = { ...config.start, its: null };
  let held = false;
  const touch = (changes, settled = true) => { held = !settled; change(changes, settled); };
  const cells = Array.from({ length: hits }, () => {
    const canvas = canvasOf(side, { role: "img", "aria-label": "no icon yet" }), name = node("b"), bar = node("i"), number = node("span");
    return { canvas, name, bar, number, root: node("li", {}, canvas, name, node("div", {}, bar, number)) };
  });
  const list = figure("The icons with the highest cosine", node("ol", { class: "play-icons" }, ...cells.map((cell) => cell.root)));
  const query = textBox({ label: "Words", examples: config.examples, live: true, changed: (text, settled) => touch({ query: text }, settled) });
  const where = choice({ label: "Among", options: config.options, changed: (value) => touch({ where: value }) });
  const finder = newest({
    async read(now) {
      const found = await kernel.ask("search", { query: now.query, where: now.where }).catch(({ message }) => ({ error: message, hits: [], known: false }));
      return { error: "", ...found, query: now.query, where: now.where };
    },
    done: (its) => change({ its }, !held, false),
  });

  function draw(now) {
    query.show(now.query);
    where.show(now.where);
    if (now.its?.query !== now.query || now.its.where !== now.where) finder.ask(now);
    list.note(now.its?.error || "The bar is the cosine of the vector of the words with that of the icon, from 0 to 1.");
    cells.forEach(({ canvas, name, bar, number, root: cell }, k) => {
      const hit = now.its?.hits[k];
      cell.hidden = !hit;
      if (!hit) return;
      const bytes = bytesOf(hit.pixels);
      paintColours(canvas, Array.from({ length: side ** 2 }, (_, i) => [...bytes.subarray(3 * i, 3 * i + 3)]));
      canvas.setAttribute("aria-label", hit.name);
      name.textContent = hit.name;
      number.textContent = fixed(hit.cosine);
      bar.style.setProperty("--share", `${fixed(100 * clamp(hit.cosine, 0, 1))}%`);
    });
  }

  const { build, change, remove } = stage({ root, config, kernel, start, goals: iconSearchGoals(config), draw, words: iconSearchWords });
  build([list], [query, where]);
  return () => { finder.close(); remove(); };
}
