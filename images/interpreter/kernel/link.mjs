/** What both threads agree on. */

/** File descriptors that `start` has opened. */
export const STDOUT_PIPE = 3;
export const STDERR_PIPE = 4;
export const REAL_STDERR = 5;

/** The global function that `import` becomes in cells. */
export const IMPORT = '__import';

/** How long an ending process waits until its last words were sent. */
const PATIENCE_MS = 10_000;

/** Lets the main thread wait until the worker has dealt with a message. */
export class Link {
  constructor(shared = new SharedArrayBuffer(4)) {
    this.shared = shared;
    this.done = new Int32Array(shared);
  }

  /**
   * Main thread: sends the message, and returns once the worker has dealt with it. What is written meanwhile could otherwise
   * overtake it.
   */
  handOver(worker, message) {
    const before = Atomics.load(this.done, 0);
    worker.postMessage({ ...message, handedOver: true });
    Atomics.wait(this.done, 0, before, PATIENCE_MS);
  }

  /** Worker: the message was dealt with. */
  release() {
    Atomics.add(this.done, 0, 1);
    Atomics.notify(this.done, 0);
  }
}
