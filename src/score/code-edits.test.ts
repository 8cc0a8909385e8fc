import { describe, expect, test } from 'vitest';
import { converse, trajectory } from './fixtures.ts';
import { minimalDiff } from './minimal-diff.ts';

const file =
  'import os\n\n# Adds.\ndef total(xs):\n    s = 0\n    for x in xs:\n        s += x\n    return s\n\n\ndef mean(xs):\n    # Of all.\n    n = len(xs)\n    return total(xs) / n\n';
const fixed = file.replace('s = 0', 's = 1');
type Call = readonly [tool: string, given: unknown, result: string];
const read: Call = ['read', { path: 'total.py' }, file];
const diff =
  '--- a/total.py\n+++ b/total.py\n@@ -4,3 +4,3 @@\n def total(xs):\n-    s = 0\n+    s = 1\n     for x in xs:\n';
const patch = '*** Begin Patch\n*** Update File: total.py\n@@ def total(xs):\n-    s = 0\n+    s = 1\n*** End Patch\n';
const numbered = file.split('\n').map((line, i) => `${String(i + 1).padStart(6)}\t${line}`);

async function judged(calls: readonly Call[], type = 'function', accepted?: Record<string, string>) {
  const said = calls.map(([tool, given, result]) => ({
    say: [[tool, typeof given === 'string' ? given : JSON.stringify(given)]] as const,
    results: [result],
  }));
  const tools = [...new Set(calls.map(([name]) => name))].map((name) =>
    type === 'custom' ? { type, custom: { name } } : { type, function: { name, parameters: {} } },
  );
  const turns = converse('Begin with 1.', [...said, { say: 'Done.' }]).map((turn) => {
    const text = JSON.stringify({ ...turn, request: { ...turn.request, tools } });
    return JSON.parse(
      type === 'custom'
        ? text.replace(
            /"type":"function","function":\{"name":("\w+"),"arguments":/g,
            '"type":"custom","custom":{"name":$1,"input":',
          )
        : text,
    );
  });
  const { signal } = new AbortController();
  const scorer = minimalDiff(accepted && { accepted: () => accepted });
  return scorer.score({ trajectory: trajectory(), turns, signals: [] }, { signal });
}

describe('a change is read out of', () => {
  const one = (given: object, tool = 'edit'): readonly Call[] => [read, [tool, given, 'ok']];
  test.each<[string, readonly Call[]]>([
    ['a piece in camel case', one({ filePath: 'total.py', oldString: 's = 0', newString: 's = 1' })],
    ['a list of pieces', one({ path: 'total.py', edits: [{ oldText: 's = 0', newText: 's = 1' }] })],
    ['a list of files', one({ files: [{ path: 'total.py', content: fixed }] })],
    [
      'blocks to search for',
      one({ path: 'total.py', diff: '<<<<<<< SEARCH\n    s = 0\n=======\n    s = 1\n>>>>>>> REPLACE' }),
    ],
    [
      'blocks with dashes',
      one({ path: 'total.py', diff: '------- SEARCH\n    s = 0\n=======\n    s = 1\n+++++++ REPLACE' }),
    ],
    [
      'blocks that say in which line',
      one({
        path: 'total.py',
        diff: '<<<<<<< SEARCH\n:start_line:5\n-------\n    s = 0\n=======\n    s = 1\n>>>>>>> REPLACE',
      }),
    ],
    ['a diff without a header', one({ path: 'total.py', patch: diff.slice(diff.indexOf('@@')) })],
    ['a diff with line ends of Windows', one({ patch: diff.replaceAll('\n', '\r\n') })],
    ['the words of a shell’s command', one({ command: ['apply_patch', patch] }, 'shell')],
    ['a shell’s command', one({ command: `apply_patch <<'EOF'\n${patch}EOF\n` }, 'shell')],
    ['a diff in a shell’s command', one({ cmd: `git apply <<'EOF'\n${diff}EOF\nnpm test\n` }, 'shell')],
    [
      'a file that a shell shows and writes',
      [
        ['shell', { command: 'cat total.py' }, file],
        ['shell', { command: `cat > total.py <<'EOF'\n${fixed}EOF\n` }, ''],
      ],
    ],
    [
      'a file that a shell edits, shown by another tool',
      [
        ['read', { path: '/repo/total.py' }, file],
        ['shell', { command: ['bash', '-lc', "cd /repo && sed -i 's/s = 0/s = 1/' total.py"] }, ''],
      ],
    ],
    [
      'a file that another tool calls by a longer path',
      [
        ['read', { path: '/repo/total.py' }, file],
        ['write', { path: 'total.py', content: fixed }, 'ok'],
      ],
    ],
    [
      'what was read with numbers and a word above',
      [
        ['editor', { command: 'view', path: 'total.py' }, `Here is total.py:\n${numbered.join('\n')}\n`],
        ['editor', { command: 'create', path: 'total.py', file_text: fixed }, 'ok'],
      ],
    ],
    [
      'a file with line ends of Windows and a piece without',
      [
        ['read', { path: 'total.py' }, file.replaceAll('\n', '\r\n')],
        ['edit', { path: 'total.py', old_str: '    s = 0\n    for', new_str: '    s = 1\n    for' }, 'ok'],
      ],
    ],
    [
      'a file that was made and taken away again beside it',
      [
        read,
        ['write', { path: 'tmp_a.py', content: 'a = 1\n' }, 'ok'],
        ['apply', { input: patch.replace('*** End', '*** Delete File: tmp_a.py\n*** End') }, 'ok'],
      ],
    ],
  ])('%s', async (_, calls) => {
    expect(await judged(calls)).toMatchObject({ value: 1, reason: '1 nodes changed, 1 needed' });
  });

  test('the text that a custom tool takes', async () => {
    expect(await judged([['apply_patch', patch, 'ok']], 'custom')).toMatchObject({
      reason: '1 nodes changed, 1 needed',
    });
  });
});

test('a text for a line stands behind that line', async () => {
  const insert: Call = [
    'editor',
    { command: 'insert', path: 'total.py', insert_line: 5, insert_text: '    print(s)\n' },
    'ok',
  ];
  expect((await judged([read, insert])).reason).toBe('7 nodes changed, 0 needed; 7 of scaffolding');
  expect(
    (await judged([read, insert], 'function', { 'total.py': file.replace('s = 0', 's = 0\n    print(s)') })).reason,
  ).toBe('7 nodes changed, 7 needed');
});

test('a piece may take the place of every one like it', async () => {
  const all: Call = ['edit', { path: 'total.py', old_string: 'xs', new_string: 'ys', replace_all: true }, 'ok'];
  expect((await judged([read, all])).reason).toBe('5 nodes changed, 5 needed');
});

test('a file that doubles with every call is let go of', async () => {
  const twice = (n: number): Call => [
    'edit',
    { path: 'total.py', old_str: 's', new_str: 'ss', replace_all: true, n },
    'ok',
  ];
  const many = Array.from({ length: 30 }, (_, n) => twice(n));
  expect((await judged([read, ...many])).reason).toBe('what was changed cannot be read');
});

test('pieces of a file that nobody read stand beside each other before and after, and a comment between them is not new', async () => {
  const first: Call = ['edit', { path: 'total.py', old_str: 's = 0', new_str: 's = 1' }, 'ok'];
  const second: Call = [
    'edit',
    { path: 'total.py', old_str: '    # Of all.\n    n = len(xs)', new_str: '    # Of all.\n    n = count(xs)' },
    'ok',
  ];
  expect(await judged([first, second])).toMatchObject({ value: 1, reason: '2 nodes changed, 2 needed' });
  // What tests said of a file is not what it holds.
  expect((await judged([['run_tests', { path: 'total.py' }, '3 passed'], first, second])).reason).toBe(
    '2 nodes changed, 2 needed',
  );
});

test('a new file of a shell is stray by its name, like any other', async () => {
  const edit: Call = ['edit', { path: 'total.py', old_str: 's = 0', new_str: 's = 1' }, 'ok'];
  const left: Call = ['shell', { command: "cat > debug_total.py <<'EOF'\nx = 1\nEOF" }, ''];
  const gone: Call = ['shell', { command: 'python debug_total.py; rm debug_total.py' }, '1'];
  expect((await judged([read, edit, left])).reason).toBe('1 nodes changed, 1 needed; 5 of stray files');
  expect((await judged([read, edit, left, gone])).reason).toBe('1 nodes changed, 1 needed');
});

test('calls that may have changed what nobody can read are named, and change nothing else', async () => {
  const edit: Call = ['edit', { path: 'total.py', old_str: 's = 0', new_str: 's = 1' }, 'ok'];
  const sed: Call = ['shell', { command: "sed -i 's/[0-9]/1/' mean.py" }, ''];
  expect(await judged([read, edit, sed])).toMatchObject({
    value: 1,
    reason: '1 nodes changed, 1 needed; 1 call may have changed what cannot be read',
  });
  expect(await judged([read, sed])).toMatchObject({ value: null, reason: 'what was changed cannot be read' });
});

test('of a text with gaps for a model to fill, nothing is known', async () => {
  const sketch: Call = [
    'edit_file',
    { target_file: 'total.py', code_edit: '# ... existing code ...\n    s = 1\n' },
    'ok',
  ];
  expect(await judged([read, sketch])).toMatchObject({ value: null, reason: 'what was changed cannot be read' });
});
