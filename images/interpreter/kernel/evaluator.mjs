/** Runs cells in the global scope, with `await` at the top level and `const` that a later cell may declare again. */
import { Session } from 'node:inspector';
import { isNativeError } from 'node:util/types';

import { describeError, describeSyntaxError } from './errors.mjs';
import { refreshModules } from './modules.mjs';
import { present } from './present.mjs';

const GROUP = 'cell';

/** Node.js's own, which no cell's interrupt stops. */
const later = setImmediate;

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
      later(() => done(outcome));
    });
  }

  #outcome({ result, exceptionDetails }, source) {
    try {
      if (exceptionDetails) return { error: this.#describe(exceptionDetails, source) };
      const value = this.#fetch(result);
      return value === undefined ? {} : { data: present(value) };
    } catch (error) {
      // Showing a value runs code of the value.
      return { error: describeError(error) };
    }
  }

  #describe(details, source) {
    const thrown = this.#fetch(details.exception);
    if (!isNativeError(thrown) || thrown.name !== 'SyntaxError') return describeError(thrown);
    // `JSON.parse` and `eval` throw these too, from within the cell. A cell that does not parse was never entered.
    if (String(thrown.stack).includes(`${source.name}:`)) return describeError(thrown);
    return describeSyntaxError(thrown, source, { line: details.lineNumber, column: details.columnNumber });
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
