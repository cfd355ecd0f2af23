/* Views of a sentence that a model reads: its words, large, and the words that the model knows. */
import { node, put, figure } from "./kit.js";

/* A sentence word by word. A word keeps its element while its text changes, and with it the focus. `pointed(i)` hears on
   which word the pointer or the focus is, or null; with `clicked(i)` a word that has a `name` is a button. `show` takes
   [{ text, name, glued, kind, on }], where no space stands before a `glued` word; `light` a strength from 0 to 1 for each
   word, or nothing. */
export function wordLine({ label, lang = null, kind = "", pointed = null, clicked = null }) {
  const root = node("div", { class: `play-words ${kind}`, lang, role: "group", "aria-label": label });
  const place = (event) => { const at = [...root.children].indexOf(event.target.closest(".play-words > *")); return at < 0 ? null : at; };
  for (const come of pointed ? ["pointerover", "focusin"] : []) root.addEventListener(come, (event) => pointed(place(event)));
  for (const go of pointed ? ["pointerleave", "focusout"] : []) root.addEventListener(go, () => pointed(null));
  if (clicked) root.addEventListener("click", (event) => { if (event.target.closest("button")) clicked(place(event)); });
  const made = (tag) => node(tag, { style: `--at: ${root.children.length}`, ...(tag === "button" ? { type: tag } : { tabindex: pointed && 0 }) });
  return {
    ...figure("", root),
    show(items) {
      while (root.children.length > items.length) root.lastChild.remove();
      items.forEach(({ text, name = null, glued = false, kind: look = "", on = null }, i) => {
        const tag = name && clicked ? "button" : "span";
        if (!root.children[i]) root.append(made(tag));
        else if (root.children[i].localName !== tag) root.children[i].replaceWith(made(tag));
        root.children[i].textContent = `${glued ? "" : " "}${text}`;
        put(root.children[i], { class: `${look}${glued ? " glued" : ""}`, "aria-label": name, "aria-pressed": on === null ? null : `${on}` });
      });
    },
    light(strengths = []) { [...root.children].forEach((word, i) => word.style.setProperty("--share", `${Math.round(100 * (strengths[i] ?? 0))}%`)); },
  };
}

/* What is said of words that a model does not know, with the known ones that are written most alike. */
export function unknownWords(words, known) {
  const about = (word) => {
    const near = known.map((other) => [editDistance(word, other), other]).filter(([far]) => far <= Math.max(1, word.length / 3));
    const best = near.sort(([a], [b]) => a - b).slice(0, 3).map(([, other]) => `“${other}”`);
    return `I do not know the word “${word}” yet, so I can only guess.${best.length ? ` Did you mean ${best.join(" or ")}?` : ""}`;
  };
  const all = new Set(known);
  return [...new Set(words)].filter((word) => !all.has(word)).map(about).join(" ");
}

/* How many letters one has to insert, delete or replace (Levenshtein 1966). */
function editDistance(one, other) {
  let row = [...Array(other.length + 1).keys()];
  for (const [i, letter] of [...one].entries()) {
    const last = row;
    row = [i + 1];
    for (let j = 0; j < other.length; j++) row.push(Math.min(last[j] + (letter !== other[j]), last[j + 1] + 1, row[j] + 1));
  }
  return row.at(-1);
}

/* The words that a model knows, behind a fold. */
export function wordFold(known) {
  return { root: node("details", { class: "play-fold" }, node("summary", {}, `The ${known.length} words it knows`), known.join(", ")) };
}
