import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { agentOf, loadConfig } from './config.ts';
import { ConfigError } from './errors.ts';
import { readSuite } from './evaluate/read-suite.ts';
import { writeInitial } from './init-command.ts';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'pawl-init-')));
afterAll(() => rmSync(root, { recursive: true }));
const given = { agent: 'support-desk', upstream: 'http://127.0.0.1:8000/v1/' };

test('what it writes loads as it is, and says what was asked for', async () => {
  const folder = join(root, 'new', 'folder');
  expect(writeInitial(folder, given)).toEqual(['pawl.config.ts', 'agents/support-desk.ts', 'golden.jsonl']);
  const config = await loadConfig({}, {}, folder);
  expect(config.upstreams).toMatchObject({ main: { baseUrl: 'http://127.0.0.1:8000/v1' } });
  const agent = agentOf(config, 'support-desk');
  expect(agent.reward.parts.map(({ name }) => name)).toEqual(['feedback', 'resolved', 'tools']);
  expect(agent.evaluate.golden).toBe(join(folder, 'golden.jsonl'));
  const suite = await readSuite(agent.evaluate.golden!, agent.name, null);
  expect(suite).toMatchObject({
    kind: 'cases',
    cases: [{ type: 'question' }, { type: 'question' }, { type: 'order' }],
  });
});

test('an address cannot become code', async () => {
  const folder = join(root, 'quotes');
  const upstream = `http://127.0.0.1:8000/'+"\`\${1}/v1`;
  writeInitial(folder, { ...given, upstream });
  expect((await loadConfig({}, {}, folder)).upstreams.main?.baseUrl).toBe(upstream);
});

test('nothing that is there is written over unless it is said to', () => {
  const folder = mkdtempSync(join(root, 'there-'));
  writeFileSync(join(folder, 'golden.jsonl'), 'mine');
  expect(() => writeInitial(folder, given)).toThrow(
    new ConfigError(`golden.jsonl is in ${folder} already. Give another folder, or --force to write over it.`),
  );
  expect(existsSync(join(folder, 'pawl.config.ts'))).toBe(false);
  writeInitial(folder, { ...given, force: true });
  expect(readFileSync(join(folder, 'golden.jsonl'), 'utf8')).not.toBe('mine');
});

test('a name or address that the settings would refuse is refused here', () => {
  const attempt = () => writeInitial(join(root, 'bad'), { agent: '../evil', upstream: 'nowhere' });
  expect(attempt).toThrow(/^Nothing was written:\n {2}--agent \.\.\/evil: lower-case letters/);
  expect(attempt).toThrow(/--upstream nowhere: an http or https address/);
  expect(existsSync(join(root, 'bad'))).toBe(false);
});
