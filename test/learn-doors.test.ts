/** Score, curate, export and train through their commands: real processes, a settings file, a small model. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeCheckpoint } from '../src/engine/checkpoint.ts';
import { parseSpec } from '../src/engine/model-spec.ts';
import { newModel } from '../src/engine/new-model.ts';
import { converse } from '../src/score/fixtures.ts';
import { giveConsent } from '../src/store/consents.ts';
import { entry } from '../src/store/fixtures.ts';
import { openStore, type Store } from '../src/store/postgres.ts';
import { writeEntries } from '../src/store/record.ts';
import { bareEnvironment } from './bare-environment.ts';

const bin = fileURLToPath(new URL('../bin/pawl.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'pawl-learn-doors-'));
const home = join(folder, '.pawl');
let store: Store;

function pawl(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [bin, ...args], { cwd: folder, env: bareEnvironment() }, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), out, err }),
    );
  });
}
const json = async (...args: string[]) => {
  const { code, out, err } = await pawl(...args, '--json');
  if (code !== 0) throw new Error(err);
  return JSON.parse(out);
};

/** Two users ask the same, one is told well: ten conversations with votes, in the last minutes. */
beforeAll(async () => {
  writeFileSync(
    join(folder, 'pawl.config.ts'),
    `import { defineAgent, defineConfig, feedback, weighted } from 'pawl';
export default defineConfig({
  agents: [
    defineAgent({ name: 'shop' }),
    defineAgent({
      name: 'desk',
      reward: weighted({ votes: [1, feedback()] }),
      curate: { maxUserShare: 1, kAnonymity: 1 },
      train: { base: 'model', without: ['points', 'private', 'types', 'balance'] },
    }),
  ],
  engine: { threads: 1 },
});
`,
  );
  await writeCheckpoint(join(folder, 'model'), newModel(parseSpec('d16-l1-h2-kv1-v300'), { seed: 1, texts: [] }));
  store = await openStore({ home });
  const at = Date.now() - 600_000;
  for (const user of ['ann', 'bob']) await giveConsent(store, 'desk', user, new Date(at - 1000));
  const talks = Array.from({ length: 5 }, (_, i) => [
    { id: `good-${i}`, user: 'ann', say: `Order ${i} was sent.`, value: 1 },
    { id: `bad-${i}`, user: 'bob', say: 'No.', value: 0 },
  ]).flat();
  for (const [k, { id, user, say, value }] of talks.entries()) {
    const question = `Where is order ${id.at(-1)}?`;
    const turns = converse(question, [{ say }], { trajectory: id, user, startedAt: at + k * 1000 });
    const target = { kind: 'trajectory', id } as const;
    await writeEntries(store, [
      ...turns.map((turn) => ({
        kind: 'turn' as const,
        turn: {
          ...turn,
          choices: [
            { ...turn.choices[0]!, message: { ...turn.choices[0]!.message, reasoning_content: `Look at ${id}.` } },
          ],
        },
      })),
      entry.signal({ identity: `vote ${id}`, user, value, target, at: at + 60_000, receivedAt: at + 60_000 }),
    ]);
  }
});
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

