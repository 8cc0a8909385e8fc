import { describe, expect, test } from 'vitest';
import { signal, turn } from '../store/fixtures.ts';
import { codeBlocks, codeParses } from './code-parses.ts';
import { converse, trajectory } from './fixtures.ts';
import { parseCode } from './grammars.ts';
import { minimalDiff } from './minimal-diff.ts';
import type { Scorer, ScorerInput } from './scorer.ts';
import { scorerConformance } from './scorer-conformance.ts';
import { treeDistance } from './tree-distance.ts';

const input = (turns: ScorerInput['turns']): ScorerInput => ({ trajectory: trajectory(), turns, signals: [] });
const saying = (answer: string) => input(converse('Write it.', [{ say: answer }]));
const fenced = (language: string, code: string) => `Here:\n\`\`\`${language}\n${code}\n\`\`\`\n`;
const said = async (scorer: Scorer, of: ScorerInput) => scorer.score(of, { signal: new AbortController().signal });

const sound = {
  typescript: 'export const add = (a: number, b: number): number => a + b;',
  tsx: 'const A = () => <b>{1}</b>;',
  javascript: 'const f = (x) => x?.y ?? 1;',
  python: 'def add(a: int, b: int) -> int:\n    return a + b',
  go: 'package main\n\nfunc add(a, b int) int { return a + b }',
  java: 'class A { int add(int a, int b) { return a + b; } }',
  rust: 'fn add(a: i32, b: i32) -> i32 { a + b }',
};

describe('code that parses', () => {
  scorerConformance({
    scorer: codeParses(),
    gold: saying(fenced('python', sound.python)),
    poor: saying(fenced('python', sound.python) + fenced('ts', 'const = ;')),
    silent: input([turn({ choices: [] })]),
    readsAnswers: true,
  });

  test.each(Object.entries(sound))('reads %s', async (language, code) => {
    expect((await said(codeParses(), saying(fenced(language, code)))).value).toBe(1);
    expect((await said(codeParses(), saying(fenced(language, `${code.slice(0, -1)}(((`)))).value).toBe(0);
  });

  test('leaves out what is no code, or of another language', async () => {
    expect(codeBlocks('```\nplain\n```\n~~~~go\na\n```\nb\n~~~~\n```brainfuck\n+\n```')).toEqual([
      { language: 'go', text: 'a\n```\nb' },
    ]);
    expect((await said(codeParses(), saying(fenced('text', 'hello (')))).value).toBeNull();
  });
});

describe('the distance of two trees', () => {
  const between = async (a: string, b: string) => {
    const [one, other] = [await parseCode('python', a), await parseCode('python', b)];
    return treeDistance(one!.root, other!.root);
  };

  test('is the nodes that come, go or change', async () => {
    expect(await between('x = 1\n', 'x = 1\n')).toBe(0);
    expect(await between('x = 1\n', 'x = 2\n')).toBe(1);
    expect(await between('x = 1\n', 'x  =  1\n')).toBe(0);
    // expression_statement(assignment(y, =, 2))
    expect(await between('x = 1\n', 'x = 1\ny = 2\n')).toBe(5);
    expect(await between('x = 1\ny = 2\n', 'x = 1\n')).toBe(5);
  });
});

