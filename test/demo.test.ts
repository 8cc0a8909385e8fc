/** `npm start`, made as short as it gets: too little to learn from, so that nobody is promoted. loop.slow.test.ts has it longer. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { Summary } from '../src/loop/turn.ts';
import { demoConfig, startLoop } from './loop-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-demo-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('turns the loop once, says what each stage did, and leaves a summary', async () => {
  const config = join(folder, 'pawl.config.ts');
  writeFileSync(config, demoConfig(1));
  const home = join(folder, 'home');
  const demo = startLoop(home, config, 1, 24);
  expect([await demo.ended(), demo.output()]).toEqual([0, expect.stringContaining('Look next:')]);
  const stages = ['customers', 'collect', 'score', 'curate', 'train', 'evaluate', 'deploy'];
  const told = demo.output().match(/^ {2}[a-z]+ /gm) ?? [];
  expect(told.map((word) => word.trim()).filter((word) => stages.includes(word))).toEqual(stages);
  const summary: Summary = JSON.parse(readFileSync(join(home, 'summary.json'), 'utf8'));
  expect(summary).toMatchObject({ agent: 'support-desk', turn: 1, seed: 1 });
  expect(summary.funnel[0]).toEqual({ gate: 'origin', entered: 24, passed: 24 });
  // The candidate is registered as what it was made from says.
  const env = { ...process.env, PAWL_HOME: home };
  const list = execFileSync(process.execPath, ['bin/pawl.js', 'releases', 'list', '--config', config, '--json'], {
    env,
  });
  const lines = list.toString().trim().split('\n');
  const releases = lines.map((line) => JSON.parse(line) as { id: string; name: string; parent: string | null });
  const served = releases.find(({ parent }) => parent === null)!;
  expect(releases.filter(({ name }) => name === 'support-desk-1')).toMatchObject([{ parent: served.id }]);
}, 600_000); // a whole turn of the loop, on a machine that may be busy
