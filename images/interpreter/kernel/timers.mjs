/** Timers that know which cell has set them: they print on its behalf, and go off no more once it was interrupted. */
import { createRequire, syncBuiltinESMExports } from 'node:module';

const require = createRequire(import.meta.url);
const CALLBACKS = ['setTimeout', 'setInterval', 'setImmediate'];
const PROMISES = ['setTimeout', 'setImmediate'];

/** @param {import('./cells.mjs').Cells} cells */
export function installTimers(cells) {
  const timers = require('node:timers');
  const promises = require('node:timers/promises');
  for (const name of PROMISES) promises[name] = resuming(cells, promises[name]);
  for (const name of CALLBACKS) {
    const original = globalThis[name];
    const wrapped = calling(cells, original);
    // For `util.promisify`.
    for (const key of Object.getOwnPropertySymbols(original)) wrapped[key] = promises[name];
    timers[name] = wrapped;
    globalThis[name] = wrapped;
  }
  syncBuiltinESMExports();
}

function calling(cells, original) {
  return function (callback, ...rest) {
    if (typeof callback !== 'function') return original(callback, ...rest);
    const cell = cells.current;
    let running = false;
    const timer = original(function (...values) {
      // One that still runs was interrupted: not even `finally` is reached then.
      if (running || cells.isInterrupted(cell)) return clearTimeout(timer);
      cells.resume(cell);
      running = true;
      try {
        return callback.apply(this, values);
      } finally {
        running = false;
      }
    }, ...rest);
    return timer;
  };
}

function resuming(cells, original) {
  return async (...parameters) => {
    const cell = cells.current;
    const value = await original(...parameters);
    if (cells.isInterrupted(cell)) return new Promise(() => {});
    cells.resume(cell);
    return value;
  };
}
