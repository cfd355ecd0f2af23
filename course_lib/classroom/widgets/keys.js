/* A box that hands over each character as it is typed, and empties itself; what came of it is said beside the box. */
function render({ model, el }) {
  const make = (tag, props, parent) => parent.appendChild(Object.assign(document.createElement(tag), props));
  const row = make("div", {}, el);
  row.style.cssText = "display: flex; flex-wrap: wrap; align-items: center; gap: 4px 10px; margin: 2px;" +
    "color: var(--jp-content-font-color1, inherit)";
  const label = make("label", { textContent: model.get("label") }, row);
  label.style.cssText = "display: flex; align-items: center; gap: 8px";
  const box = make("input", { type: "text", autocomplete: "off", spellcheck: false }, label);
  for (const name of ["autocapitalize", "autocorrect"]) box.setAttribute(name, "off");
  box.style.cssText = "width: 2.2em; text-align: center; font: 1.3em monospace; padding: 3px; color: inherit;" +
    "background: transparent; border: 2px solid currentColor; border-radius: 4px";
  const again = make("button", { type: "button", textContent: model.get("again"), hidden: !model.get("again") }, row);
  again.style.cssText = "border: 0; padding: 7px 10px; font: inherit; color: inherit; cursor: pointer;" +
    "background: var(--jp-layout-color2, #eee)";
  again.onclick = () => { model.send({ again: true }); box.focus(); };
  const said = make("span", {}, row);
  said.setAttribute("role", "status");
  said.style.minWidth = "26em";  // so that nothing moves with its words
  const hand = () => {
    const typed = [...box.value];
    box.value = "";
    typed.forEach((character) => model.send({ character }));
  };
  box.oninput = (event) => { if (!event.isComposing) hand(); };
  box.addEventListener("compositionend", hand);
  box.onkeydown = (event) => event.stopPropagation();  // letters are JupyterLab's commands, too
  const show = () => { said.textContent = model.get("said"); };
  show();
  model.on("change:said", show);
  return () => model.off("change:said", show);
}

export default { render };
