/* What a deck does: start playgrounds, typeset the mathematics, step through frames, show the notes. Plain JavaScript, no request. */
(function () {
  "use strict";

  const student = "student" in document.documentElement.dataset;
  const printing = /handout/.test(location.search);
  const root = document.documentElement;
  const CONTROLS = "input, select, textarea, summary, button, [role=slider], [contenteditable]";
  const SMALLEST_WORDS = 30, SMALLEST_CODE = 24, SMALLEST_PRINTED = 24, SMALLEST_FRAME = 18;  /* pixels on a slide of 1280 x 720 */

  const PAGE = 1009, SMALLEST_NOTES = 9;  /* pixels of A4 between its margins, and of a hand-out's notes */

  /* ------------------------------------------------------------------------------------------------- steppers */

  const steppers = [];

  function stepper(box) {
    const controls = JSON.parse(box.dataset.controls);
    const frames = new Map();
    box.querySelectorAll(":scope > details").forEach((frame) => frames.set(frame.dataset.at, frame));
    let at = box.querySelector(":scope > details[open]").dataset.at.split(" ").map(Number);
    const start = at.slice();
    const inputs = [];
    const bar = document.createElement("div");
    bar.className = "moves";
    bar.dataset.preventSwipe = "";

    function show(places) {
      at = places.map((place, i) => Math.max(0, Math.min(controls[i][1].length - 1, place)));
      const open = frames.get(at.join(" "));
      frames.forEach((frame) => { frame.open = frame === open; });
      inputs.forEach(({ range, value }, i) => {
        const words = controls[i][1][at[i]];
        range.value = at[i];
        range.setAttribute("aria-valuetext", words);
        value.textContent = words;
      });
    }

    function move(i, place) {
      show(at.map((old, k) => (k === i ? place : old)));
    }

    controls.forEach(([label, words], i) => {
      const line = document.createElement("div");
      line.className = words.every((text) => text.length < 8) ? "move" : "move long";
      const name = document.createElement("label");
      const range = document.createElement("input");
      const value = document.createElement("output");
      range.id = box.id + "-" + i;
      Object.assign(range, { type: "range", min: 0, max: words.length - 1, step: 1 });
      name.htmlFor = range.id;
      name.textContent = label;
      value.className = "value";
      value.setAttribute("for", range.id);
      range.addEventListener("input", () => move(i, +range.value));
      const button = (sign, what, by) => {
        const made = document.createElement("button");
        Object.assign(made, { type: "button", textContent: sign });
        made.setAttribute("aria-label", what + ": " + label);
        made.addEventListener("click", () => move(i, at[i] + by));
        return made;
      };
      line.append(name, button("◀", "back", -1), range, button("▶", "on", 1), value);
      inputs.push({ range, value });
      bar.append(line);
    });
    box.prepend(bar);
    frames.forEach((frame) => {
      const inside = document.createElement("div");
      const picture = frame.querySelector("img");
      inside.className = picture && picture.getAttribute("width") < 2 * picture.getAttribute("height") ? "frame tall" : "frame";
      inside.append(...[...frame.childNodes].filter((node) => node.nodeName !== "SUMMARY"));
      frame.append(inside);
    });

    /* The way of a clicker: all values of the first control, from where it starts on and round, then of the second, and so on. */
    const way = [start];
    controls.forEach(([, words], i) => {
      for (let by = 1; by < words.length; by += 1) {
        way.push(way[way.length - 1].map((old, k) => (k === i ? (start[i] + by) % words.length : old)));
      }
    });
    way.slice(1).forEach((places, number) => {
      const mark = document.createElement("span");
      mark.className = "fragment unseen";
      mark.setAttribute("aria-hidden", "true");
      mark.dataset.step = number + 1;
      box.append(mark);
    });
    show(at);
    steppers.push({ box, walk: (number) => show(way[number]) });
  }

  function fragmentChanged(mark, shown) {
    if (mark.dataset.opens) mark.parentElement.querySelector("details").open = shown;
    if (mark.dataset.step) {
      const found = steppers.find((one) => one.box.contains(mark));
      if (found) found.walk(+mark.dataset.step - (shown ? 0 : 1));
    }
  }

  /* -------------------------------------------------------------------------------------------- presenter's view */

  let view = null;
  let begun = null;

  function minutesUntil(slides, last) {
    return slides.slice(0, last).reduce((sum, slide) => sum + Number(slide.dataset.minutes || 0), 0);
  }

  function clock(seconds) {
    const minutes = Math.floor(seconds / 60);
    return minutes + ":" + String(Math.floor(seconds % 60)).padStart(2, "0");
  }

  function tick() {
    if (!view || view.closed) return;
    const page = view.document;
    const planned = minutesUntil(Reveal.getSlides(), Reveal.getSlidePastCount() + 1);
    page.getElementById("time").textContent = new Date().toTimeString().slice(0, 5);
    page.getElementById("spent").textContent =
      clock((Date.now() - begun) / 1000) + " gone; after this slide: " + clock(60 * planned);
    const live = document.querySelector(".live-line");
    page.getElementById("live").textContent = live ? live.textContent : "";
  }

  function refresh() {
    if (!view || view.closed) return;
    const page = view.document, slides = Reveal.getSlides(), here = Reveal.getSlidePastCount();
    const slide = slides[here], next = slides[here + 1];
    page.title = "Notes: " + document.title;
    page.documentElement.dataset.theme = root.dataset.theme;
    page.getElementById("number").textContent = "Slide " + (here + 1) + " of " + slides.length;
    page.getElementById("heading").textContent = slide.getAttribute("aria-label");
    page.getElementById("minutes").textContent = slide.dataset.minutes + " min";
    page.getElementById("next").textContent = next ? "Next: " + next.getAttribute("aria-label") : "The last slide";
    page.getElementById("notes").innerHTML = slide.querySelector("aside.notes").innerHTML;
    const left = slide.querySelectorAll(".fragment:not(.visible)").length;
    page.getElementById("left").textContent = left ? left + " more on this slide" : "";
    tick();
  }

  function openNotes() {
    if (view && !view.closed) { view.focus(); return; }
    view = window.open("", "course-notes", "width=820,height=680");
    if (!view) { say("The browser holds the notes window back: allow pop-ups for this page, then press S again."); return; }
    begun = begun || Date.now();
    const page = view.document;
    page.documentElement.lang = "en";
    page.head.innerHTML = "<style></style>";
    page.head.firstChild.textContent = [...document.querySelectorAll("style")].map((s) => s.textContent)
      .filter((text) => /--paper|font-face|mjx-assistive-mml/.test(text)).join("\n") +
      "html,body{height:auto}body{font-size:22px;margin:24px}header{border-bottom:4px solid var(--rule);margin-bottom:12px}" +
      "h1{font-size:28px}footer{border-top:1px solid var(--line);margin-top:16px;color:var(--quiet)}.row{display:flex;gap:24px;flex-wrap:wrap}";
    page.body.innerHTML =
      '<header><div class="row"><strong id="number"></strong><span id="minutes"></span><span id="time"></span>' +
      '<span id="spent"></span></div><h1 id="heading"></h1></header><main id="notes"></main>' +
      '<footer><p id="left"></p><p id="next"></p><p id="live" role="status"></p></footer>';
    page.addEventListener("keydown", (event) => {
      const keys = { ArrowRight: "next", PageDown: "next", " ": "next", ArrowLeft: "prev", PageUp: "prev" };
      if (keys[event.key]) { event.preventDefault(); Reveal[keys[event.key]](); }
    });
    refresh();
  }

  /* A clicker's keys always change the slide: a control that has the focus loses it, and does not hear the key. */
  function clicked(event) {
    const way = { PageDown: "next", PageUp: "prev" }[event.key];
    const control = document.activeElement && document.activeElement.closest(CONTROLS);
    if (!way || !control) return;
    control.blur();
    event.preventDefault();
    event.stopPropagation();
    Reveal[way]();
  }

  function say(words) {
    document.getElementById("said").textContent = words;
  }

  function switchTheme() {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    say(root.dataset.theme + " theme");
    refresh();
  }

  /* --------------------------------------------------------------------------------------------------- beginning */

  if (!printing) document.querySelectorAll(".course-playground").forEach((box) => startPlayground(box));
  document.querySelectorAll(".course-stepper:not(.playing *)").forEach((box, i) => { box.id = "stepper-" + i; stepper(box); });
  document.querySelectorAll(":is(.question, .figure) .output details").forEach((details) => {
    const mark = document.createElement("span");
    mark.className = "fragment unseen";
    mark.setAttribute("aria-hidden", "true");
    mark.dataset.opens = "1";
    details.after(mark);
    if (printing && details.matches(".figure *")) details.open = true;
  });
  if (printing) {
    root.dataset.theme = "light";
    document.querySelectorAll(".fragment").forEach((mark) => mark.classList.remove("fragment"));
  }

  /* The hand-out: a page for each slide, its notes below it, and the answers to its questions on the last pages. */
  function handOut() {
    const sheets = document.createElement("main"), answers = document.createElement("section");
    sheets.className = "sheets reveal";
    answers.className = "answers";
    answers.innerHTML = "<h1>Answers</h1>";
    [...document.querySelectorAll(".slides > section")].forEach((slide, i) => {
      const named = (tag, more) => {
        const title = document.createElement(tag);
        title.textContent = (i + 1) + " · " + slide.getAttribute("aria-label") + more;
        return title;
      };
      slide.querySelectorAll(".question .output details").forEach((details) => {
        details.querySelector("summary").remove();
        const answer = document.createElement("div");
        answer.append(named("h2", ""), ...details.childNodes);
        answers.append(answer);
        details.outerHTML = '<p class="elsewhere">The answer stands at the end.</p>';
      });
      const sheet = document.createElement("section"), shown = document.createElement("div");
      const notes = slide.querySelector("aside.notes"), minutes = Number(slide.dataset.minutes);
      sheet.className = "sheet";
      shown.className = "shown slides";
      notes.prepend(named("h2", minutes ? " (" + minutes + " min)" : ""));
      shown.append(slide);
      sheet.append(shown);
      if (!student) sheet.append(notes);
      sheets.append(sheet);
    });
    document.getElementById("reveal-style").remove();  // it prints slides in its own way
    document.querySelector("main").replaceWith(sheets);
    if (answers.children.length > 1) sheets.append(answers);
    root.classList.add("handout");
    MathJax.typeset([sheets]);
    sheets.querySelectorAll(".sheet").forEach((sheet) => {
      const notes = sheet.querySelector("aside.notes");
      for (let size = 14; notes && size > SMALLEST_NOTES && sheet.offsetHeight > PAGE; size -= 0.5) notes.style.fontSize = size + "px";
    });
    root.dataset.ready = "yes";
  }

  /* A formula that is wider than its slide becomes as much smaller. */
  function fitFormulas() {
    document.querySelectorAll(".page mjx-container[display=true]").forEach((box) => {
      const wide = box.querySelector("svg").getBoundingClientRect().width, room = box.getBoundingClientRect().width;
      if (wide > room) box.style.fontSize = Math.floor(100 * room / wide) + "%";
    });
  }

  /* Words and code that do not fit become smaller, as far as a hall can read them; the rest is for the author. */
  function fitText() {
    const overflows = (box) => box.scrollHeight > box.clientHeight || box.scrollWidth > box.clientWidth;
    document.querySelectorAll(".words .body, .printout .body, .code.dense .body").forEach((body) => {
      const least = body.matches(".words *") ? SMALLEST_WORDS : body.matches(".printout *") ? SMALLEST_PRINTED : SMALLEST_CODE;
      let size = parseFloat(getComputedStyle(body).fontSize);
      while (size > least && [body, ...body.querySelectorAll("pre")].some(overflows)) body.style.fontSize = --size + "px";
    });
    document.querySelectorAll(".question .body").forEach((body) => {  // with its answer open
      const folds = [...body.querySelectorAll("details:not([open])")], outputs = [...body.querySelectorAll(".output")];
      folds.forEach((fold) => { fold.open = true; });
      for (let size = 31; size >= SMALLEST_CODE && overflows(body); size -= 1) outputs.forEach((output) => { output.style.fontSize = size + "px"; });
      folds.forEach((fold) => { fold.open = false; });
    });
    document.querySelectorAll(".course-stepper:not(.playing *)").forEach((box) => {
      const open = box.querySelector(":scope > details[open]"), frames = [...box.querySelectorAll(":scope > details")];
      const tooLarge = (frame) => {
        frames.forEach((one) => { one.open = one === frame; });
        return [box, box.closest(".output")].some(overflows);
      };
      for (let size = 23; size >= SMALLEST_FRAME && frames.some(tooLarge); size -= 1) box.style.fontSize = size + "px";
      frames.forEach((one) => { one.open = one === open; });
    });
  }

  /* A playground that is higher than its slide loses its list of goals, which the notes have, then becomes smaller. */
  const SCALES = [0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65];

  function fitPlayground(play) {
    const room = play.closest(".body");
    const over = () => room.clientHeight && play.getBoundingClientRect().bottom > room.getBoundingClientRect().bottom + 1;
    if (over()) play.classList.add("tight");
    SCALES.filter((scale) => scale < (play.style.zoom || 1)).forEach((scale) => { if (over()) play.style.zoom = scale; });
  }

  const grown = new ResizeObserver((changes) => changes.forEach(({ target }) => fitPlayground(target)));
  const watchPlaygrounds = () => document.querySelectorAll(".course-playground-live").forEach((play) => grown.observe(play));

  /* The mathematics first, while every slide has a size: a formula in a hidden slide would be measured as nothing. */
  const FONTS = ["30px 'Source Sans Pro'", "600 30px 'Source Sans Pro'", "italic 30px 'Source Sans Pro'", "24px 'Course Mono'"];
  Promise.all([window.mathjaxReady, ...FONTS.map((font) => document.fonts.load(font))]).then(() => {
    MathJax.typeset([document.querySelector(".slides")]);
    fitText();
    fitFormulas();
  }).then(() => {
    root.dataset.measured = "yes";
    if (printing) { handOut(); return; }
    Reveal.initialize({
      width: 1280, height: 720, margin: 0, center: false, minScale: 0.1, maxScale: 4,
      controls: true, progress: true, hash: true, transition: "none", backgroundTransition: "none",
      slideNumber: "c/t", help: true,
      keyboardCondition: (event) => {
        const control = event.target.closest && event.target.closest(CONTROLS);
        if (control && event.key === "Escape") { control.blur(); return false; }
        return !control || control.matches("button, summary") && /^Arrow/.test(event.key);
      },
    }).then(() => {
      if (!student) Reveal.addKeyBinding({ keyCode: 83, key: "S", description: "Notes in a window of their own" }, openNotes);
      Reveal.addKeyBinding({ keyCode: 84, key: "T", description: "Dark or light theme" }, switchTheme);
      Reveal.on("slidechanged", () => {
        if (document.activeElement && document.activeElement.closest(CONTROLS)) document.activeElement.blur();
        refresh();
      });
      Reveal.on("fragmentshown", (event) => { event.fragments.forEach((mark) => fragmentChanged(mark, true)); refresh(); });
      Reveal.on("fragmenthidden", (event) => {  // the last one first, so that a stepper ends where the first one began
        [...event.fragments].reverse().forEach((mark) => fragmentChanged(mark, false));
        refresh();
      });
      document.addEventListener("keydown", clicked, true);
      watchPlaygrounds();
      setInterval(tick, 1000);
      root.dataset.ready = "yes";
    });
  });
})();
