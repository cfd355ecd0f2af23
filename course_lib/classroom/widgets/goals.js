/* The goals of a playground: a list with ticks, and a line that a screen reader says when one is reached. It also gives
   the sliders and squares around it the names that ipywidgets leaves out, and tells when a hand holds one of the sliders. */
function render({ model, el }) {
  const make = (tag, props, parent) => parent.appendChild(Object.assign(document.createElement(tag), props));
  const box = make("div", { hidden: !model.get("texts").length }, el);
  box.style.cssText = "color: var(--jp-content-font-color1, inherit); line-height: 1.4; margin: 4px 2px";
  const said = make("strong", {}, box);
  said.setAttribute("role", "status");
  const list = make("ul", {}, box);
  list.style.cssText = "list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: 0 1.6em";
  const items = model.get("texts").map(() => make("li", { style: "margin: 0" }, list));
  const show = () => {
    const reached = model.get("reached"), count = reached.filter(Boolean).length;
    items.forEach((item, i) => { item.textContent = (reached[i] ? "✓ " : "○ ") + model.get("texts")[i]; });
    said.textContent = count ? `${count} of ${items.length} goals reached` : "Can you get there?";
  };
  show();
  model.on("change:reached", show);
  const hold = (held) => { model.set("held", held); model.save_changes(); };
  const stop = whenShown(el, () => {
    const explorer = el.closest(".course-explorer"), ends = [nameControls(explorer), watchSliders(explorer, hold)];
    return () => ends.forEach((end) => end());
  });
  return () => { model.off("change:reached", show); stop(); };
}

function whenShown(el, start) {
  let end = () => cancelAnimationFrame(frame), frame;
  const look = () => { if (el.isConnected) end = start(); else frame = requestAnimationFrame(look); };
  look();
  return () => end();
}

/* Tell `hold` when a pointer takes a slider and when it lets go, wherever it is then. */
function watchSliders(explorer, hold) {
  let held = false;
  const take = (event) => { if (event.target.closest(".slider-container")) hold(held = true); };
  const release = () => { if (held) hold(held = false); };
  explorer.addEventListener("pointerdown", take, true);
  for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, release, true);
  return () => {
    explorer.removeEventListener("pointerdown", take, true);
    for (const end of ["pointerup", "pointercancel"]) window.removeEventListener(end, release, true);
    release();
  };
}

function nameControls(explorer) {
  const dress = () => {
    explorer.querySelectorAll(".widget-inline-hbox:has([role=slider])").forEach((row) => {
      const label = row.querySelector(".widget-label").textContent, value = row.querySelector(".widget-readout");
      const handle = row.querySelector("[role=slider]");
      handle.setAttribute("aria-label", label);
      handle.setAttribute("aria-valuetext", value.textContent);
      value.setAttribute("role", "textbox");
      value.setAttribute("aria-label", label + ", typed");
    });
    explorer.querySelectorAll(".widget-toggle-button").forEach((square) => {
      square.setAttribute("aria-pressed", square.classList.contains("mod-active"));
      if (square.title) square.setAttribute("aria-label", square.title);
    });
  };
  const watch = new MutationObserver(dress);
  watch.observe(explorer, { childList: true, characterData: true, subtree: true, attributes: true, attributeFilter: ["class", "title"] });
  dress();
  return () => watch.disconnect();
}

export default { render };
