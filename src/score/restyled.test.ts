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

test('a space at the end of a line is one line of reformatting', async () => {
  const file = 'def a():\n    x = 1\n    return x\n\n\ndef b():\n    return 2\n';
  for (const line of ['x = 1', 'return x'])
    expect((await rewriting('a.py', file, file.replace(line, `${line}  `).replace('2', '3')))[1]).toBe(
      '1 nodes changed, 1 needed; 1 of reformatting',
    );
});

describe('the order of imports is form', () => {
  test.each([
    [
      'a.ts',
      `import { b } from './b';\nimport { a } from './a';\n`,
      `import { a } from './a';\nimport { b } from './b';\n`,
    ],
    ['a.ts', `import { b, type a } from './b';\n`, `import { type a, b } from './b';\n`],
    ['a.py', 'import os\nimport json\n', 'import json\nimport os\n'],
    ['a.py', 'from a import (\n    c,\n    b,\n)\n', 'from a import (\n    b,\n    c,\n)\n'],
    ['a.go', 'package a\n\nimport (\n\t"os"\n\t"fmt"\n)\n', 'package a\n\nimport (\n\t"fmt"\n\t"os"\n)\n'],
    ['A.java', 'import b.C;\nimport a.D;\n\nclass A {}\n', 'import a.D;\nimport b.C;\n\nclass A {}\n'],
    ['a.rs', 'use b::c;\nuse a::d;\n', 'use a::d;\nuse b::c;\n'],
    ['a.rs', 'mod b;\nmod a;\n', 'mod a;\nmod b;\n'],
    ['a.rs', 'use a::{Map, fmt::{self, Write}};\n', 'use a::{fmt::{self, Write}, Map};\n'],
  ])('%s: %j as %j', async (path, file, sorted) => {
    for (const [before, after] of [
      [file, sorted],
      [sorted, file],
    ] as const)
      expect((await rewriting(path, before, after))[1]).toBe('0 nodes changed, 0 needed; 1 of reformatting');
    expect((await rewriting(path, file, sorted, sorted))[0]).toBe(1);
  });

  test.each([
    ['a.ts', `import './a';\nimport { b } from './b';\n`, `import { b } from './b';\nimport './a';\n`],
    ['a.rs', '#[cfg(test)]\nuse a::b;\nuse c::d;\n', '#[cfg(test)]\nuse c::d;\nuse a::b;\n'],
    ['a.py', 'import a\nb()\nimport c\n', 'import c\nb()\nimport a\n'],
  ])('%s: but %j does something else than %j', async (path, file, other) => {
    expect((await rewriting(path, file, other))[1]).toMatch(/^[1-9]\d* nodes changed/);
  });

  test('an import that came with it is the change', async () => {
    const file = 'import os\nimport json\n\nprint(os, json)\n';
    const sorted = file.replace('import os\nimport json\n', 'import json\nimport os\nimport re\n');
    expect((await rewriting('a.py', file, sorted))[1]).toBe('4 nodes changed, 4 needed; 1 of reformatting');
  });
});

describe('comments are counted by what they say, line by line', () => {
  const of = (count: number) =>
    count === 0 ? '0 nodes changed, 0 needed' : `0 nodes changed, 0 needed; ${count} of comments`;
  test.each([
    ['a.rs', 'fn f() {}\n', '/// Why.\nfn f() {}\n', 1],
    ['a.rs', '// why\nfn f() {}\n', '// how\nfn f() {}\n', 1],
    ['a.ts', 'f();\n', '/**\n * Why,\n * and how.\n */\nf();\n', 2],
    ['A.java', '// Why.\nclass A {}\n', '/* Why. */\nclass A {}\n', 0],
    ['a.go', '// Why.\npackage a\n', 'package a\n', 0],
    ['a.py', 'def f():\n    return 1\n', 'def f():\n    """Why.\n\n    And how.\n    """\n    return 1\n', 2],
    ['a.py', 'class A:\n    """Why."""\n', "class A:\n    '''Why.'''\n", 0],
  ])('%s: %j, then %j', async (path, before, after, count) => {
    expect((await rewriting(path, before, after))[1]).toBe(of(count));
  });

  test('other line ends are no other comments', async () => {
    const file = '/// Why.\n/// And how.\nfn f() {\n    // it is so\n    g();\n}\n';
    expect((await rewriting('a.rs', file, file.replaceAll('\n', '\r\n')))[1]).toMatch(/needed; \d of reformatting$/);
  });

  test('a string of Python that is no docstring is code', async () => {
    expect((await rewriting('a.py', 'f("a")\n', 'f("b")\n'))[1]).toBe('1 nodes changed, 1 needed');
    expect((await rewriting('a.py', 'def f():\n    x = """a"""\n', 'def f():\n    x = """b"""\n'))[1]).toBe(
      '1 nodes changed, 1 needed',
    );
  });
});

test.each([
  ['a.py', 'f()\n', 'pprint(x)'],
  ['a.py', 'f()\n', 'logging.debug(x)'],
  ['a.py', 'f()\n', 'import pdb; pdb.set_trace()'],
  ['a.go', 'package a\n\nfunc f() {\n}\n', 'println(x)'],
  ['a.go', 'package a\n\nfunc f() {\n}\n', 'fmt.Fprintln(os.Stderr, x)'],
  ['A.java', 'class A {\n  void f() {\n}\n}\n', 'e.printStackTrace();'],
  ['a.rs', 'fn f() {\n}\n', 'eprint!("x");'],
  ['a.rs', 'fn f() {\n}\n', 'todo!();'],
])('%s: in %j, %s is scaffolding', async (path, before, print) => {
  const after = path === 'a.py' ? `${before}${print}\n` : before.replace('{\n}', `{\n    ${print}\n}`);
  expect((await rewriting(path, before, after))[1]).toMatch(/^\d+ nodes changed, [01] needed; \d+ of scaffolding/);
});

test('what a program writes for its reader is none', async () => {
  const go = 'package a\n\nfunc f() {\n}\n';
  expect((await rewriting('a.go', go, go.replace('{\n}', '{\n\tfmt.Fprintln(w, x)\n}')))[1]).toMatch(
    /^\d+ nodes changed, [1-9]\d* needed$/,
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
    ['a.py', 'x = F"b" + R"b"\n', 'x = f"b" + r"b"\n'],
    ['a.ts', 'x = 0XFF + b;\n', 'x = 0xff + b;\n'],
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
