/* A pad to draw on: a few pixels shown large, painted with mouse, finger, pen or keyboard. */
const EVERY = 100;  // ms between two messages to Python while drawing
const STEPS_BACK = 50;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const plain = (event) => !(event.ctrlKey || event.metaKey || event.altKey);

function render({ model, el }) {
  const make = (tag, props, parent) => parent.appendChild(Object.assign(document.createElement(tag), props));
  const pad = make("div", { className: "course-pad" }, el);
  make("div", { className: "course-pad-label", textContent: model.get("label"), ariaHidden: true }, pad);
  const frame = make("div", { className: "course-pad-frame" }, pad);
  const canvas = make("canvas", { tabIndex: 0 }, frame);
  const cursor = make("div", { className: "course-pad-cursor" }, frame);
  const buttons = make("div", { className: "course-pad-buttons" }, pad);
  const said = make("div", { className: "course-pad-said", ariaLive: "polite" }, pad);
  const context = canvas.getContext("2d");
  const size = canvas.width = canvas.height = model.get("size");
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", model.get("label") + ". Arrow keys move the cursor, space paints, " +
    "shift and an arrow key paint a line, c clears, u takes a step back.");

  let ink = new Uint8Array(size * size), at = [size >> 1, size >> 1];
  let sent = null, timer = null, due = 0, last = null;
  const history = [];

  const show = () => {
    const image = context.createImageData(size, size);
    ink.forEach((value, i) => image.data.set([value, value, value, 255], 4 * i));
    context.putImageData(image, 0, 0);
    Object.assign(cursor.style, { left: 100 * at[0] / size + "%", top: 100 * at[1] / size + "%", width: 100 / size + "%" });
    undo.disabled = !history.length;
  };
  const remember = () => { history.push(ink.slice()); history.splice(0, history.length - STEPS_BACK); };
  const flush = () => {
    if (timer === null) return;
    clearTimeout(timer);
    timer = null;
    due = performance.now() + EVERY;
    model.set("pixels", (sent = new DataView(ink.slice().buffer)));
    model.save_changes();
  };
  const changed = () => {
    show();
    timer ??= setTimeout(flush, Math.max(0, due - performance.now()));
  };
  const receive = () => {  // a drawing of Python's, or of another view; not the echo of one's own
    const bytes = model.get("pixels");
    if (bytes === sent || bytes.byteLength !== size * size) return;
    remember();
    ink = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength).slice();
    show();
  };
  const paint = ([ax, ay], [bx, by]) => {  // a line with round ends and an edge one pixel wide
    const radius = model.get("brush") / 2, dx = bx - ax, dy = by - ay, long = dx * dx + dy * dy;
    for (let y = 0, i = 0; y < size; y++) for (let x = 0; x < size; x++, i++) {
      const px = x + 0.5 - ax, py = y + 0.5 - ay;
      const t = long ? Math.min(1, Math.max(0, (px * dx + py * dy) / long)) : 0;
      const full = radius + 0.5 - Math.hypot(px - t * dx, py - t * dy);
      ink[i] = Math.max(ink[i], Math.round(255 * Math.min(1, Math.max(0, full))));
    }
    changed();
  };
  const clear = () => { remember(); ink.fill(0); changed(); said.textContent = "Cleared"; };
  const back = () => {
    if (!history.length) return;
    ink = history.pop();
    changed();
    said.textContent = "One step back";
  };
  const button = (text, onclick) => make("button", { type: "button", textContent: text, onclick }, buttons);
  for (const what of model.get("actions")) button(what, () => { flush(); model.send({ ask: what }); });
  const undo = button("Undo", back);
  button("Clear", clear);

  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width * size, (event.clientY - box.top) / box.height * size];
  };
  canvas.onpointerdown = (event) => {
    if (event.button || !event.isPrimary) return;
    canvas.setPointerCapture(event.pointerId);
    remember();
    model.set("pen_down", true);
    paint((last = point(event)), last);
  };
  canvas.onpointermove = (event) => {
    if (!last || !event.isPrimary) return;
    const passed = event.getCoalescedEvents?.() ?? [];
    for (const each of passed.length ? passed : [event]) paint(last, (last = point(each)));
  };
  const lift = () => {
    last = null;
    model.set("pen_down", false);
    flush();
    model.save_changes();
  };
  canvas.onlostpointercapture = lift;
  canvas.onkeydown = (event) => {
    const key = event.key.toLowerCase(), arrow = ARROWS[event.key];
    if (!plain(event) || !(arrow || [" ", "c", "u"].includes(key))) return;
    event.preventDefault();
    if (key === "c") return clear();
    if (key === "u") return back();
    const middle = () => [at[0] + 0.5, at[1] + 0.5], from = middle();
    if (arrow) at = at.map((v, i) => Math.min(size - 1, Math.max(0, v + arrow[i])));
    if (!arrow || event.shiftKey) { remember(); paint(from, middle()); }
    show();
    said.textContent = `Row ${at[1] + 1}, column ${at[0] + 1}, ${ink[at[1] * size + at[0]] > 127 ? "ink" : "paper"}`;
  };
  pad.onkeydown = (event) => {  // else JupyterLab would take c for "copy this cell" and arrows for "leave it"
    if (plain(event) && (event.key.length === 1 || event.key in ARROWS)) event.stopPropagation();
  };

  receive();
  history.length = 0;
  show();
  model.on("change:pixels", receive);
  return () => { flush(); model.off("change:pixels", receive); };
}

export default { render };
