import assert from 'node:assert/strict';
import { test } from 'node:test';

import { translate } from '/opt/codeworkspace-kernel/translate.mjs';

const REWRITTEN = {
  "import 'x';": 'void (await __import(\'x\'));',
  "import a from 'x';": "const { default: a } = (await __import('x'));",
  "import * as a from 'x'": "const a = (await __import('x'));",
  "import a, * as b from 'x';": "const b = (await __import('x')), { default: a } = b;",
  "import a, { b, c as d, 'e f' as g } from 'x';": "const { default: a, b: b, c: d, 'e f': g } = (await __import('x'));",
  "import a from './a.json' with { type: 'json' };":
    "const { default: a } = (await __import('./a.json', { with: { type: 'json' } }));",
  "const f = () => import('x');": "const f = () => __import('x');",
  'export const a = 1;': 'const a = 1;',
  'export default class A {}': 'class A {}',
  'export default function () {}': '(function () {});',
  'export default 5;': '5;',
  'export {};': ';',
  "export * from 'x';": "void (await __import('x'));",
};

for (const [code, script] of Object.entries(REWRITTEN)) {
  test(`${code} becomes a script`, () => assert.equal(translate(code, 'javascript'), script));
}

test('lines stay where they are', () => {
  const script = translate("import {\n  a,\n  b,\n} from 'x';\nimport('y');", 'javascript');
  assert.equal(script.split('\n').indexOf("__import('y');"), 4);
});

test('code that only speaks of imports stays as it is', () => {
  const code = "'import a from \"x\"'; // export const b = 1";
  assert.equal(translate(code, 'javascript'), code);
});

test('an error of syntax has a place', () => {
  assert.throws(() => translate("import a from 'x';\nlet = ;", 'javascript'), (error) => error.place.line === 1);
  assert.throws(() => translate('const a: number = ;', 'typescript'), {
    name: 'SyntaxError',
    message: 'Unexpected token',
    place: { line: 0, column: 18 },
  });
});
