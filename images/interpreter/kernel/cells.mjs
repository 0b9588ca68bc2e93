/**
 * Which cell the running code belongs to.
 *
 * AsyncLocalStorage would know it for every callback. But it switches on hooks, under which Node.js 20 aborts when code that
 * continues after an `await` is interrupted. So timers tell (timers.mjs), and all else counts as the latest cell.
 */
export class Cells {
  #latest = 0;
  #current = 0;
  #interrupted = new Set();

  get current() {
    return this.#current;
  }

  /** A new cell is about to run. */
  begin(cell) {
    this.#latest = cell;
    this.#current = cell;
  }

  /** What a cell still waits for is not to go on. */
  interrupt(cell) {
    this.#interrupted.add(cell);
  }

  isInterrupted(cell) {
    return this.#interrupted.has(cell);
  }

  /** The code that runs now belongs to `cell`, and so does what continues as soon as it is done. */
  resume(cell) {
    this.#current = cell;
    // The tick comes when there are no more promises to be dealt with.
    queueMicrotask(() =>
      process.nextTick(() => {
        this.#current = this.#latest;
      }),
    );
  }
}
