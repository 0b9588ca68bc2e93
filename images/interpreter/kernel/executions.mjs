/** Execute requests. */
import { describeError, describeSyntaxError } from './errors.mjs';
import { fileExtension } from './requests.mjs';
import { translate } from './translate.mjs';

const INTERRUPTED = {
  ename: 'Interrupted',
  evalue: 'the execution was interrupted',
  traceback: ['Interrupted: the execution was interrupted'],
};

/** So many cells are remembered for what their callbacks print later. */
const REMEMBERED = 1_000;

export class Executions {
  #language;
  #runtime;
  #publish;
  #finishOutput;
  #count = 0;
  #cell = 0;
  #parents = new Map();
  #waiting = new Set();

  /**
   * @param {string} language
   * @param {import('./runtime.mjs').Runtime} runtime
   * @param {(type: string, parent: object, content: object) => void} publish sends on the iopub channel
   * @param {() => void} finishOutput publishes all that was written up to now
   */
  constructor(language, runtime, publish, finishOutput) {
    this.#language = language;
    this.#runtime = runtime;
    this.#publish = publish;
    this.#finishOutput = finishOutput;
  }

  /** The header of the request that a cell came with. */
  parent(cell) {
    return this.#parents.get(cell) ?? this.#parents.get(this.#cell) ?? {};
  }

  /** A request has arrived, and waits for those before it. */
  announce(request) {
    this.#waiting.add(request);
  }

  /** Runs a request. @returns {Promise<object>} the content of its reply */
  async execute(request) {
    if (!this.#waiting.delete(request)) return { status: 'aborted', execution_count: this.#count };
    return this.#run(request);
  }

  async #run({ header, content }) {
    const { code, silent = false, stop_on_error: stopOnError = true } = content;
    const cell = this.#remember(header);
    if (!silent && content.store_history !== false) this.#count += 1;
    if (!silent) this.#publish('execute_input', header, { code, execution_count: this.#count });

    const { data, error, interrupted, ends } = await this.#evaluate(cell, code);
    this.#finishOutput();
    const shared = { execution_count: this.#count };
    const failure = interrupted ? INTERRUPTED : error;
    if (failure) {
      if (!silent) this.#publish('error', header, failure);
      // What was sent on the assumption that this would work.
      if (stopOnError) this.#waiting.clear();
      // As IPython announces it: no further request is to come.
      const payload = ends ? [{ source: 'ask_exit', keepkernel: false }] : [];
      return { status: 'error', ...shared, ...failure, payload };
    }
    if (data && !silent) this.#publish('execute_result', header, { ...shared, data, metadata: {} });
    return { status: 'ok', ...shared, payload: [], user_expressions: {} };
  }

  async #evaluate(cell, code) {
    const name = `cell-${this.#count}${fileExtension(this.#language)}`;
    let script;
    try {
      script = translate(code, this.#language);
    } catch (error) {
      return { error: error.place ? describeSyntaxError(error, { code, name }, error.place) : describeError(error) };
    }
    return this.#runtime.run(cell, script, name);
  }

  #remember(header) {
    this.#cell += 1;
    this.#parents.set(this.#cell, header);
    this.#parents.delete(this.#cell - REMEMBERED);
    return this.#cell;
  }
}
