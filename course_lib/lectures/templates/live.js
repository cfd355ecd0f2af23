/* The live page: a line says how far the run of the lesson is; widgets that are alive take the place of their frames. */
window.voila_process = window.voila_finish = window.voila_heartbeat = function () {};
window.courseLive = (function () {
  "use strict";
  const line = document.createElement("p");
  line.className = "live-line";
  line.setAttribute("role", "status");
  document.body.append(line);

  function adopt(holder) {
    const slide = document.getElementById(holder.dataset.slide);
    slide.querySelector(".body").append(holder);
    const watch = new MutationObserver(() => {
      if (!holder.querySelector(".jupyter-widgets img, .jupyter-widgets canvas, .widget-html-content > *")) return;
      watch.disconnect();
      slide.classList.add("alive");
      slide.querySelectorAll(".course-stepper .fragment").forEach((mark) => mark.remove());
      if (window.Reveal && Reveal.isReady()) Reveal.sync();
      const waiting = [...document.querySelectorAll(".live")].filter((one) => !one.closest(".alive"));
      if (!waiting.length) line.textContent = "";
    });
    watch.observe(holder, { childList: true, subtree: true });
  }

  function step(number, count) {
    document.querySelectorAll("body > .live").forEach(adopt);
    line.textContent = "The lesson runs: " + number + " of " + count + ". Until it is done, widgets show their frames.";
  }
  step.finished = () => { line.textContent = "Widgets are starting ..."; };
  return step;
})();
