/* A slow `read(state)`, of which one runs at a time, and its result is `done(result)`: while it runs, only the newest of the
   states that `ask(state)` is given waits. A view that is gone is to `close()` it. */
export function newest({ read, done, failed }) {
  let next = null, busy = false, closed = false;
  async function ask(state) {
    next = state;
    if (busy) return;
    busy = true;
    while (next && !closed) {
      const now = next;
      next = null;
      const result = await read(now).catch(failed);
      if (result && !closed) done(result);
    }
    busy = false;
  }
  return { ask, close() { closed = true; } };
}
