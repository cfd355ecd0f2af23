"use strict";
/* The marking page: one answer at a time, points for each part by keyboard, kept in this browser, downloaded as JSON. */

const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const {assignment, file, format} = document.body.dataset;
const STORE = `course marking ${assignment}`;
const answers = all("article.answer");
const comment = find("#comment");
let here = answers[0];
let part = 0; // the outlined part
let last = null; // the part that was given points last

/* An answer is known by its student, its question and its text: of a changed answer nothing is kept. */
const name = (answer) => [answer.dataset.student, answer.dataset.cell, answer.dataset.answer.slice(0, 16)].join(" ");
const state = read();

function read() {
  try {
    return JSON.parse(localStorage.getItem(STORE)) || {};
  } catch {
    warn("This browser keeps nothing for this page: download your marks before you close it.");
    return {};
  }
}

function keep() {
  try {
    localStorage.setItem(STORE, JSON.stringify(state));
  } catch {
    warn("This browser keeps nothing for this page: download your marks before you close it.");
  }
}

function warn(text) {
  find("#warning").textContent = text;
  find("#warning").hidden = false;
}

const scheme = () => all(".scheme").find((one) => one.dataset.cell === here.dataset.cell);
const parts = () => all(".aspect", scheme());
const marks = (answer = here) => (state[name(answer)] ??= {points: {}, comment: ""});
const asked = (answer) => all(`.scheme[data-cell="${answer.dataset.cell}"] .aspect`);
const marked = (answer) => asked(answer).every((one) => one.dataset.title in (state[name(answer)]?.points ?? {}));
const begun = (answer) => name(answer) in state && Object.keys(state[name(answer)].points).length > 0;
const group = () => answers.filter((one) => one.dataset.cell === here.dataset.cell);
const shown = (number) => String(Math.round(100 * number) / 100);
const sum = (answer) => Object.values(marks(answer).points).reduce((total, number) => total + number, 0);

/* showing ------------------------------------------------------------------------------------------------------ */

function show(answer, {first = true} = {}) {
  here = answer;
  if (first) [part, last] = [0, null];
  if (first) all("main > section").forEach((one) => one.scrollTo(0, 0));
  answers.forEach((one) => (one.hidden = one !== here));
  all(".scheme").forEach((one) => (one.hidden = one !== scheme()));
  find("#student").textContent = here.dataset.student;
  find("#question").value = here.dataset.cell;
  comment.value = marks().comment;
  refresh();
  for (const box of [here, scheme()]) {
    if (box.dataset.typeset || !window.MathJax?.typeset) continue;
    box.dataset.typeset = "yes";
    MathJax.typeset([box]);
  }
}

function refresh() {
  const {points} = marks();
  parts().forEach((one, number) => {
    const given = points[one.dataset.title];
    one.classList.toggle("current", number === part);
    one.classList.toggle("done", given !== undefined);
    find("input", one).value = given ?? "";
    all(".typical button", one).forEach((button) =>
      button.setAttribute("aria-pressed", comment.value.includes(button.dataset.comment)));
  });
  const left = parts().filter((one) => !(one.dataset.title in points)).length;
  const still = left ? ` so far, ${left} ${left === 1 ? "part" : "parts"} without points` : "";
  find("#total").textContent = `${shown(sum(here))} of ${shown(+scheme().dataset.points)} points${still}`;
  const mine = group();
  find("#progress").textContent = `${mine.filter(marked).length} of ${mine.length} marked here, ` +
    `${answers.filter(marked).length} of ${answers.length} in all`;
  find("#students").replaceChildren(...mine.map((one, number) => {
    const button = document.createElement("button");
    const done = marked(one);
    button.type = "button";
    button.textContent = `${number + 1}${done ? " ✓" : begun(one) ? " …" : ""}`;
    button.className = done ? "marked" : "";
    button.title = `${one.dataset.student}: ${done ? `${shown(sum(one))} points` : "not marked yet"}`;
    if (one === here) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => show(one));
    return button;
  }));
}

/* marking ------------------------------------------------------------------------------------------------------ */

function outline(number) {
  part = Math.max(0, Math.min(number, parts().length - 1));
  refresh();
  parts()[part].scrollIntoView({block: "nearest"});
}

