/* A start and a goal that are dragged through a maze, and the trajectory of a Decision Transformer (lesson 16). */
import { stage, button, buttons, slider, clamp, node, put } from "./kit.js";
import { plane, point } from "./plane.js";
import { mazePlane } from "./maze.js";
import { needsModel, siteModel } from "./site.js";
import { argmax } from "../engine/tensor.js";
import { DecisionTransformer } from "../engine/decision.js";

/* The cells of a trajectory: the most probable action at each step, until the goal or for `length` steps. */
export function agentWay(model, { after, length }, start, goal, asked) {
  const cells = [start], states = [], actions = [], toGo = [];
  const ones = (size, ...places) => Float32Array.from({ length: size }, (_, i) => Number(places.includes(i)));
  while (cells.at(-1) !== goal && actions.length < length) {
    states.push(ones(2 * after.length, cells.at(-1), after.length + goal));
    toGo.push((asked + actions.length) / length);
    const action = argmax(model.act(toGo, states, actions));
    actions.push(ones(after[0].length, action));
    cells.push(after[cells.at(-1)][action]);
  }
  return cells;
}

/* What is known of the state: `found.ways` has the trajectory of each return from 0 down, between one start and goal. */
const waysOf = ({ start, goal, found }) => (found?.start === start && found.goal === goal ? found.ways : []);

/* { cells, steps, arrives, shortest } of a state; null while its trajectory is not known. */
export function agentWalked(state, { distances }) {
  const cells = waysOf(state)[-state.asked];
  return cells ? { cells, steps: cells.length - 1, arrives: cells.at(-1) === state.goal, shortest: distances[state.goal][state.start] } : null;
}

/* Goals are given the state and what was walked. */
export const agentGoals = [
  (_, { steps, arrives, shortest }) => arrives && steps >= 20 && steps >= 2 * shortest,
  (_, { arrives }) => !arrives,
  ({ asked }, { steps, arrives, shortest }) => asked > -shortest && arrives && steps === shortest,
];

export function agentWords(state, config) {
  const walked = agentWalked(state, config);
  return walked ? `Asked for ${state.asked}, it got ${-walked.steps}, and ended ${walked.arrives ? "at the goal" : "not at the goal"}.` : "";
}

