/* What a playground in JupyterLab says to Python and asks of it, over the messages of an anywidget. */

let questions = 0;  // over all views of a widget, since each of them hears every answer

/* `send(message)`; `on(heard)` for messages that are no answers; `ask(name, payload)` -> Promise of JSON or, where Python
   answers with an array, of a typed array. The promise fails with Python's sentence. `close()` when the view goes. */
export function kernelOf(model) {
  const waiting = new Map(), listeners = [];
  const arrays = { float32: Float32Array, float64: Float64Array, int32: Int32Array, uint8: Uint8Array };
  const heard = (message, buffers) => {
    if (!("answer" in message)) { listeners.forEach((listener) => listener(message, buffers)); return; }
    const { done, failed } = waiting.get(message.answer) ?? {};
    if (!waiting.delete(message.answer)) return;
    if (message.error) failed(new Error(message.error));
    else if (message.dtype) done(new arrays[message.dtype](buffers[0].buffer.slice(buffers[0].byteOffset, buffers[0].byteOffset + buffers[0].byteLength)));
    else done(message.value);
  };
  model.on("msg:custom", heard);
  return {
    send: (message) => model.send(message),
    on: (listener) => { listeners.push(listener); },
    ask: (name, payload) => new Promise((done, failed) => {
      waiting.set(++questions, { done, failed });
      model.send({ ask: name, question: questions, payload });
    }),
    close: () => model.off("msg:custom", heard),
  };
}
