/** The global `display`. */
import { encode, isBundle, present } from './present.mjs';

/** `display.html(text)` and so on. */
const SHORTHANDS = {
  html: 'text/html',
  markdown: 'text/markdown',
  latex: 'text/latex',
  svg: 'image/svg+xml',
  png: 'image/png',
  jpeg: 'image/jpeg',
  json: 'application/json',
};

/**
 * @param {(content: object) => void} publish takes the content of Jupyter's `display_data`
 */
export function installDisplay(publish) {
  /** Shows a MIME bundle (`{'text/html': '<b>x</b>'}`) as it is, and any other value as a result would be shown. */
  const display = (value, metadata = {}) =>
    // By way of JSON: what cannot be sent fails here, in the user's code.
    publish(JSON.parse(JSON.stringify({ data: isBundle(value) ? encode(value) : present(value), metadata, transient: {} })));
  for (const [name, type] of Object.entries(SHORTHANDS)) {
    display[name] = (data) => display({ [type]: data });
  }
  Object.defineProperty(globalThis, 'display', { value: display, writable: true, configurable: true });
}
