/** The main thread, as the worker sees it. */
import { readdirSync, readFileSync } from 'node:fs';
import { Session } from 'node:inspector';

/** A main thread that does not answer within this time is running code, which must be ended for an interrupt. */
const ANSWER_MS = 25;

/** One termination ends one callback. It may be the one that would have answered, or there may be another. */
const REPEAT_MS = 100;

export class Runtime {
  #port;
  #session = new Session();
  #running = new Map();
  #pongs = [];

  /** @param {import('node:worker_threads').MessagePort} port to the main thread */
  constructor(port) {
    this.#port = port;
    this.#session.connectToMainThread();
    port.on('message', (message) => {
      if (message.type === 'outcome') this.finish(message.cell, message.outcome);
      else if (message.type === 'pong') for (const resolve of this.#pongs.splice(0)) resolve(true);
    });
  }

  close() {
    this.#session.disconnect();
  }

  /** Runs a cell. @returns {Promise<object>} its outcome */
  run(cell, code, name) {
    return new Promise((resolve) => {
      this.#running.set(cell, resolve);
      this.#port.postMessage({ type: 'execute', cell, code, name });
    });
  }

  /** Gives the cell that runs this outcome; whatever it comes to later is not asked for. */
  finish(cell, outcome) {
    this.#running.get(cell)?.(outcome);
    this.#running.delete(cell);
  }

  finishAll(outcome) {
    for (const cell of this.#running.keys()) this.finish(cell, outcome);
  }

  /** Ends the code that runs. A cell that only waits is answered, and does not go on after a timer. */
  async interrupt() {
    const interrupted = [...this.#running.keys()];
    for (let patience = ANSWER_MS; !(await this.#answers(patience)); patience = REPEAT_MS) {
      interruptChildren();
      // Fails, which does not matter, while an earlier one has not taken effect.
      this.#session.post('Runtime.terminateExecution', () => {});
    }
    for (const cell of interrupted) {
      this.#port.postMessage({ type: 'interrupted', cell });
      this.finish(cell, { interrupted: true });
    }
  }

  exit() {
    this.#port.postMessage({ type: 'exit' });
  }

  #answers(milliseconds) {
    return new Promise((resolve) => {
      this.#pongs.push(resolve);
      setTimeout(resolve, milliseconds, false);
      this.#port.postMessage({ type: 'ping' });
    });
  }
}

/** Code that waits for a child process, such as `execSync`, goes on only when that ends. As in a terminal, all are signalled. */
function interruptChildren(parent = process.pid) {
  for (const child of children(parent)) {
    interruptChildren(child);
    try {
      process.kill(child, 'SIGINT');
    } catch {
      // It has just ended.
    }
  }
}

function children(parent) {
  try {
    const tasks = readdirSync(`/proc/${parent}/task`);
    const lists = tasks.map((task) => readFileSync(`/proc/${parent}/task/${task}/children`, 'utf8'));
    return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number));
  } catch {
    // The parent has just ended, or this system does not tell.
    return [];
  }
}
