/* A line of text to type into, with examples to take. */
import { node } from "./kit.js";

/* `changed(text)` hears what was typed at Enter or when the field is left, and each example that is taken. */
export function textBox({ label, examples = [], most = 200, changed }) {
  const input = node("input", { class: "play-text", "aria-label": label, maxlength: most, spellcheck: "false", autocapitalize: "off" });
  input.addEventListener("change", () => changed(input.value));
  const taken = examples.map((text) => {
    const made = node("button", { type: "button", class: "play-button" }, text);
    made.addEventListener("click", () => changed(text));
    return made;
  });
  const row = (words, ...parts) => node("div", { class: "play-row" }, node("span", { class: "play-label" }, words), ...parts);
  const root = node("div", { class: "play-rows" }, row(label, input), taken.length ? row("Examples", node("div", { class: "play-buttons" }, ...taken)) : "");
  return { root, show(text) { if (input.value !== text) input.value = text; } };
}
