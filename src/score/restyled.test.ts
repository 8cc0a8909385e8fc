import { describe, expect, test } from 'vitest';
import { converse, trajectory } from './fixtures.ts';
import { minimalDiff } from './minimal-diff.ts';

const tools = [{ type: 'function', function: { name: 'write', parameters: {} } }];
const read = { ...tools[0]!, function: { name: 'read', parameters: {} } };

/** What a rewrite of a whole file is worth, and why. */
async function rewriting(path: string, before: string, after: string, accepted?: string) {
  const said = [
    { say: [['read', JSON.stringify({ path })]] as const, results: [before] },
    { say: [['write', JSON.stringify({ path, content: after })]] as const, results: ['ok'] },
    { say: 'Done.' },
  ];
  const turns = converse('Mend it.', said).map((one) => ({
    ...one,
    request: { ...one.request, tools: [read, ...tools] },
  }));
  const scorer = minimalDiff(accepted === undefined ? {} : { accepted: () => ({ [path]: accepted }) });
  const signal = new AbortController().signal;
  const { value, reason } = await scorer.score({ trajectory: trajectory(), turns, signals: [] }, { signal });
  return [value, reason];
}

type Sample = {
  readonly path: string;
  readonly call: string;
  readonly spread: string;
  readonly file: (call: string) => string;
};
const samples: Record<string, Sample> = {
  typescript: {
    path: 'a.ts',
    call: 'send(user, "a  b", 3, true)',
    spread: 'send(\n    user,\n    "a  b",\n    4,\n    true,\n  )',
    file: (call) => `export function notify(user: string) {\n  const sent = ${call};\n  return sent;\n}\n`,
  },
  python: {
    path: 'a.py',
    call: 'send(user, "a  b", 3, True)',
    spread: 'send(\n        user,\n        "a  b",\n        4,\n        True,\n    )',
    file: (call) => `def notify(user):\n    sent = ${call}\n    return sent\n`,
  },
  go: {
    path: 'a.go',
    call: 'send(user, "a  b", 3, true)',
    spread: 'send(\n\t\tuser,\n\t\t"a  b",\n\t\t4,\n\t\ttrue,\n\t)',
    file: (call) => `package main\n\nfunc notify(user string) bool {\n\tsent := ${call}\n\treturn sent\n}\n`,
  },
  java: {
    path: 'A.java',
    call: 'send(user, "a  b", 3, true)',
    spread: 'send(\n        user,\n        "a  b",\n        4,\n        true\n    )',
    file: (call) => `class A {\n  boolean notify(String user) {\n    var sent = ${call};\n    return sent;\n  }\n}\n`,
  },
  rust: {
    path: 'a.rs',
    call: 'send(user, "a  b", 3, true)',
    spread: 'send(\n        user,\n        "a  b",\n        4,\n        true,\n    )',
    file: (call) => `fn notify(user: &str) -> bool {\n    let sent = ${call};\n    sent\n}\n`,
  },
};

describe.each(Object.entries(samples))('in %s', (_, { path, call, spread, file }) => {
  const changed = call.replace('3', '4');

  test('a call that was spread over lines is reformatting, the constant that changed in it a change', async () => {
    expect(await rewriting(path, file(call), file(changed))).toEqual([1, '1 nodes changed, 1 needed']);
    // The line it begins in, four arguments, the bracket; each half a node.
    expect(await rewriting(path, file(call), file(spread))).toEqual([
      1 / (1 + 6 / 2),
      '1 nodes changed, 1 needed; 6 of reformatting',
    ]);
    expect(await rewriting(path, file(spread), file(call))).toEqual([
      1 / (1 + 1 / 2),
      '1 nodes changed, 1 needed; 1 of reformatting',
    ]);
    expect(await rewriting(path, file(call), file(spread.replace('4', '3')))).toEqual([
      0,
      '0 nodes changed, 0 needed; 6 of reformatting',
    ]);
  });

  test('spaces in a string are a change, beside an escape too', async () => {
    const inString = (text: string) => file(call.replace('"a  b"', `"${text}"`));
    for (const [was, is] of [
      ['a  b', 'a b'],
      ['a  b\\n', 'a b\\n'],
      ['\\t\\t a', '\\t\\ta'],
    ] as const)
      expect((await rewriting(path, inString(was), inString(is)))[1]).toMatch(/^[12] nodes changed, [12] needed$/);
  });

  test('what the change that is known to do restyles costs nothing', async () => {
    expect(await rewriting(path, file(call), file(spread), file(spread))).toEqual([1, '1 nodes changed, 1 needed']);
    expect((await rewriting(path, file(call), file(spread), file(changed)))[0]).toBe(1 / 4);
  });
});

