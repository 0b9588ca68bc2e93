/** How errors of the user's code are told. */
import { isNativeError } from 'node:util/types';
import { inspect } from 'node:util';

/** Frames of Node.js and of the kernel below those of the user's code. Under an error with a cause, a line stands for them. */
const FRAME = `at .*(?:node:|${escape(new URL('./', import.meta.url).href)})`;
const OURS = new RegExp(`^\\s+(?:${FRAME}|\\.{3} \\d+ lines matching cause stack trace \\.{3})`);

/** The error as Node.js prints it, without frames that are not the user's. */
export function traceback(error) {
  const lines = [];
  for (const line of show(error).split('\n')) {
    if (!OURS.test(line)) lines.push(line);
    // The error's own properties begin at the end of its last frame.
    else if (line.endsWith(' {')) lines.push(`${lines.pop()} {`);
  }
  return lines.join('\n');
}

/** The content of Jupyter's `error` message. Anything can be thrown. */
export function describeError(thrown) {
  const text = traceback(thrown);
  if (!isNativeError(thrown)) return { ename: 'Uncaught', evalue: text, traceback: `Uncaught ${text}`.split('\n') };
  return { ename: String(thrown.name), evalue: String(thrown.message), traceback: text.split('\n') };
}

/** The same for a cell that does not parse: no frame tells the place. Line and column count from 0. */
export function describeSyntaxError({ name, message }, source, { line, column }) {
  const lines = source.code.split('\n');
  // Code that ends too early ends in the line that was put below it.
  const place = line < lines.length ? { line, column } : { line: lines.length - 1, column: lines.at(-1).length };
  return {
    ename: name,
    evalue: message,
    traceback: [
      `${source.name}:${place.line + 1}`,
      lines[place.line],
      `${' '.repeat(place.column)}^`,
      `${name}: ${message}`,
    ],
  };
}

/** An object decides itself how it is shown, and may fail at it. */
function show(value) {
  try {
    return inspect(value);
  } catch (error) {
    return `a value that cannot be shown: ${isNativeError(error) ? error.message : typeof error}`;
  }
}

function escape(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
