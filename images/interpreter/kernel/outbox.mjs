import { setTimeout } from 'node:timers/promises';

/** How long to wait for a slow client. ZeroMQ never says when a publisher that drops nothing may send again. */
const RETRY_MS = 1;

/** Sends messages on a socket one after the other, in the order in which they were put in. */
export class Outbox {
  #socket;
  #queue = [];
  #bytes = 0;
  #idle = Promise.resolve();
  #waiting = [];

  /** @param {{send: (frames: (Buffer | string)[]) => Promise<void>}} socket that fails with EAGAIN when it is full */
  constructor(socket) {
    this.#socket = socket;
  }

  put(frames) {
    this.#queue.push(frames);
    this.#bytes += size(frames);
    if (this.#queue.length === 1) this.#idle = this.#sendAll();
  }

  /** Resolves when fewer than `limit` bytes wait to be sent. */
  async room(limit) {
    while (this.#bytes >= limit) {
      await new Promise((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Resolves when nothing waits to be sent. */
  empty() {
    return this.#idle;
  }

  async #sendAll() {
    while (this.#queue.length > 0) {
      const [frames] = this.#queue;
      await this.#send(frames);
      this.#queue.shift();
      this.#bytes -= size(frames);
      for (const resolve of this.#waiting.splice(0)) resolve();
    }
  }

  async #send(frames) {
    for (;;) {
      try {
        return await this.#socket.send(frames);
      } catch (error) {
        if (error.code !== 'EAGAIN') throw error;
        await setTimeout(RETRY_MS);
      }
    }
  }
}

function size(frames) {
  return frames.reduce((sum, frame) => sum + frame.length, 0);
}