test('where Python ends a block is a change, and by how much it indents all of them is not', async () => {
  const file = 'def total(xs):\n    s = 0\n    for x in xs:\n        s += x\n        log(s)\n    return s\n';
  const moved = file.replace('        log', '    log');
  const [, why] = await rewriting('a.py', file, moved);
  expect(why).toMatch(/^[1-9]\d* nodes changed, [1-9]\d* needed$/);
  const narrow = file.replaceAll('    ', '  ');
  expect(await rewriting('a.py', file, narrow)).toEqual([0, '0 nodes changed, 0 needed; 5 of reformatting']);
  expect((await rewriting('a.py', file, narrow.replace('s = 0', 's = 1')))[1]).toBe(
    '1 nodes changed, 1 needed; 5 of reformatting',
  );
  expect((await rewriting('a.py', 'a = (1)\n', 'a = (1,)\n'))[1]).not.toContain('0 nodes');
  expect((await rewriting('a.py', 'a = b[1]\n', 'a = b[1,]\n'))[1]).not.toContain('0 nodes');
});

test('what a change needs around it is no reformatting', async () => {
  const only = /^[1-9]\d* nodes changed, [1-9]\d* needed$/;
  const ts = 'function f(xs: number[]) {\n  for (const x of xs) {\n    use(x);\n    log(x);\n  }\n}\n';
  const inBlock = ts.replace(
    '  for (const x of xs) {\n    use(x);\n    log(x);\n  }',
    '  if (xs.length) {\n    for (const x of xs) {\n      use(x);\n      log(x);\n    }\n  }',
  );
  expect((await rewriting('a.ts', ts, inBlock))[1]).toMatch(only);
  expect((await rewriting('a.ts', inBlock, ts))[1]).toMatch(only);
  // gofmt sets columns; arguments hang under the bracket of a call whose name is longer now; a list that goes on needs a comma.
  const go = 'package a\n\ntype T struct {\n\ta int\n\tb int\n}\n';
  expect(
    (await rewriting('a.go', go, go.replace('\ta int\n\tb int', '\ta    int\n\tb    int\n\tlong int')))[1],
  ).toMatch(only);
  const py = 'def f(x):\n    y = run(x,\n            2)\n    return y\n';
  expect((await rewriting('a.py', py, py.replace('run(x,\n    ', 'execute(x,\n        ')))[1]).toMatch(only);
  const list = 'const xs = [\n  1,\n  2\n];\n';
  expect((await rewriting('a.ts', list, list.replace('2\n', '2,\n  3\n')))[1]).toMatch(only);
  const java = 'class A {\n  int a() { return 1; }\n}\n';
  expect((await rewriting('A.java', java, java.replace('{ return', '{ int b = 2; return')))[1]).toMatch(only);
});

test('JSX that was broken over lines says the same, spaces within a line do not', async () => {
  const file = 'const A = () => <p id="a" class="b">Hello <b>{name}</b></p>;\n';
  const broken = 'const A = () => <p\n    id="c"\n    class="b"\n  >\n    Hello <b>{name}</b>\n  </p>;\n';
  expect((await rewriting('a.tsx', file, file.replace('"a"', '"c"')))[1]).toBe('1 nodes changed, 1 needed');
  expect((await rewriting('a.tsx', file, broken))[1]).toMatch(/^1 nodes changed, 1 needed; \d of reformatting$/);
  expect((await rewriting('a.tsx', file, file.replace('Hello ', 'Hello')))[1]).toBe('1 nodes changed, 1 needed');
});

