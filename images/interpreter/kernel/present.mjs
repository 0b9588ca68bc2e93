/** Values as bundles of MIME types. */
import { inspect } from 'node:util';

/** What Deno's kernel made customary: a method that returns a MIME bundle. */
const DISPLAY = Symbol.for('Jupyter.display');

/** More values than this in one result are told as text only. */
const JSON_VALUES = 10_000;

const INSPECT = { depth: 4, maxArrayLength: 1_000, maxStringLength: 100_000, breakLength: 100 };

/** @returns {object} MIME type to data; always with text/plain */
export function present(value) {
  const text = { 'text/plain': inspect(value, INSPECT) };
  if (typeof value?.[DISPLAY] === 'function') return { ...text, ...encode(value[DISPLAY]()) };
  const isRecord = Array.isArray(value) || isPlain(value);
  return isRecord && isJson(value) ? { ...text, 'application/json': value } : text;
}

/** Bytes in a bundle become base64, as Jupyter wants them. */
export function encode(bundle) {
  return Object.fromEntries(
    Object.entries(bundle).map(([type, data]) => [
      type,
      data instanceof Uint8Array ? Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64') : data,
    ]),
  );
}

/** Whether this is a MIME bundle: an object with nothing but keys such as `text/html`. */
export function isBundle(value) {
  if (!isPlain(value)) return false;
  const keys = Object.keys(value);
  return keys.length > 0 && keys.every((key) => /^[a-z]+\/[\w.+-]+$/i.test(key));
}

function isPlain(value) {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** Whether JSON tells the whole of it: no functions, no dates, no cycles, no getters. */
function isJson(root) {
  let budget = JSON_VALUES;
  const ancestors = new Set();
  const check = (value) => {
    budget -= 1;
    if (budget < 0) return false;
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
    if (typeof value === 'number') return Number.isFinite(value);
    if (!Array.isArray(value) && !isPlain(value)) return false;
    if (ancestors.has(value) || Object.getOwnPropertySymbols(value).length > 0) return false;
    ancestors.add(value);
    const fields = Object.getOwnPropertyDescriptors(value);
    if (Array.isArray(value)) delete fields.length;
    const list = Object.values(fields);
    const whole = list.every((field) => 'value' in field && field.enumerable && check(field.value));
    const dense = !Array.isArray(value) || list.length === value.length;
    ancestors.delete(value);
    return whole && dense;
  };
  return check(root);
}
