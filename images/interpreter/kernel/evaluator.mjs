/** Runs cells in the global scope, with `await` at the top level and `const` that a later cell may declare again. */
import { Session } from 'node:inspector';
import { setImmediate } from 'node:timers';

import { describeError, describeSyntaxError } from './errors.mjs';
import { refreshModules } from './modules.mjs';
import { present } from './present.mjs';

const GROUP = 'cell';

/** V8's REPL mode is reached only through the inspector. No port is opened: the session is inside this thread. */
export class Evaluator {
  #cells;
  #output;
  #session = new Session();
  #sink;
  #received;

  constructor(cells, output) {
    this.#cells = cells;
    this.#output = output;
    this.#session.connect();
    this.#sink = this.#makeSink();
  }

  close() {
    this.#session.disconnect();
  }

  /**
   * @param {{cell: number, code: string, name: string}} request
   * @param {(outcome: object) => void} done called once, unless an interrupt ended the code
   */
  execute({ cell, code, name }, done) {
    refreshModules();
    const parameters = {
      expression: `${code}\n//# sourceURL=${name}`,
      replMode: true,
      awaitPromise: true,
      silent: true,
      objectGroup: GROUP,
    };
    this.#cells.begin(cell);
    this.#output.mark();
    this.#session.post('Runtime.evaluate', parameters, (error, answer) => {
      const outcome = error ? { interrupted: true } : this.#outcome(answer, { code, name });
      this.#session.post('Runtime.releaseObjectGroup', { objectGroup: GROUP });
      // After what the code has left to run at once: its output still belongs to the cell's answer.
      setImmediate(() => done(outcome));
    });
  }

  #outcome({ result, exceptionDetails }, source) {
    if (!exceptionDetails) {
      const value = this.#fetch(result);
      return value === undefined ? {} : { data: present(value) };
    }
    const thrown = this.#fetch(exceptionDetails.exception);
    // What does not parse was never entered.
    const entered = exceptionDetails.stackTrace !== undefined || exceptionDetails.url !== undefined;
    if (thrown instanceof SyntaxError && !entered) {
      const { lineNumber: line, columnNumber: column } = exceptionDetails;
      return { error: describeSyntaxError(thrown, source, { line, column }) };
    }
    return { error: describeError(thrown) };
  }

  /** The value itself, which the inspector only describes. */
  #fetch(remote) {
    this.#received = undefined;
    const { objectId, unserializableValue, value } = remote;
    const argument = objectId ? { objectId } : unserializableValue ? { unserializableValue } : { value };
    this.#session.post('Runtime.callFunctionOn', {
      objectId: this.#sink,
      functionDeclaration: 'function (value) { this(value); }',
      arguments: [argument],
    });
    const received = this.#received;
    this.#received = undefined;
    return received;
  }

  /** A function of ours as the inspector names it. It is global only while it is looked up. */
  #makeSink() {
    const name = '__kernel_sink__';
    globalThis[name] = (value) => {
      this.#received = value;
    };
    let objectId;
    this.#session.post('Runtime.evaluate', { expression: name, objectGroup: 'kernel' }, (_error, { result }) => {
      objectId = result.objectId;
    });
    delete globalThis[name];
    return objectId;
  }
}
