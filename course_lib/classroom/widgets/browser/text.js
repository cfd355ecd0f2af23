/* A line of text to type into, with examples to take. */
import { node } from "./kit.js";

/* `changed(text, settled)` hears what was typed at Enter or when the field is left, and each example that is taken; with
   `live` each key, too, which is not settled. An example is a text, or [name, text]. */
export function textBox({ label, examples = [], most = 200, live = false, changed }) {
  const input = node("input", { class: "play-text", "aria-label": label, maxlength: most, spellcheck: "false", autocapitalize: "off" });
  input.addEventListener("change", () => changed(input.value, true));
  if (live) input.addEventListener("input", () => changed(input.value, false));
  const taken = examples.map((example) => {
    const [name, text] = [example, example].flat().slice(0, 2);
    const made = node("button", { type: "button", class: "play-button" }, name);
    made.addEventListener("click", () => changed(text, true));
    return made;
  });
  const row = (words, ...parts) => node("div", { class: "play-row" }, node("span", { class: "play-label" }, words), ...parts);
  const root = node("div", { class: "play-rows" }, row(label, input), taken.length ? row("Examples", node("div", { class: "play-buttons" }, ...taken)) : "");
  return { root, show(text) { if (input.value !== text) input.value = text; } };
}
