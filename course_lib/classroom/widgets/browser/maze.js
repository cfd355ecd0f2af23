/* A maze seen from above, with trajectories through it. */
import { node } from "./kit.js";
import { plane } from "./plane.js";

/* A plane whose points are [column, row] of the maze's squares; `walls` holds a row of "#" and "." for each. `way(colour)`
   draws a trajectory: `show` takes [row, column] of each step, and shifts it a little, so that ways back can be seen. */
export function mazePlane({ label, walls, height, role = "img" }) {
  const end = walls.length - 0.5, whole = plane({ label, x: [-0.5, end], y: [end, -0.5], height, role });
  const wide = whole.x(1) - whole.x(0), tall = whole.y(1) - whole.y(0);
  walls.forEach((row, i) => [...row].forEach((square, j) => {
    if (square === "#") whole.area.append(node("rect", { class: "play-wall", x: whole.x(j - 0.5), y: whole.y(i - 0.5), width: wide, height: tall }));
  }));
  const way = (colour) => {
    const line = whole.line(colour);
    return { show: (places) => line.show(places.map(([i, j], t) => [i, j].map((at) => at - 0.22 + (0.44 * t) / (places.length - 1 || 1)).reverse())) };
  };
  return { ...whole, way };
}
