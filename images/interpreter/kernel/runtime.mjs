/** The main thread, as the worker sees it. */
import { readdirSync, readFileSync } from 'node:fs';
import { Session } from 'node:inspector';

/** A main thread that does not listen within this time is running code, which must be ended for an interrupt. */
const ANSWER_MS = 25;

/** One termination ends one callback. It may be the one that would have listened, or there may be another. */
const REPEAT_MS = 100;

export class Runtime {
  #port;
  #session = new Session();
  #running = new Map();
  #listeners = new Map();
  #asked = 0;
  #settled = Promise.resolve();

  /** @param {import('node:worker_threads').MessagePort} port to the main thread */
  constructor(port) {
    this.#port = port;
    this.#session.connectToMainThread();
    port.on('message', (message) => {
      if (message.type === 'outcome') this.finish(message.cell, message.outcome);
      else if (message.type === 'interrupted') this.#listeners.get(message.number)?.(true);
    });
  }

  close() {
    this.#session.disconnect();
  }

  /** Runs a cell, not before earlier interrupts are over. @returns {Promise<object>} its outcome */
  run(cell, code, name) {
    return new Promise((resolve) => {
      this.#running.set(cell, resolve);
      void this.#settled.then(() => {
        if (this.#running.has(cell)) this.#port.postMessage({ type: 'execute', cell, code, name });
      });
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
  interrupt() {
    const cells = [...this.#running.keys()];
    this.#settled = this.#settled.then(() => this.#interrupt(cells));
    return this.#settled;
  }

  async #interrupt(cells) {
    // Ended meanwhile, by the interrupt before this one.
    if (cells.length > 0 && !cells.some((cell) => this.#running.has(cell))) return;
    let terminating = false;
    // A termination takes effect in whatever runs next. Until it has, that must be nothing but the handler of these messages.
    for (let patience = ANSWER_MS; !(await this.#stops(cells, patience)) || terminating; patience = REPEAT_MS) {
      interruptChildren();
      if (terminating) continue;
      terminating = true;
      this.#session.post('Runtime.terminateExecution', () => {
        terminating = false;
      });
    }
    for (const cell of cells) this.finish(cell, { interrupted: true });
  }

  exit() {
    this.#port.postMessage({ type: 'exit' });
  }

  /** Tells the main thread that these cells are not to go on. @returns {Promise<boolean>} whether it has listened */
  #stops(cells, milliseconds) {
    this.#asked += 1;
    const number = this.#asked;
    return new Promise((resolve) => {
      this.#listeners.set(number, resolve);
      setTimeout(resolve, milliseconds, false);
      this.#port.postMessage({ type: 'interrupt', cells, number });
    }).finally(() => this.#listeners.delete(number));
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
