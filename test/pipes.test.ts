/** Commands whose reader leaves early, and commands that are refused, leave nothing behind. Real processes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { commands } from '../src/commands.ts';
import { entry, noon } from '../src/store/fixtures.ts';
import { openStore } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { isThorough } from './pawl.ts';

let home: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'pawl-pipes-'));
  const store = await openStore({ home });
  await writeEntries(store, [
    entry.turn({
      trajectory: 'left',
      startedAt: noon,
      status: 'disconnected',
      promptTokens: null,
      completionTokens: null,
    }),
    ...Array.from({ length: 150 }, (_, i) => entry.turn({ trajectory: `t-${i}`, startedAt: noon + i + 1 })),
  ]);
  await store.close();
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

async function pawl(args: string[], { lines = Number.POSITIVE_INFINITY, stdout = 'pipe' as 'pipe' | number } = {}) {
  const child = spawn(process.execPath, ['bin/pawl.js', ...args], {
    env: { ...process.env, DATABASE_URL: '', PAWL_HOME: home, PAWL_PORT: '0' },
    stdio: ['ignore', stdout, 'pipe'],
  });
  let [out, said] = ['', ''];
  if (lines === 0) child.stdout?.destroy();
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    out += text;
    if (out.split('\n').length > lines) child.stdout?.destroy();
  });
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const [code] = (await once(child, 'close')) as [number];
  return { code, out, said };
}

const withJson: string[][] = [
  ['trajectories', 'list', '--limit', '200', '--json'],
  ['trajectories', 'show', 't-1', '--json'],
  ['loop', 'status', '--json'],
  ['loop', 'history', '--json'],
  ['keys', 'list', '--json'],
  ['audit', '--json'],
  ['doctor', '--json'],
];
test.each(isThorough ? withJson : withJson.slice(0, 2))(
  '`pawl %s %s … | head` ends without a word',
  async (...args) => {
    for (const lines of [0, 1]) {
      const { said } = await pawl(args, { lines });
      expect(said).not.toMatch(/EPIPE|at .*\.ts:\d+|Error/);
    }
    expect(existsSync(join(home, 'postgres', 'data', 'postmaster.pid'))).toBe(false);
  },
);

test('every command is there to be piped', () => {
  expect(withJson.every(([name]) => name! in commands)).toBe(true);
});

test.runIf(existsSync('/dev/full'))('a full disk under standard output is said once', async () => {
  const { code, said } = await pawl(['trajectories', 'list'], { stdout: openSync('/dev/full', 'w') });
  expect([code, said]).toEqual([1, expect.stringMatching(/^Standard output cannot be written: .*ENOSPC.*\n$/)]);
});

test('a call that its caller left is listed as cancelled, with no tokens instead of 0', async () => {
  const { out } = await pawl(['trajectories', 'list', '--limit', '200']);
  expect(out.split('\n').find((line) => line.includes(' left '))).toMatch(/ – .* cancelled /);
  expect(out.split('\n').find((line) => line.includes(' t-1 '))).toMatch(/ ok /);
  const shown = await pawl(['trajectories', 'show', 'left']);
  expect(shown.out).toContain('tokens unknown');
  expect(shown.out).toContain('cancelled');
});

test('training that is only estimated, or refused, leaves no folder', async () => {
  const base = [
    'train',
    '--base',
    'examples/support-desk/model',
    '--environment',
    'examples/support-desk/desk.ts#supportDesk',
  ];
  const estimated = await pawl([...base, '--recipe', 'grpo', '--steps', '2', '--estimate']);
  expect([estimated.code, estimated.said]).toEqual([0, '']);
  const refused = await pawl([...base, '--recipe', 'rft', '--kl', '0.1']);
  expect(refused.code).toBe(1);
  expect(refused.said).toContain('kl is for the recipes grpo, sft-grpo, rft-grpo; rft does not read it.');
  expect(existsSync(join(home, 'runs'))).toBe(false);
});
