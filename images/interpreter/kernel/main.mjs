/**
 * The main thread: it runs the user's code and nothing else. The Jupyter protocol is spoken by a worker thread (server.mjs),
 * so that output, interrupts and heartbeats get through while the user's code keeps this thread busy.
 */
import { randomBytes } from 'node:crypto';
import { writeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

import { Cells } from './cells.mjs';
import { installDisplay } from './display.mjs';
import { traceback } from './errors.mjs';
import { Evaluator } from './evaluator.mjs';
import { Link, REAL_STDERR } from './link.mjs';
import { installModules } from './modules.mjs';
import { Output } from './output.mjs';
import { installTimers } from './timers.mjs';

/** The exit code when the kernel itself is at fault (EX_SOFTWARE). */
const FAULT = 70;

const [, language, connectionFile] = process.argv.splice(1);
const { reallyExit } = process;

const link = new Link();
const tag = randomBytes(16);
const cells = new Cells();
// Before anything can touch the streams of Node.js, which would make the pipes of child processes non-blocking.
const output = new Output(cells, tag);
output.install();

const worker = new Worker(new URL('./server.mjs', import.meta.url), {
  workerData: { connectionFile, language, shared: link.shared, tag },
});
worker.on('error', (error) => {
  writeSync(REAL_STDERR, `the kernel's own thread failed: ${error?.stack ?? error}\n`);
  reallyExit.call(process, FAULT);
});

const evaluator = new Evaluator(cells, output);
installModules();
installTimers(cells);
installDisplay((content) => link.handOver(worker, { type: 'display', cell: cells.current, content }));

worker.on('message', (message) => {
  if (message.type === 'execute') {
    evaluator.execute(message, (outcome) => worker.postMessage({ type: 'outcome', cell: message.cell, outcome }));
  } else if (message.type === 'interrupt') {
    for (const cell of message.cells) cells.interrupt(cell);
    worker.postMessage({ type: 'interrupted', number: message.number });
  } else if (message.type === 'exit') {
    process.exit(0);
  }
});

// A fault in a callback or a forgotten promise belongs to some earlier cell, and costs no state.
process.on('uncaughtException', (error) => process.stderr.write(`Uncaught ${traceback(error)}\n`));
process.on('unhandledRejection', (error) => process.stderr.write(`Uncaught (in promise) ${traceback(error)}\n`));
// Interrupts come as messages. A signal to the whole group of processes is for the children.
process.on('SIGINT', () => {});

// The last thing before the process ends, after all handlers of the user's code.
process.reallyExit = (code) => {
  link.handOver(worker, { type: 'exiting', code });
  evaluator.close();
  reallyExit.call(process, code);
};