describe('minimal diff', () => {
  const file = 'def total(xs):\n    s = 0\n    for x in xs:\n        s += x\n    return s\n';
  const fixed = 'def total(xs):\n    s = 1\n    for x in xs:\n        s += x\n    return s\n';
  const tools = ['read', 'edit', 'write'].map((name) => ({ type: 'function', function: { name, parameters: {} } }));
  const working = (...edits: (readonly [string, Record<string, string>])[]) => {
    const said = [
      { say: [['read', '{"path":"total.py"}']] as const, results: [file] },
      ...edits.map(([name, args]) => ({ say: [[name, JSON.stringify(args)]] as const, results: ['ok'] })),
      { say: 'Done.' },
    ];
    return input(
      converse('Begin the sum of total.py with 1.', said).map((one) => ({
        ...one,
        request: { ...one.request, tools },
      })),
    );
  };
  const edit = (from: string, to: string) => ['edit', { path: 'total.py', old_string: from, new_string: to }] as const;
  const clean = working(edit('s = 0', 's = 1'));
  const noisy = working(edit('s = 0', 's = 1\n    print(s)'));
  scorerConformance({
    ...{ scorer: minimalDiff(), gold: clean, poor: noisy, silent: saying('No change is needed.') },
    readsAnswers: true,
  });

  test('prices scaffolding, stray files, reformatting and comments apart', async () => {
    expect(await said(minimalDiff(), clean)).toMatchObject({ value: 1, reason: '1 nodes changed, 1 needed' });
    expect((await said(minimalDiff(), noisy)).reason).toMatch(/^(\d+) nodes changed, 1 needed; \d+ of scaffolding$/);
    expect((await said(minimalDiff(), working(edit('s = 0', '# begin with one\n    s = 1')))).reason).toBe(
      '1 nodes changed, 1 needed; 1 of comments',
    );
    expect(await said(minimalDiff(), working(edit('s = 0', 's = 1  # TODO: why?')))).toMatchObject({
      value: 0.5,
      reason: '1 nodes changed, 1 needed; 1 of scaffolding',
    });
    expect(await said(minimalDiff(), working(edit('s = 0', 's  =  0')))).toMatchObject({
      value: 0,
      reason: '0 nodes changed, 0 needed; 1 of reformatting',
    });
    const left = working(edit('s = 0', 's = 1'), ['write', { path: 'debug_notes.md', content: 'a\nb\n' }]);
    expect(await said(minimalDiff(), left)).toMatchObject({
      value: 0.25,
      reason: expect.stringMatching(/1 needed; 3 of stray files/),
    });
  });

  test('prices what was restyled beside a change that was needed, and not what a block around it indents', async () => {
    const rewrittenAs = async (content: string) =>
      (await said(minimalDiff(), working(['write', { path: 'total.py', content }]))).reason;
    const restyled = fixed.replace('s += x', 's  +=  x').replace('return s', 'return s;').replace('xs):', 'xs) :');
    expect(await rewrittenAs(restyled)).toMatch(/needed; 3 of reformatting$/);
    const inBlock = fixed.replace(
      '    for x in xs:\n        s += x\n',
      '    if xs:\n        for x in xs:\n            s += x\n',
    );
    expect(await rewrittenAs(inBlock)).toMatch(/^\d+ nodes changed, \d+ needed$/);
  });

  test('takes time in proportion to a comment that is mostly space', async () => {
    const timeOf = async (gap: number) => {
      const started = process.cpuUsage();
      await said(minimalDiff(), working(['write', { path: 'total.py', content: `# a${' '.repeat(gap)}b\n${fixed}` }]));
      const { user, system } = process.cpuUsage(started);
      return Math.max(10, (user + system) / 1000);
    };
    await timeOf(300);
    expect((await timeOf(2_400)) / (await timeOf(300))).toBeLessThan(24); // 512 where each space is a place to begin and to end
  });

  test('compares with the change that is known to do', async () => {
    const rewritten = working(['write', { path: 'total.py', content: 'def total(xs):\n    return 1 + sum(xs)\n' }]);
    const known = minimalDiff({ accepted: () => ({ 'total.py': fixed }) });
    expect((await said(minimalDiff(), rewritten)).value).toBe(1);
    expect((await said(known, rewritten)).value).toBeLessThan(0.1);
    expect((await said(known, clean)).value).toBe(1);
    expect(known.inProcess).toBeUndefined();
  });

  test('takes the patch that a reviewer wrote for the smallest change, by name of file and whatever else was touched', async () => {
    const correction =
      '--- a/total.py\n+++ b/total.py\n@@ -1,3 +1,3 @@\n def total(xs):\n-    s = 0\n+    s = 1\n     for x in xs:\n';
    const labelled = (of: ScorerInput, words: string) => ({
      ...of,
      signals: [signal({ kind: 'label', name: 'score', value: 0.4, correction: words })],
    });
    const scorer = minimalDiff({ accepted: 'corrections' });
    expect([scorer.usesLabels, scorer.inProcess]).toEqual(['corrections', true]);
    const rewritten = working(['write', { path: 'total.py', content: 'def total(xs):\n    return 1 + sum(xs)\n' }]);
    expect((await said(scorer, labelled(rewritten, correction))).value).toBeLessThan(0.1);
    expect((await said(scorer, labelled(clean, correction))).value).toBe(1);
    const other = working(edit('s = 0', 's = 1'), ['write', { path: 'other.py', content: 'x = 1\n' }]);
    expect((await said(scorer, labelled(other, correction))).reason).toMatch(/^\d+ nodes changed, \d+ needed$/);
    for (const words of ['It should begin with 1.', correction.replace('s = 0', 's = 7')])
      expect((await said(scorer, labelled(rewritten, words))).value).toBe(1);
    expect((await said(scorer, rewritten)).value).toBe(1);
  });

  test.each([
    [
      'a unified diff',
      '--- a/total.py\n+++ b/total.py\n@@ -1,4 +1,4 @@\n def total(xs):\n-    s = 0\n+    s = 1\n     for x in xs:\n',
    ],
    [
      'apply_patch',
      '*** Begin Patch\n*** Update File: total.py\n@@ def total(xs):\n-    s = 0\n+    s = 1\n*** End Patch',
    ],
  ])('reads edits out of %s', async (_, patch) => {
    expect(await said(minimalDiff(), working(['edit', { input: patch }]))).toMatchObject({
      value: 1,
      reason: '1 nodes changed, 1 needed',
    });
    const noisier = patch.replace('+    s = 1\n', '+    s = 1\n+    print(s)\n');
    expect((await said(minimalDiff(), working(['edit', { patch: noisier }]))).reason).toMatch(
      /1 needed; \d+ of scaffolding$/,
    );
    const left = `${noisier.replace('*** End Patch', '')}\n--- /dev/null\n+++ b/debug_notes.md\n@@ -0,0 +1,2 @@\n+a\n+b\n`;
    expect((await said(minimalDiff(), working(['edit', { diff: left }]))).reason).toMatch(/, 3 of stray files$/);
    expect((await said(minimalDiff(), working(['edit', { diff: 'say -- what\n+++ and\n' }]))).value).toBeNull();
  });

  test('a new file is stray by its name, and a module that is called like one of those is not', async () => {
    const made = async (path: string) =>
      (await said(minimalDiff(), working(edit('s = 0', 's = 1'), ['write', { path, content: 'x = 1\n' }]))).reason;
    for (const path of [
      'tmp_total.py',
      'src/debug.py',
      'total_old.py',
      'total-copy2.py',
      'CHANGES_SUMMARY.md',
      'run.log',
    ])
      expect(await made(path)).toMatch(/; \d of stray files$/);
    for (const path of ['src/summary.py', 'order-summary.py', 'copy.py', 'notes.py', 'attempt.py', 'README.md'])
      expect(await made(path)).not.toContain('stray');
  });

  test('an edit that the tool refused changed nothing', async () => {
    const refused = converse('Begin with 1.', [
      {
        say: [['edit', '{"path":"total.py","old_string":"s = 0","new_string":"s = 1"}']],
        results: ['{"error":"no such file"}'],
      },
      { say: 'It failed.' },
    ]).map((one) => ({ ...one, request: { ...one.request, tools } }));
    expect((await said(minimalDiff(), input(refused))).value).toBeNull();
  });
});
