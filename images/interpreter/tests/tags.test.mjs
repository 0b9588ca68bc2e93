import assert from 'node:assert/strict';
import { test } from 'node:test';

import { makeTag, TagReader } from '/opt/codeworkspace-kernel/tags.mjs';

const TAG = Buffer.from('aabaabbaaabab\0\0!');

/** What comes out of a stream, whatever its pieces: the bytes of each cell. */
function collect(reader, chunks) {
  const pieces = chunks.flatMap((chunk) => reader.read(chunk));
  const joined = [];
  for (const { cell, bytes } of pieces) {
    if (joined.at(-1)?.cell === cell) joined.at(-1).text += bytes.toString();
    else joined.push({ cell, text: bytes.toString() });
  }
  return joined;
}

test('marks are found however the stream is cut', () => {
  const stream = Buffer.concat([
    Buffer.from('zero aab'),
    makeTag(TAG, 1),
    Buffer.from('aaabaabb one'),
    makeTag(TAG, 70_000),
    makeTag(TAG, 2),
    Buffer.from('two!'),
  ]);
  const expected = [
    { cell: 0, text: 'zero aab' },
    { cell: 1, text: 'aaabaabb one' },
    { cell: 2, text: 'two!' },
  ];
  for (let size = 1; size <= stream.length; size += 1) {
    const chunks = [];
    for (let at = 0; at < stream.length; at += size) chunks.push(stream.subarray(at, at + size));
    assert.deepEqual(collect(new TagReader(TAG), chunks), expected, `in pieces of ${size}`);
  }
});

test('what may be the beginning of a mark waits for its end', () => {
  const reader = new TagReader(TAG);
  assert.deepEqual(collect(reader, [Buffer.from('xaab')]), [{ cell: 0, text: 'x' }]);
  assert.deepEqual(collect(reader, [Buffer.from('c')]), [{ cell: 0, text: 'aabc' }]);
});
