/* Pictures to choose from: radio buttons whose faces are pictures, so that the keyboard works as everywhere. */
let made = 0;

function render({ model, el }) {
  const make = (tag, props, parent) => parent.appendChild(Object.assign(document.createElement(tag), props));
  const group = make("fieldset", { className: "course-pictures" }, el);
  const name = `course-pictures-${made++}`;
  make("legend", { textContent: model.get("label") }, group);
  const inputs = model.get("pictures").map(([words, source], i) => {
    const label = make("label", { title: words }, group);
    const input = make("input", { type: "radio", name, onchange: () => { model.set("chosen", i); model.save_changes(); } }, label);
    make("img", { src: source, alt: words }, label);
    return input;
  });
  const show = () => inputs.forEach((input, i) => { input.checked = i === model.get("chosen"); });
  group.onkeydown = (event) => {  // else JupyterLab would leave the cell
    if (event.key.startsWith("Arrow") || event.key === " ") event.stopPropagation();
  };
  show();
  model.on("change:chosen", show);
  return () => model.off("change:chosen", show);
}

export default { render };