test('a semicolon is a change where the language means something by it', async () => {
  expect((await rewriting('a.rs', 'fn a() -> i32 {\n    b()\n}\n', 'fn a() -> i32 {\n    b();\n}\n'))[1]).not.toContain(
    '0 nodes',
  );
  expect(await rewriting('a.ts', 'let a = 1\nlet b = 2\n', 'let a = 1;\nlet b = 2;\n')).toEqual([
    0,
    '0 nodes changed, 0 needed; 2 of reformatting',
  ]);
});

test('blank lines and a comment: one is reformatting, the other is a comment and no more', async () => {
  const file = 'def a():\n    x = 1\n    y = 2\n    return x\n';
  expect((await rewriting('a.py', file, file.replace('    y', '\n\n    y')))[1]).toBe(
    '0 nodes changed, 0 needed; 1 of reformatting',
  );
  expect((await rewriting('a.py', file, file.replace('    y', '    # why\n    y')))[1]).toBe(
    '0 nodes changed, 0 needed; 1 of comments',
  );
});

test('a file of thousands of lines that were all spread is counted to the last one', async () => {
  const calls = (write: (i: number) => string) => Array.from({ length: 2000 }, (_, i) => write(i)).join('');
  const before = calls((i) => `x${i} = f(a, ${i})\n`);
  const after = calls((i) => `x${i} = f(\n    a,\n    ${i === 1000 ? 7 : i},\n)\n`);
  expect((await rewriting('a.py', before, after))[1]).toBe('1 nodes changed, 1 needed; 8000 of reformatting');
});

