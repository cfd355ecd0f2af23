/* A playground on a page without a kernel: a site, or the slides of a deck. */

/* Put a playground, whose script is on the page, over its static form. That form stays for print, and where this fails.
   Returns whether it lives. */
export function startPlayground(box) {
  const root = document.createElement("div");
  root.className = "course-playground-live";
  root.dataset.preventSwipe = "";  // a finger that drags here does not change the slide
  box.append(root);
  try {
    window.coursePlaygrounds[box.dataset.playground]({ root, config: JSON.parse(box.dataset.config), kernel: null });
    box.classList.add("playing");
    return true;
  } catch (error) {
    root.remove();
    if (!error.expected) console.warn(error);
    return false;
  }
}
