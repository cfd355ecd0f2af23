/* What the pages do: start playgrounds, step through the stored frames of a widget, let the keyboard scroll what is wide.
   No request leaves the site. */
(function () {
  "use strict";
  const SCRIPTS = new URL("playgrounds/", document.currentScript.src);

  /* A playground starts when it comes near; until then, and where its script fails, its static form is there. */
  const watch = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      watch.unobserve(target);
      const script = document.createElement("script");
      script.src = new URL(target.dataset.playground + ".js", SCRIPTS);
      script.addEventListener("load", () => startPlayground(target));
      document.head.append(script);
    }
  }, { rootMargin: "800px" });

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
    document.querySelectorAll(".course-playground").forEach((box) => watch.observe(box));
    scrollable();
    addEventListener("resize", scrollable);
    document.addEventListener("toggle", scrollable, true);
  });
})();