test('conversations become scores, a dataset, files for other trainers, and a model', async () => {
  expect(await json('score', 'run', '--agent', 'desk')).toMatchObject({ agent: 'desk', scored: 10, mean: 0.5 });
  const [shown, before, preview] = await Promise.all([
    pawl('score', 'show', 'good-1'),
    json('train', '--advise', '--agent', 'desk'),
    pawl('curate', 'run', '--agent', 'desk', '--dry-run'),
  ]);
  expect(shown.out).toMatch(
    /^1\.000 of 1, as good as it can be: every part spoke[\s\S]*votes +1 +1\.000 +1\.000 +one voter/,
  );
  expect(before).toMatchObject({
    stored: { trajectories: 10, consenting: 10, scored: 10, good: 5, votes: 10, corrections: 0 },
    dataset: null,
    next: 'pawl curate run --agent desk',
  });
  expect(preview.out).toMatch(/^desk {2}5 conversations, 5 pairs \(votes 5\), not made/);
  expect(existsSync(join(home, 'datasets', 'desk-v1.jsonl'))).toBe(false);

  expect(await json('curate', 'run', '--agent', 'desk')).toMatchObject({ id: 'desk-v1', rows: 5, pairs: { rows: 5 } });
  const checked = await json('curate', 'check', '--agent', 'desk', '--dataset', 'desk-v1');
  expect(checked).toMatchObject({
    dataset: 'desk-v1',
    ready: true,
    without: ['points', 'private', 'types', 'balance'],
  });
  expect(checked.conditions.filter(({ met }: { met: boolean }) => !met)).toMatchObject([
    { name: 'points', found: '10 points', needed: '5,000 or more' },
    { name: 'private' },
    { name: 'types' },
    { name: 'balance' },
  ]);
  expect(await json('curate', 'run', '--agent', 'desk', '--seed', '3')).toMatchObject({ id: 'desk-v2' });
  const lines = async (format: string) => {
    const out = join(folder, `${format}.jsonl`);
    expect(await json('datasets', 'export', 'desk-v1', '--format', format, '--out', out)).toMatchObject({ rows: 5 });
    return readFileSync(out, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  };
  const [diff, list, sft, preference, prompts, chat] = await Promise.all([
    json('datasets', 'diff', 'desk-v1', 'desk-v2'),
    pawl('datasets', 'list'),
    lines('trl-sft'),
    lines('trl-preference'),
    lines('trl-prompts'),
    lines('openai-chat'),
  ]);
  expect(diff).toMatchObject({ rows: { onlyFirst: [], onlySecond: [], same: 5 }, settings: { seed: [0, 3] } });
  expect(list.out).toMatch(/desk-v1 .* 10 +5 +5 /);
  expect(sft[0].messages).toMatchObject([
    { role: 'user' },
    { role: 'assistant', reasoning_content: 'Look at good-0.' },
  ]);
  for (const { chosen, rejected } of preference)
    expect([chosen[0].content, rejected[0].content]).toEqual([expect.stringMatching(/^Order \d was sent/), 'No.']);
  expect(prompts[0].prompt).toMatchObject([{ role: 'user' }]);
  expect(JSON.stringify(chat)).not.toContain('Look at');

  const [again, told, quiet, none, ignored] = await Promise.all([
    pawl('datasets', 'export', 'desk-v1', '--format', 'trl-sft', '--out', join(folder, 'trl-sft.jsonl')),
    pawl('train', '--advise', '--agent', 'desk'),
    json('train', '--advise', '--agent', 'desk', '--no-probe'),
    pawl('train', '--agent', 'shop'),
    pawl('train', '--agent', 'desk', '--dataset', 'desk-v1', '--recipe', 'sft', '--kl', '0.1'),
  ]);
  expect([again.code, again.err]).toEqual([1, expect.stringContaining('--force')]);
  expect(told.out).toMatch(/5 {2}pairs from votes in desk-v2\n[\s\S]*Recipe: sft\. .*\nNext: pawl train --agent desk/);
  expect(told.out).toMatch(
    /Engine: embedded, in this process\. Measured there: \S+ tokens\/s learned from, .*\n {2}sft: 2 steps, .* learned from: \d+ s\nAbout /,
  );
  expect(quiet).toMatchObject({ recipe: 'sft', onEngine: null });
  expect(none.err).toContain('Nothing says which model to train');
  expect(ignored.err).toContain('kl is for the recipes grpo');
});

test('a dataset is learned as it is: an adapter on its conversations, then on its pairs, merged for serving', async () => {
  const how = ['--recipe', 'sft-dpo', '--lora', '2', '--id', 'one'];
  const run = await json('train', '--agent', 'desk', '--dataset', 'desk-v1', ...how);
  expect(run).toMatchObject({
    ...{ id: 'one', agent: 'desk', recipe: 'sft-dpo', status: 'finished' },
    base: expect.stringMatching(/^artifact:/),
    settings: { dataset: 'desk-v1', lora: { rank: 2, alpha: 4 } },
    model: join(home, 'models', 'one'),
  });
  // The whole model, which needs no base beside it.
  expect(existsSync(join(run.model, 'model.safetensors'))).toBe(true);
  expect(existsSync(join(run.model, 'adapter_config.json'))).toBe(false);
  const kept = (await pawl('artifacts', 'list', '--json')).out.split('\n').find((line) => line.includes('one stage-0'));
  expect(kept).toContain('adapter_config.json');
});
