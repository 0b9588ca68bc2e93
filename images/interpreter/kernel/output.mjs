/** stdout, stderr and console of the user's code. */
import { Console } from 'node:console';
import { writeSync } from 'node:fs';
import { Writable } from 'node:stream';

import { STDERR_PIPE, STDOUT_PIPE } from './link.mjs';
import { makeTag } from './tags.mjs';

/** How long to wait for the worker to make room in a full pipe. */
const FULL_PIPE_MS = 1;

const never = new Int32Array(new SharedArrayBuffer(4));

/**
 * Writes everything before it returns, so that nothing waits for the event loop. The pipe does not block: an interrupt gets
 * through while it is full.
 */
function writeAll(descriptor, bytes) {
  for (let offset = 0; offset < bytes.length; ) {
    try {
      offset += writeSync(descriptor, bytes, offset);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(never, 0, 0, FULL_PIPE_MS);
    }
  }
}

/** What the user's code writes is marked with the cell that it belongs to. */
export class Output {
  #cells;
  #tag;
  #tagged = new Map();

  /**
   * @param {import('./cells.mjs').Cells} cells
   * @param {Uint8Array} tag
   */
  constructor(cells, tag) {
    this.#cells = cells;
    this.#tag = tag;
  }

  /** What child processes write from now on counts as this cell's. */
  mark() {
    this.#mark(STDOUT_PIPE);
    this.#mark(STDERR_PIPE);
  }

  install() {
    const stdout = this.#stream(STDOUT_PIPE, 1);
    const stderr = this.#stream(STDERR_PIPE, 2);
    define(process, 'stdout', stdout);
    define(process, 'stderr', stderr);
    // The built-in console also tells the inspector, which would keep the last 1,000 arguments alive.
    define(globalThis, 'console', new Console({ stdout, stderr }));
  }

  #stream(pipe, fd) {
    const stream = new Writable();
    // Past the stream's own book-keeping, in which an interrupted write would never end.
    stream.write = (chunk, encoding, callback) => {
      const done = typeof encoding === 'function' ? encoding : callback;
      this.#mark(pipe);
      writeAll(pipe, typeof chunk === 'string' ? Buffer.from(chunk, done === encoding ? 'utf8' : encoding) : chunk);
      if (done) process.nextTick(done);
      return true;
    };
    // Like the streams of Node.js, these cannot be ended: a library that does so takes nothing from the next cell.
    stream.end = (...parameters) => {
      if (parameters.length > 0 && typeof parameters[0] !== 'function') stream.write(...parameters);
      return stream;
    };
    stream.destroy = () => stream;
    return Object.assign(stream, { fd, isTTY: false });
  }

  #mark(pipe) {
    const cell = this.#cells.current;
    if (this.#tagged.get(pipe) !== cell) {
      writeAll(pipe, makeTag(this.#tag, cell));
      this.#tagged.set(pipe, cell);
    }
  }
}

function define(object, name, value) {
  Object.defineProperty(object, name, { value, writable: true, configurable: true });
}
