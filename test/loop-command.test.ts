/** `pawl loop …` beside a Pawl that serves, and without one: real processes on a real home, and nothing to learn from. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeModel } from '../src/engine/fixtures/write-model.ts';
import { type PawlProcess, startPawl } from './pawl.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-loop-command-'));
const home = join(folder, 'home');
const config = join(folder, 'pawl.config.ts');
let serving: PawlProcess;

beforeAll(async () => {
  await writeModel(join(folder, 'base'), 'd16-l2-h2-kv1-v280-f24-c128');
  writeFileSync(join(folder, 'golden.jsonl'), '');
  const desk = {
    name: 'desk',
    train: { base: join(folder, 'base') },
    evaluate: { golden: join(folder, 'golden.jsonl') },
  };
  const agents = [{ ...desk, loop: { every: 'day', after: null } }, { name: 'shop' }];
  writeFileSync(config, `export default ${JSON.stringify({ agents })};\n`);
  serving = await startPawl({}, home, undefined, ['--config', config]);
});
afterAll(async () => {
  await serving?.remove();
  rmSync(folder, { recursive: true, force: true });
});

const pawl = async (...args: string[]) => {
  const env = { ...process.env, DATABASE_URL: '', PAWL_HOME: home };
  const given = [resolve('bin/pawl.js'), 'loop', ...args, '--config', config];
  return promisify(execFile)(process.execPath, given, { env }).then(
    ({ stdout }) => ({ code: 0, text: stdout }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, text: stdout + stderr }),
  );
};
const json = async (...args: string[]) => JSON.parse((await pawl(...args, '--json')).text);

it('says what comes next, pauses and goes on', async () => {
  const status = await json('status');
  expect(status).toMatchObject({ agent: 'desk', next: { kind: 'wait', until: expect.any(Number) }, turn: null });
  expect((await pawl('status', '--agent', 'shop')).text).toContain('Agent shop has no release that serves');
  expect(await pawl('status', '--agent', 'nobody')).toMatchObject({
    code: 1,
    text: expect.stringContaining('There is no agent nobody in the settings; there is desk, shop.'),
  });
  expect((await pawl('pause')).text).toContain('The loop is paused.');
  expect((await pawl('status')).text).toContain('Paused by ');
  expect(await pawl('run')).toMatchObject({ code: 1, text: expect.stringContaining('pawl loop resume --agent desk') });
  expect((await json('resume')).paused).toBeNull();
  expect((await pawl('history')).text).toContain('No turn of desk has begun yet');
});

it('asks the Pawl that serves for a turn and tells how it went', async () => {
  const { code, text } = await pawl('run', '--seed', '5');
  expect([code, text]).toEqual([0, expect.stringContaining('Turn 1, seed 5: ended')]);
  expect(text).toContain('No conversation was recorded in this window');
  expect((await pawl('history')).text).toMatch(/1 {2}.* person .*No conversation was recorded/);
});

it('runs a turn itself where none serves', async () => {
  await serving.kill();
  const { code, text } = await pawl('run');
  expect([code, text]).toEqual([0, expect.stringContaining('Turn 2, seed 2: ended')]);
  expect(text).toMatch(/curate +nothing was kept, so there is no dataset/);
});