describe('what formatters choose is form, alone and beside a change', () => {
  test.each([
    ['a.ts', `const s = 'it"s';\n`, `const s = "it\\"s";\n`],
    ['a.ts', 'const f = (x) => x + 1;\n', 'const f = x => x + 1;\n'],
    ['a.ts', 'const f = () => (a ? b : c);\n', 'const f = () => a ? b : c;\n'],
    ['a.ts', `const o = { 'key': 1, b: 2 };\n`, 'const o = { key: 1, b: 2 };\n'],
    ['a.ts', `type T = 'a' | 'b' | 'c';\n`, `type T =\n  | 'a'\n  | 'b'\n  | 'c';\n`],
    ['a.tsx', 'const A = () => <p>{a}</p>;\n', 'const A = () => (\n  <p>\n    {a}\n  </p>\n);\n'],
    ['a.py', `s = 'a' + b\n`, `s = (\n    "a"\n    + b\n)\n`],
    ['a.py', `s = 'it\\'s'\n`, `s = "it's"\n`],
    ['a.py', `s = f'{a} b'\n`, `s = f"{a} b"\n`],
    ['a.py', 'if (a is None):\n    b()\n', 'if a is None:\n    b()\n'],
    ['a.py', 'from a import b, c\n', 'from a import (\n    b,\n    c,\n)\n'],
    ['a.py', 'def f():\n    return a, b\n', 'def f():\n    return (\n        a,\n        b,\n    )\n'],
    ['a.py', 'x = f(1, (2, 3))\n', 'x = f(1, (2, 3,))\n'],
    ['a.py', 'x = a + \\\n    b\n', 'x = a + b\n'],
    ['a.go', 'package a\n\nimport "fmt"\n', 'package a\n\nimport (\n\t"fmt"\n)\n'],
    [
      'a.go',
      'package a\n\nfunc f() { if (a > 1) { b() } }\n',
      'package a\n\nfunc f() {\n\tif a > 1 {\n\t\tb()\n\t}\n}\n',
    ],
    ['A.java', 'class A { F f = (e) -> e.a() + (b * c); }\n', 'class A {\n  F f = e -> e.a() + b * c;\n}\n'],
    [
      'a.rs',
      'fn f() -> i32 { match a { 1 => b(), _ => c } }\n',
      'fn f() -> i32 {\n    match a {\n        1 => {\n            b()\n        }\n        _ => c,\n    }\n}\n',
    ],
    ['a.rs', 'fn f() { let g = |x| { x + 1 }; }\n', 'fn f() {\n    let g = |x| x + 1;\n}\n'],
  ])('%s: %j as %j', async (path, file, written) => {
    expect((await rewriting(path, file, written))[1]).toMatch(/^0 nodes changed, 0 needed; [1-9]\d* of reformatting$/);
    expect((await rewriting(path, written, file))[1]).toMatch(/^0 nodes changed, 0 needed; [1-9]\d* of reformatting$/);
    const changed = written.replace(/\b(?:[bs1A]|fmt)\b/, (was) => (was === '1' ? '7' : 'other'));
    expect((await rewriting(path, file, changed))[1]).toMatch(/^[1-9] nodes changed, [1-9] needed/);
  });

  test.each([
    ['a.ts', 'x = a + b * c;\n', 'x = (a + b) * c;\n'],
    ['a.ts', 'x = a * (b + c);\n', 'x = a * b + c;\n'],
    ['a.ts', 'x = (a?.b).c;\n', 'x = a?.b.c;\n'],
    ['a.ts', `x = 'a';\n`, `x = 'A';\n`],
    ['a.ts', `x = 'a\\\\n';\n`, `x = 'a\\n';\n`],
    ['a.ts', 'x = () => ({});\n', 'x = () => {};\n'],
    ['a.ts', 'f((a, b));\n', 'f(a, b);\n'],
    ['a.ts', `type T = (A | B)[];\n`, 'type T = A | B[];\n'],
    ['a.py', `s = r'a\\'b'\n`, `s = r"a'b"\n`],
    ['a.py', `s = b'a'\n`, `s = 'a'\n`],
    ['a.py', 'x = (1)\n', 'x = (1,)\n'],
    ['a.py', 'x = not (a and b)\n', 'x = not a and b\n'],
    ['a.go', 'package a\n\nvar x = (*T)(y)\n', 'package a\n\nvar x = *T(y)\n'],
    ['a.go', 'package a\n\nvar x = `a`\n', 'package a\n\nvar x = "a"\n'],
    ['A.java', 'class A { int x = a - (b - c); }\n', 'class A { int x = a - b - c; }\n'],
    ['a.rs', 'fn f() { (a.g)(1) }\n', 'fn f() { a.g(1) }\n'],
    ['a.rs', 'fn f() { let g = |x| { x(); }; }\n', 'fn f() { let g = |x| x(); }\n'],
  ])('%s: %j is another thing than %j', async (path, file, other) => {
    for (const [before, after] of [
      [file, other],
      [other, file],
    ] as const)
      expect((await rewriting(path, before, after))[1]).toMatch(/^[1-9]\d* nodes changed, [1-9]\d* needed$/);
  });

  test('a print that stood there before is no new scaffolding, nor is a comment new that moved with its block', async () => {
    const go = 'package a\n\nfunc f() {\n\tfmt.Println(a, b)\n}\n';
    expect((await rewriting('a.go', go, go.replace('(a, b)', '(\n\t\ta,\n\t\tb,\n\t)')))[1]).toBe(
      '0 nodes changed, 0 needed; 4 of reformatting',
    );
    const ts = 'function f() {\n  /*\n   * why\n   */\n  g();\n}\n';
    const inBlock = 'function f() {\n  if (a) {\n    /*\n     * why\n     */\n    g();\n  }\n}\n';
    expect((await rewriting('a.ts', ts, inBlock))[1]).toMatch(/^\d+ nodes changed, \d+ needed$/);
  });
});