/* Points for one part, within its range; nothing for none. */
function give(one, number) {
  const {points} = marks();
  if (number === null || Number.isNaN(number)) delete points[one.dataset.title];
  else points[one.dataset.title] = Math.max(0, Math.min(number, +one.dataset.points));
  last = one;
  keep();
  refresh();
}

function giveHere(number) {
  const one = parts()[part];
  if (number > +one.dataset.points) return;
  give(one, number);
  outline(part + 1);
}

/* A typical partial answer: its points, and its comment, which a second press takes back. */
function choose(one, button) {
  const line = `${one.dataset.title}: ${button.dataset.comment}`;
  const lines = comment.value.split("\n").filter((text) => text.trim());
  const there = lines.indexOf(line);
  if (there >= 0) lines.splice(there, 1);
  else lines.push(line);
  write(lines.join("\n"));
  give(one, there >= 0 ? null : +button.dataset.points);
  if (there < 0) outline(parts().indexOf(one) + 1);
}

function write(text) {
  comment.value = text;
  marks().comment = text;
  keep();
}

function clear() {
  delete state[name(here)];
  keep();
  show(here);
}

/* going -------------------------------------------------------------------------------------------------------- */

function go(step) {
  const mine = group();
  const next = mine[mine.indexOf(here) + step];
  if (next) show(next);
}

function goUnmarked() {
  const start = answers.indexOf(here);
  const order = [...answers.slice(start + 1), ...answers.slice(0, start + 1)];
  const same = order.filter((one) => one.dataset.cell === here.dataset.cell);
  const next = [...same, ...order].find((one) => !marked(one));
  if (next) show(next);
}

function goQuestion(cell) {
  const next = answers.find((one) => one.dataset.cell === cell && one.dataset.student === here.dataset.student);
  show(next ?? answers.find((one) => one.dataset.cell === cell));
}

function nextQuestion() {
  const names = all("#question option").map((option) => option.value);
  goQuestion(names[(names.indexOf(here.dataset.cell) + 1) % names.length]);
}

function save() {
  const ready = answers.filter(marked).map((one) => ({
    student: one.dataset.student, cell: one.dataset.cell, answer: one.dataset.answer,
    points: sum(one), comment: marks(one).comment.trim(),
  }));
  const text = JSON.stringify({format, assignment, marks: ready}, null, 1);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type: "application/json"}));
  link.download = file;
  link.click();
  URL.revokeObjectURL(link.href);
}

/* keys and clicks ---------------------------------------------------------------------------------------------- */

const KEYS = {
  n: () => go(1), p: () => go(-1), u: goUnmarked, q: nextQuestion, s: save, x: clear,
  t: () => giveHere(+parts()[part].dataset.points), w: () => comment.focus(), "?": () => find("#help").showModal(),
  ArrowDown: () => outline(part + 1), ArrowUp: () => outline(part - 1),
  ".": () => last && give(last, (marks().points[last.dataset.title] ?? 0) + 0.5),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || find("#help").open) return;
  const typing = event.target.matches("textarea, input, select");
  if (event.key === "Escape" && typing) event.target.blur();
  if (typing) return;
  const typical = all(".typical button", parts()[part])["abcdef".indexOf(event.key)];
  const action = /^[0-9]$/.test(event.key) ? () => giveHere(+event.key) :
    typical && event.key.length === 1 ? () => choose(parts()[part], typical) : KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

comment.addEventListener("input", () => write(comment.value));
comment.addEventListener("blur", refresh);
find("#question").addEventListener("change", (event) => goQuestion(event.target.value));
for (const [button, action] of [["#next", () => go(1)], ["#previous", () => go(-1)], ["#save", save],
  ["#keys", KEYS["?"]]]) find(button).addEventListener("click", action);
for (const one of all(".aspect")) {
  find("input", one).addEventListener("change", (event) =>
    give(one, event.target.value === "" ? null : Number(event.target.value)));
  one.addEventListener("pointerdown", () => {
    const number = parts().indexOf(one);
    if (number !== part) outline(number);
  });
  for (const button of all(".typical button", one)) button.addEventListener("click", () => choose(one, button));
}
show(here);
window.MathJax?.startup?.promise?.then(() => show(here, {first: false}));
