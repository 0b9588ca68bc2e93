/**
 * Makes of a cell what V8's REPL mode understands: types are dropped, `import` and `export` are for modules only, and a cell is
 * a script. Lines stay where they are, so that errors name them.
 */
import { createRequire } from 'node:module';

import { parse } from 'acorn';

import { IMPORT } from './link.mjs';

const require = createRequire(import.meta.url);

/** @returns {string} JavaScript. Throws a SyntaxError. */
export function translate(code, language) {
  const script = language === 'typescript' ? dropTypes(code) : code;
  return /\b(?:import|export)\b/.test(script) ? dropModuleSyntax(script) : script;
}

/** Loads what `translate` needs, so that the first cell does not wait for it. */
export function warmUp(language) {
  translate('export const warm = 1;', language);
}

function dropTypes(code) {
  const { transform } = require('sucrase');
  try {
    return transform(code, {
      transforms: ['typescript'],
      disableESTransforms: true,
      // Whether a later cell uses it cannot be known.
      keepUnusedImports: true,
    }).code;
  } catch (error) {
    throw syntaxError(error, 1);
  }
}

function dropModuleSyntax(code) {
  const edits = [];
  for (const node of walk(parseCell(code))) {
    const edit = REWRITES[node.type]?.(node, code);
    if (edit !== undefined) edits.push(edit);
  }
  // From the end, so that earlier places stay valid.
  edits.sort((one, other) => other.start - one.start);
  return edits.reduce((text, { start, end, replacement }) => text.slice(0, start) + replacement + text.slice(end), code);
}

function parseCell(code) {
  try {
    return parse(code, {
      ecmaVersion: 'latest',
      sourceType: 'script',
      allowImportExportEverywhere: true,
      allowAwaitOutsideFunction: true,
    });
  } catch (error) {
    throw syntaxError(error, 0);
  }
}

/** An error with the place that a parser names: lines from 1, columns from `firstColumn`. Both put it into their message too. */
function syntaxError({ message, loc }, firstColumn) {
  const text = message.replace(/^(?:Error transforming [^:]*: |SyntaxError: )*|\s*\(\d+:\d+\)$/g, '');
  const place = loc && { line: loc.line - 1, column: loc.column - firstColumn };
  return Object.assign(new SyntaxError(text), { place });
}

function* walk(node) {
  if (typeof node?.type === 'string') yield node;
  for (const child of Object.values(node)) {
    if (typeof child === 'object' && child !== null && !(child instanceof RegExp)) yield* walk(child);
  }
}

const REWRITES = {
  ImportExpression: ({ start }) => ({ start, end: start + 'import'.length, replacement: IMPORT }),
  ImportDeclaration: (node, code) => replace(node, code, importStatement(node, code)),
  ExportAllDeclaration: (node, code) => replace(node, code, `void ${load(node, code)};`),
  ExportNamedDeclaration: (node, code) => {
    if (node.declaration) return { start: node.start, end: node.declaration.start, replacement: '' };
    return replace(node, code, node.source ? `void ${load(node, code)};` : ';');
  },
  ExportDefaultDeclaration: (node, code) => {
    // A function or class without a name is an expression here.
    const anonymous = /^(?:Function|Class)Declaration$/.test(node.declaration.type) && !node.declaration.id;
    if (!anonymous) return { start: node.start, end: node.declaration.start, replacement: '' };
    return replace(node, code, `(${code.slice(node.declaration.start, node.declaration.end)});`, 0);
  },
};

/** Puts other text in the place of a node, with as many line ends as it had. */
function replace({ start, end }, code, text, lines = code.slice(start, end).split('\n').length - 1) {
  return { start, end, replacement: text + '\n'.repeat(lines) };
}

function importStatement(node, code) {
  const value = load(node, code);
  if (node.specifiers.length === 0) return `void ${value};`;
  const names = [];
  let namespace;
  for (const specifier of node.specifiers) {
    if (specifier.type === 'ImportNamespaceSpecifier') namespace = specifier.local.name;
    else names.push(`${exportedName(specifier)}: ${specifier.local.name}`);
  }
  const pattern = `{ ${names.join(', ')} }`;
  if (namespace === undefined) return `const ${pattern} = ${value};`;
  return `const ${namespace} = ${value}${names.length > 0 ? `, ${pattern} = ${namespace}` : ''};`;
}

function exportedName({ type, imported }) {
  if (type === 'ImportDefaultSpecifier') return 'default';
  return imported.type === 'Literal' ? imported.raw : imported.name;
}

function load({ source, attributes }, code) {
  const wanted = (attributes ?? []).map((attribute) => code.slice(attribute.start, attribute.end));
  const options = wanted.length > 0 ? `, { with: { ${wanted.join(', ')} } }` : '';
  return `(await ${IMPORT}(${source.raw}${options}))`;
}