export function agent({ root, config, kernel }) {
  needsModel(kernel, config.models);
  const { walls, cells, after, targets, pairs, length } = config, start = { asked: -10, start: pairs[0][0], goal: pairs[0][1], found: null };
  let model = null, busy = false, held = false, removed = false;

  const floor = mazePlane({ label: "Drag the start and the goal", walls, height: 290, role: "group" });
  for (const goal of targets) floor.area.append(node("circle", { class: "play-target", cx: floor.x(cells[goal][1]), cy: floor.y(cells[goal][0]), r: 8 }));
  const way = floor.way("var(--weight)");
  const returns = plane({ label: "Return asked for, return obtained", x: [-41, 1], y: [-41, 5], xTicks: [-40, -30, -20, -10, 0], yTicks: [-40, -30, -20, -10, 0], xLabel: "return asked for", yLabel: "return obtained", height: 290, role: "group" });
  returns.line("var(--line)", { dashed: true }).show([[-40, -40], [0, 0]]);
  const got = returns.line("var(--quiet)", { dots: true }), best = returns.line("var(--good)", { thin: true });

  const touch = (changes, settled) => { held = !settled; change(changes, settled); };
  const nearest = (of, x, y) => of.reduce((near, cell) => (Math.hypot(cells[cell][1] - x, cells[cell][0] - y) < Math.hypot(cells[near][1] - x, cells[near][0] - y) ? cell : near));
  const every = cells.map((_, cell) => cell), end = () => touch({}, true);
  /* Put the start or the goal on the allowed cell that is nearest; never both on one. */
  const drop = (name, x, y, settled) => {
    const other = state()[name === "start" ? "goal" : "start"];
    touch({ [name]: nearest((name === "start" ? every : targets).filter((cell) => cell !== other), x, y) }, settled);
  };
  const goal = point(floor, {
    label: "Goal; arrow keys: another goal", colour: "#e69f00", end, dragged: (x, y) => drop("goal", x, y, false),
    keys: (right, up) => {
      const free = targets.filter((cell) => cell !== state().start);
      touch({ goal: free.at((free.indexOf(state().goal) + Math.sign(right - up) + free.length) % free.length) }, true);
    },
  });
  const begin = point(floor, {
    label: "Start; arrow keys: the next square", colour: "#0072b2", end, dragged: (x, y) => drop("start", x, y, false),
    keys: (right, up) => {
      const to = after[state().start][right ? (right > 0 ? 0 : 2) : up > 0 ? 3 : 1];
      touch(to === state().goal ? {} : { start: to }, true);
    },
  });
  const ask = (asked, settled) => touch({ asked: clamp(Math.round(asked), -length, 0) || 0 }, settled);
  const asked = slider({ label: "Return asked for", low: -length, high: 0, step: 1, whole: true, format: (value) => `${value}`, changed: ask });
  const handle = point(returns, { colour: "#d55e00", end, dragged: (x) => ask(x, false) });
  const held_out = buttons("Unseen pairs", pairs.map(([from, to], i) => button({ text: `${i + 1}`, clicked: () => touch({ start: from, goal: to }, true) })));

  /* Find the trajectory of the state, then those of all other returns; a kernel tells them all at once. */
  async function search({ start: from, goal: to, asked: now }) {
    if (kernel) {
      const all = await kernel.ask("trajectories", { start: from, goal: to });
      return Array.from({ length: length + 1 }, (_, i) => Array.from(all.subarray(i * (length + 1), (i + 1) * (length + 1))).filter((cell) => cell >= 0));
    }
    model ??= siteModel(config.models[0]).then(({ weights, config: sizes }) => new DecisionTransformer(weights, sizes));
    const known = await model, ways = [...waysOf({ start: from, goal: to, found: state().found })];
    const next = ways[-now] ? Array.from({ length: length + 1 }, (_, i) => i).find((i) => !ways[i]) : -now;
    await new Promise(requestAnimationFrame);
    ways[next] = agentWay(known, config, from, to, -next);
    return ways;
  }

  async function update() {
    if (busy || removed) return;
    busy = true;
    const from = state(), ways = await search(from).catch((error) => { model = null; returns.note(error.message); });
    busy = false;
    if (ways && !removed) change({ found: { start: from.start, goal: from.goal, ways } }, !held, false);
  }

  const named = (cell) => `row ${cells[cell][0] + 1}, column ${cells[cell][1] + 1}`;
  function draw(now) {
    const walked = agentWalked(now, config), ways = waysOf(now), shortest = config.distances[now.goal][now.start];
    begin.show(cells[now.start][1], cells[now.start][0], now.start, named(now.start));
    goal.show(cells[now.goal][1], cells[now.goal][0], now.goal, named(now.goal));
    asked.show(now.asked);
    got.show(ways.flatMap((cells, i) => (cells ? [[-i || 0, 1 - cells.length]] : [])));
    best.show([[-41, -shortest], [1, -shortest]]);
    if (walked) {
      way.show(walked.cells.map((cell) => cells[cell]));
      handle.show(now.asked, -walked.steps);
      floor.note(`Asked for ${now.asked}: ${walked.steps} steps, return ${-walked.steps}; ${walked.arrives ? "it reaches the goal" : "it does not reach the goal"}. Blue: start, orange: goal; dashed: where goals may be.`);
      returns.note(`A step costs 1; the shortest way has ${shortest} steps. Dashed: it obtains what it is asked for; green: the best return.`);
    }
    if (Array.from({ length: length + 1 }, (_, i) => ways[i]).some((one) => !one)) update();
  }

  const goals = agentGoals.map((reached) => (now) => { const walked = agentWalked(now, config); return walked !== null && reached(now, walked); });
  const { build, change, state, remove } = stage({ root, config, kernel, start, goals, draw, words: (now) => agentWords(now, config) });
  build([floor, returns], [asked, held_out]);
  if (!state().found) floor.note("Loading the model …");
  return () => { removed = true; remove(); };
}
