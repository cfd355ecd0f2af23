/* Makes what a drawing marks with data-step a button, tells the kernel which one was pressed and how many steps there
   are, and lets the reader's place and focus live on in the next drawing. */
function render({ model, el }) {
  let explorer, frame, focused = null, left = 0;
  const key = (one) => `${one.dataset.step} ${one.dataset.item ?? ""}`;
  const marked = () => [...explorer.querySelectorAll("[data-step]")];
  const scroller = () => explorer.querySelector(".course-steps");

  const dress = () => {
    const all = marked();
    all.forEach((one) => { one.tabIndex = 0; one.setAttribute("role", "button"); one.style.cursor = "pointer"; });
    explorer.querySelectorAll("[data-live]").forEach((one) => { one.hidden = false; });  // what only a kernel can do
    if (!all.length) return;
    model.send({ count: Math.max(...all.map((one) => Number(one.dataset.step))) });
    const box = scroller(), chosen = all.find((one) => one.hasAttribute("aria-current"));
    if (box) {
      box.scrollLeft = left;
      if (chosen) {  // only sideways: the page stays where it is
        const at = chosen.getBoundingClientRect(), seen = box.getBoundingClientRect();
        box.scrollLeft += Math.min(0, at.left - seen.left - 40) + Math.max(0, at.right - seen.right + 40);
      }
    }
    if (focused) all.find((one) => key(one) === focused)?.focus({ preventScroll: true });
    focused = null;
  };
  const press = (event) => {
    const one = event.target.closest?.("[data-step]");
    if (!one || (event.type === "keydown" && event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    event.stopPropagation();  // Shift+Enter and the like are JupyterLab's
    focused = event.type === "keydown" ? key(one) : null;
    model.send({ step: Number(one.dataset.step), item: one.dataset.item ?? "" });
  };
  const scrolled = (event) => { if (event.target === scroller()) left = event.target.scrollLeft; };
  const watch = new MutationObserver((changes) => {
    if (changes.some((change) => [...change.addedNodes].some((node) => node.querySelector?.("[data-step]")))) dress();
  });
  const start = () => {
    if (!el.isConnected) { frame = requestAnimationFrame(start); return; }
    explorer = el.closest(".course-explorer");
    explorer.addEventListener("click", press);
    explorer.addEventListener("keydown", press);
    explorer.addEventListener("scroll", scrolled, true);
    watch.observe(explorer, { childList: true, subtree: true });
    dress();
  };
  start();
  return () => {
    cancelAnimationFrame(frame);
    watch.disconnect();
    explorer?.removeEventListener("click", press);
    explorer?.removeEventListener("keydown", press);
    explorer?.removeEventListener("scroll", scrolled, true);
  };
}

export default { render };
