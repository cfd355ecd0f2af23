/* Trained models that the site delivers beside its pages (course_lib/site/models.py), or a deck in its own page. */
import { readSafetensors } from "../engine/safetensors.js";

const OWN_ADDRESS = document.currentScript?.src ?? "";  // of the script on the site; a deck has none

/* Throws where these models can be neither asked nor loaded, so that the static form stays: in a deck that does not hold
   them, and in a page of the site that was opened as a file. */
export function needsModel(kernel, names = null) {
  const held = window.courseModels ?? {};
  if (!kernel && !OWN_ADDRESS.startsWith("http") && !names?.every((name) => name in held)) throw Object.assign(new Error("A model needs a kernel or a web server."), { expected: true });
}

/* Throws where only a kernel can answer and there is none, so that the static form stays. */
export function needsKernel(kernel) {
  if (!kernel) throw Object.assign(new Error("This playground needs a kernel."), { expected: true });
}

/* { weights, config, tokenizers } of a checkpoint. `told(fraction)` hears how much of it is loaded. */
export async function siteModel(name, told = () => {}) {
  const held = window.courseModels?.[name];
  const files = held?.map(decoded) ?? [loaded(`${name}.json`), loaded(`${name}.safetensors`, told)];
  const [facts, weights] = await Promise.all(files);
  return { weights: readSafetensors(weights), ...JSON.parse(new TextDecoder().decode(facts)) };
}

/* The bytes of a text in base64. */
const decoded = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer;

/* The bytes of a file of the site. */
async function loaded(name, told = () => {}) {
  const answer = await fetch(new URL(`../models/${name}`, OWN_ADDRESS));
  if (!answer.ok) throw new Error(`The site has no file models/${name}.`);
  const whole = Number(answer.headers.get("content-length")), parts = [];
  let length = 0;
  for (let reader = answer.body.getReader(), part; !(part = await reader.read()).done; ) {
    parts.push(part.value);
    length += part.value.length;
    if (whole) told(Math.min(1, length / whole));
  }
  return new Blob(parts).arrayBuffer();
}
