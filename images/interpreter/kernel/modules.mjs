/** `require` and `import` in cells, relative to the current directory. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { constants, Script } from 'node:vm';

import { IMPORT } from './link.mjs';

let directory;

export function installModules() {
  refreshModules();
}

/** The user's code may have changed the directory since the last cell. */
export function refreshModules() {
  const current = process.cwd();
  if (current === directory) return;
  directory = current;
  const filename = join(current, 'cell.js');
  define('require', createRequire(filename));
  const script = new Script('(specifier, options) => import(specifier, options)', {
    filename,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  define(IMPORT, script.runInThisContext());
}

function define(name, value) {
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
}
