/* What the pages do: step through the stored frames of a widget, let the keyboard scroll what is wide. No request. */
(function () {
  "use strict";

  function stepper(box) {
    const controls = JSON.parse(box.dataset.controls);
    const frames = [...box.querySelectorAll(":scope > details")];
    const at = frames.find((frame) => frame.open).dataset.at.split(" ").map(Number);
    const bar = document.createElement("div");
    bar.className = "moves";

    controls.forEach(([name, words], i) => {
      const label = document.createElement("label");
      const range = document.createElement("input");
      const value = document.createElement("output");
      Object.assign(range, { type: "range", min: 0, max: words.length - 1, value: at[i] });
      const say = () => {
        value.textContent = words[at[i]];
        range.setAttribute("aria-valuetext", words[at[i]]);
      };
      range.addEventListener("input", () => {
        at[i] = Number(range.value);
        frames.forEach((frame) => { frame.open = frame.dataset.at === at.join(" "); });
        say();
      });
      say();
      range.setAttribute("aria-label", name);
      label.append(name, range, value);
      bar.append(label);
    });
    box.prepend(bar);
    box.classList.add("stepping");
  }

  function scrollable() {
    document.querySelectorAll("article :is(pre, .table-wrapper, .cell_output > div, .math)").forEach((box) => {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;  // no page can read another
    document.querySelectorAll(".course-stepper").forEach(stepper);
    scrollable();
    addEventListener("resize", scrollable);
    document.addEventListener("toggle", scrollable, true);
  });
})();
