/** `npm start -- --break`, whole: a candidate that learned a trick is stopped by evaluation and, when forced, by the canary. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';

const home = mkdtempSync(join(tmpdir(), 'pawl-break-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

it('tells in plain words that it was stopped, and that it was taken back', async () => {
  const child = spawn(process.execPath, ['--import', 'tsx', 'examples/support-desk/demo.ts', '--break'], {
    env: { ...process.env, DATABASE_URL: '', PAWL_HOME: home, PAWL_PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (chunk) => (text += chunk));
  const [code] = await once(child, 'close');
  expect([code, text]).toEqual([0, expect.stringContaining('taken back when it was forced past it')]);
  expect(text).toMatch(/evaluate +fail: .*below 95% of the baseline/);
  expect(text).toMatch(/Gate one-tool: .* call escalate and solve nothing/);
  expect(text).toMatch(/canary +rolled-back with \d+% of users on it: .*chance does not explain it/);
}, 600_000);
