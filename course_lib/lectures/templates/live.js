/* The live page: a line says how far the run of the lesson is; widgets that are alive take the place of their frames,
   and give it back when the process that computes them is gone. */
window.voila_process = window.voila_finish = window.voila_heartbeat = function () {};
window.courseLive = (function () {
  "use strict";
  const SECONDS_BETWEEN_LOOKS = 3;
  const DRAWING = ".widget-htmlmath-content";
  const line = document.createElement("p");
  line.className = "live-line";
  line.setAttribute("role", "status");
  document.body.append(line);
  let failed = "";
  let gone = false;

  /* Words that concern the widgets alone are "quiet": they stand on the slides of those that do not live. */
  function tell(words, quiet) {
    if (gone) return;
    line.textContent = words;
    line.classList.toggle("quiet", quiet);
  }

  function allLive() {
    return [...document.querySelectorAll(".live")].every((holder) => holder.closest(".alive"));
  }

  /* While a slide is alive, a clicker does not go through the steps of its frames. */
  function setAlive(slide, alive) {
    slide.classList.toggle("alive", alive);
    slide.querySelectorAll(".course-stepper > [data-step]").forEach((mark) => mark.classList.toggle("fragment", !alive));
    if (window.Reveal && Reveal.isReady()) Reveal.sync();
  }

  /* What ipywidgets leaves out: names for sliders and squares, and for a drawing the shape that its size follows. */
  function dress(holder) {
    holder.querySelectorAll(".widget-inline-hbox [role=slider]").forEach((handle) => {
      const row = handle.closest(".widget-inline-hbox");
      handle.setAttribute("aria-label", row.querySelector(".widget-label").textContent);
      handle.setAttribute("aria-valuetext", row.querySelector(".widget-readout").textContent);
    });
    holder.querySelectorAll(".widget-readout").forEach((value) => {
      const label = value.closest(".widget-inline-hbox").querySelector(".widget-label");
      value.setAttribute("role", "textbox");
      value.setAttribute("aria-label", label.textContent + ", typed");
    });
    holder.querySelectorAll(".widget-toggle-button").forEach((square) => {
      square.setAttribute("aria-pressed", square.classList.contains("mod-active"));
      if (square.title) square.setAttribute("aria-label", square.title);
    });
    holder.querySelectorAll(DRAWING).forEach((drawing) => {
      const picture = drawing.querySelector("img");
      if (!picture) return;
      const wide = picture.getAttribute("width"), high = picture.getAttribute("height");
      drawing.style.setProperty("--wide", wide);
      drawing.style.setProperty("--high", high);
      drawing.classList.toggle("tall", wide < 2 * high);
    });
  }

  /* Text, tables, pictures beside each other and a column of controls get smaller, step by step, where there is more of
     them than the slide has room for. A figure alone follows its room by its style. */
  const SCALES = [1, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6];
  const overflows = (box) => box.scrollHeight > box.clientHeight + 1;

  function fit(holder) {
    holder.querySelectorAll(DRAWING).forEach((drawing) => {
      if (drawing.querySelectorAll("img").length === 1) return;
      const room = drawing.parentElement;
      for (const scale of SCALES) {
        drawing.style.zoom = scale;
        drawing.style.width = room.clientWidth / scale + "px";
        drawing.style.height = room.clientHeight / scale + "px";
        if (![drawing, ...drawing.children].some(overflows)) return;
      }
    });
    holder.querySelectorAll(".course-play").forEach((play) => {
      for (const scale of SCALES) {
        play.style.zoom = scale;
        if (play.getBoundingClientRect().bottom <= holder.getBoundingClientRect().bottom + 1) return;
      }
    });
    holder.querySelectorAll(".widget-hbox:has(> .widget-htmlmath) > .widget-vbox").forEach((controls) => {
      const room = controls.parentElement;
      for (const scale of SCALES) {
        controls.style.zoom = scale;
        if (controls.getBoundingClientRect().height <= room.getBoundingClientRect().height + 1) return;
      }
    });
  }

  function adopt(holder) {
    const slide = document.getElementById(holder.dataset.slide);
    if (!slide) { holder.remove(); return; }  // the lecturer's file hides it
    holder.dataset.preventSwipe = "";
    slide.querySelector(".body").append(holder);
    if (slide.querySelector(".playing")) {  // it lives without a kernel, and keeps what the hall has set
      setAlive(slide, true);
      return;
    }
    const watch = new MutationObserver(() => {
      if (!holder.querySelector(DRAWING + " > *, .course-play")) return;
      dress(holder);
      fit(holder);
      if (holder.dataset.living) return;
      holder.dataset.living = "yes";
      setAlive(slide, true);
      if (allLive()) tell(failed, true);
    });
    if (window.Reveal) Reveal.on("slidechanged", (event) => event.currentSlide === slide && fit(holder));
    watch.observe(holder, { childList: true, characterData: true, subtree: true, attributes: true, attributeFilter: ["title"] });
  }

  /* Does the process still run that computes? If not, the frames come back: a lecture goes on with them. */
  function watchKernel(address) {
    let silent = 0;
    const looking = setInterval(async () => {
      const answer = await fetch(address, { cache: "no-store" }).catch(() => null);
      silent = answer ? 0 : silent + 1;
      if (answer && answer.status !== 404 || silent === 1) return;
      clearInterval(looking);
      tell("Widgets step through frames. " + (answer
        ? "The process behind them has ended: reload the page to run the lesson again."
        : "The lecture was stopped in the terminal: start it again, then reload the page."), true);
      gone = true;
      document.querySelectorAll("section.alive:not(:has(.playing))").forEach((slide) => setAlive(slide, false));
    }, 1000 * SECONDS_BETWEEN_LOOKS);
  }

  /* A page that is left takes its kernel with it. Until JupyterLab's widgets are here, which see to it, we do. The server
     heeds only a page that knows the cookie `_xsrf`, and sets none for a page like this. */
  let leave = function () {};

  function provideCookie() {
    const found = document.cookie.match("\\b_xsrf=([^;]*)\\b");
    if (found) return found[1];
    const token = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    document.cookie = "_xsrf=" + token + "; path=/; SameSite=Strict";
    return token;
  }

  return {
    begin(baseUrl, kernelId) {
      addEventListener("resize", () => document.querySelectorAll(".live").forEach(fit));
      watchKernel(baseUrl + "api/kernels/" + kernelId);
      provideCookie();
      leave = () => {
        const form = new FormData();
        form.append("_xsrf", provideCookie());
        navigator.sendBeacon(baseUrl + "voila/api/shutdown/" + kernelId, form);
      };
      addEventListener("beforeunload", leave);
    },
    ran(number, count, error) {
      document.querySelectorAll("body > .live").forEach(adopt);
      if (error && !failed) failed = "Cell " + number + " failed, and widgets that need it step through frames. " + error;
      tell("The lesson runs: " + number + " of " + count + ". Until it is done, widgets show their frames.", false);
    },
    finished() {
      removeEventListener("beforeunload", leave);
      tell(failed || (allLive() ? "" : "This widget is starting ..."), true);
    },
  };
})();
