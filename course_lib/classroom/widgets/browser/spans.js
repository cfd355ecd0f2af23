/* A text from which words are removed, by hand or at random, and what a kernel's T5 writes in their place (lesson 15). */
import { stage, button, buttons, choice, draggable, figure, fixed, node, slider } from "./kit.js";
import { newest } from "./newest.js";
import { needsKernel } from "./site.js";

/* `its` is what was filled last: { asked, words, dropped, removed, generated, error }, for the gaps that `asked` names. */
const askedOf = ({ text, rate, length, draw, dropped }) => JSON.stringify(dropped ? [text, dropped] : [text, rate, length, draw]);
const filledNow = (now) => Boolean(now.its?.words) && !now.its.error && now.its.asked === askedOf(now);
const pairsOf = ({ removed, generated }) => removed.map((gone, k) => [gone, generated[k]]);
const correctIn = (its) => pairsOf(its).flatMap(([gone, found]) => gone.filter((word, i) => word === found[i])).length;

export function spanGoals() {
  const goal = (fits) => (now) => filledNow(now) && fits(now.its, now);
  return [
    goal((its) => pairsOf(its).some(([gone, found]) => gone.length > 1 && gone.join("\n") === found.join("\n"))),
    goal((its) => pairsOf(its).some(([gone, found]) => found.length > 0 && found.length < gone.length)),
    goal((its, { rate, dropped }) => (dropped ? its.dropped.filter(Boolean).length / its.dropped.length : rate) > 0.29 && correctIn(its) >= 3),
  ];
}

export function spanWords(now) {
  if (!now.its) return "";
  return now.its.error || `${correctIn(now.its)} of ${now.its.dropped.filter(Boolean).length} removed tokens are generated correctly.`;
}

export function spans({ root, config, kernel }) {
  needsKernel(kernel);
  const start = { ...config.start, dropped: null, its: null };
  let held = false, ink = false;
  const touch = (changes, settled = true) => { held = !settled; change(changes, settled); };
  const text = node("div", { class: "play-gaps", role: "group", "aria-label": "The text; a button removes its word or restores it" });
  const shown = figure("Click words, or drag over them, to remove or restore them", text);
  const filled = node("div", { class: "play-gaps" }), written = figure("What T5 writes", filled);
  let marks = [];
  const keepFocus = (i) => text.children[i]?.focus({ preventScroll: true });
  const set = (i, gone, settled) => {
    const dropped = [...(current().dropped ?? current().its.dropped)];
    if (dropped[i] === gone && !settled) return;
    dropped[i] = gone;
    touch({ dropped }, settled);
  };
  const at = (event) => marks.indexOf(text.getRootNode().elementFromPoint(event.clientX, event.clientY)?.closest(".play-gaps > button"));
  const goneNow = (i) => (current().dropped ?? current().its.dropped)[i];
  draggable(text, (event, first) => {
    const i = at(event);
    if (i < 0 || !current().its?.words) return;
    if (first) { ink = !goneNow(i); keepFocus(i); }
    if (goneNow(i) !== ink) set(i, ink, false);
  }, () => touch({}));
  text.addEventListener("keydown", (event) => {
    const i = marks.indexOf(event.target);
    if (i < 0 || !["Enter", " "].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    set(i, !goneNow(i), true);
  });

  const which = choice({ label: "Text", options: Array.from({ length: config.texts }, (_, n) => [`text ${n + 1}`, n]), changed: (value) => touch({ text: value, dropped: null }) });
  const rate = slider({ label: "Corruption rate", low: 0.1, high: 0.3, step: 0.05, format: (value) => fixed(value), changed: (value, settled) => touch({ rate: Number(fixed(value)), dropped: null }, settled) });
  const length = slider({ label: "Mean span", low: 2, high: 5, step: 1, whole: true, format: (value) => `${Math.round(value)}`, changed: (value, settled) => touch({ length: Math.round(value), dropped: null }, settled) });
  const draws = button({ text: "Other random spans", clicked: () => touch({ draw: (current().draw % 10) + 1, dropped: null }) });
  const filler = newest({
    async read(now) {
      const { its, ...asked } = now, found = await kernel.ask("fill", asked).catch(({ message }) => ({ ...its, error: message, dropped: now.dropped ?? its?.dropped }));
      return { error: "", ...found, asked: askedOf(now), text: now.text };
    },
    done: (its) => change({ its }, !held, false),
  });

  function draw(now) {
    const { its } = now;
    which.show(now.text);
    rate.show(now.rate);
    length.show(now.length);
    if (its?.asked !== askedOf(now)) filler.ask(now);
    if (!its?.words) { written.note(its?.error ?? ""); return; }
    const gone = now.dropped ?? its.dropped;
    if (marks.length !== its.words.length) {
      marks = its.words.map(() => node("button", { type: "button" }));
      text.replaceChildren(...marks);
    }
    marks.forEach((mark, i) => {
      mark.textContent = its.words[i];
      mark.className = gone[i] ? "gone" : "";
      mark.setAttribute("aria-pressed", `${gone[i]}`);
    });
    written.note(its.error || "Green: the word that was there. Orange, underlined: another one; the word that was removed is in brackets.");
    if (its.error) return;
    let number = -1;
    filled.replaceChildren(...its.words.flatMap((word, i) => {
      if (!its.dropped[i]) return [node("span", {}, word)];
      if (its.dropped[i - 1]) return [];
      const [removed, found] = pairsOf(its)[++number];
      const made = found.map((one, k) => node("b", { class: one === removed[k] ? "right" : "wrong" }, one));
      const same = found.length === removed.length && made.every((one) => one.className === "right");
      return [...made, ...(same ? [] : [node("small", {}, `(${removed.join(" ")})`)])];
    }));
  }

  const { build, change, state: current, remove } = stage({ root, config, kernel, start, goals: spanGoals(), draw, words: spanWords });
  build([shown, written], [which, rate, length, buttons("Spans", [draws])]);
  return () => { filler.close(); remove(); };
}
