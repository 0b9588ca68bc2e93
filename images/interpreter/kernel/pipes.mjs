/** What arrives in the pipes below stdout and stderr. */
import { readSync } from 'node:fs';
import { Socket } from 'node:net';
import { StringDecoder } from 'node:string_decoder';

import { TagReader } from './tags.mjs';

/** What a pipe holds: whoever reads so much has everything that was written before. */
const PIPE_BYTES = 65_536;

/** So much may wait for a slow client before the pipe is left to fill, which makes the writer wait. */
const WAITING_BYTES = 1_048_576;

export class OutputPipe {
  #descriptor;
  #socket;
  #tags;
  #text = new StringDecoder('utf8');
  #textCell = 0;
  #publish;

  /**
   * @param {number} descriptor of the reading end
   * @param {Uint8Array} tag
   * @param {(cell: number, text: string) => void} publish
   * @param {(limit: number) => Promise<void>} room resolves when more may be published
   */
  constructor(descriptor, tag, publish, room) {
    this.#descriptor = descriptor;
    this.#tags = new TagReader(tag);
    this.#publish = publish;
    this.#socket = new Socket({ fd: descriptor, readable: true, writable: false });
    let busy = false;
    this.#socket.on('readable', async () => {
      if (busy) return;
      busy = true;
      for (let chunk = this.#socket.read(); chunk !== null; chunk = this.#socket.read()) {
        this.#take(chunk);
        await room(WAITING_BYTES);
      }
      busy = false;
    });
  }

  /** Publishes all that was written up to now, without waiting. */
  drain() {
    const buffered = this.#socket.read();
    if (buffered !== null) this.#take(buffered);
    const buffer = Buffer.alloc(PIPE_BYTES);
    for (let left = PIPE_BYTES; left > 0; ) {
      const count = this.#readNow(buffer, left);
      if (count === 0) return;
      this.#take(Buffer.from(buffer.subarray(0, count)));
      left -= count;
    }
  }

  /** Publishes also the bytes of a character that was never finished. */
  finish() {
    this.drain();
    this.#say(this.#text.end());
  }

  #readNow(buffer, limit) {
    try {
      return readSync(this.#descriptor, buffer, 0, limit, null);
    } catch (error) {
      if (error.code === 'EAGAIN') return 0;
      throw error;
    }
  }

  #take(chunk) {
    for (const { cell, bytes } of this.#tags.read(chunk)) {
      if (cell !== this.#textCell) {
        this.#say(this.#text.end());
        this.#textCell = cell;
      }
      this.#say(this.#text.write(bytes));
    }
  }

  #say(text) {
    if (text !== '') this.#publish(this.#textCell, text);
  }
}
