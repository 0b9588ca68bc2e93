/**
 * Marks in the byte streams of stdout and stderr: what follows belongs to cell N. A mark is a random tag that only this process
 * knows and four bytes of N. It is smaller than what a pipe takes whole, so nothing gets in between.
 */
const NUMBER_BYTES = 4;

/** The mark of a cell. */
export function makeTag(tag, cell) {
  const bytes = Buffer.alloc(tag.length + NUMBER_BYTES);
  bytes.set(tag);
  bytes.writeUInt32LE(cell, tag.length);
  return bytes;
}

/** Takes a byte stream apart into pieces, each with the cell that it belongs to. */
export class TagReader {
  #tag;
  #held = Buffer.alloc(0);
  #cell = 0;

  constructor(tag) {
    this.#tag = Buffer.from(tag);
  }

  /** The cell of what comes next. */
  get cell() {
    return this.#cell;
  }

  /** @returns {{cell: number, bytes: Buffer}[]} what has arrived; the beginning of a mark is held back */
  read(chunk) {
    const pieces = [];
    let rest = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk;
    for (;;) {
      const start = this.#findTag(rest);
      if (start > 0) pieces.push({ cell: this.#cell, bytes: rest.subarray(0, start) });
      const end = start + this.#tag.length + NUMBER_BYTES;
      if (end > rest.length) {
        this.#held = Buffer.from(rest.subarray(start));
        return pieces;
      }
      this.#cell = rest.readUInt32LE(end - NUMBER_BYTES);
      rest = rest.subarray(end);
    }
  }

  /** Where a tag starts, or may start at the end of what is there; else the end. */
  #findTag(bytes) {
    const whole = bytes.indexOf(this.#tag);
    if (whole >= 0) return whole;
    for (let start = Math.max(0, bytes.length - this.#tag.length + 1); start < bytes.length; start += 1) {
      if (bytes.subarray(start).equals(this.#tag.subarray(0, bytes.length - start))) return start;
    }
    return bytes.length;
  }
}
