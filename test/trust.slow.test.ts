/** Whether a reward can be trusted, through the commands: labels in, agreement, weights, two rewards beside each other, a judge's criteria. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { writeCheckpoint } from '../src/engine/checkpoint.ts';
import { newModel } from '../src/engine/new-model.ts';
import type { Store } from '../src/store/postgres.ts';
import { type JudgeServer, type Shown, startJudge } from './judge-server.ts';
import { type PawlProcess, startPawl } from './pawl.ts';

vi.setConfig({ testTimeout: 600_000 });

const folder = mkdtempSync(join(tmpdir(), 'pawl-trust-'));
const at = (name: string) => join(folder, name);
let server: JudgeServer;
let pawl: PawlProcess;
let store: Store;

/** Sees kindness once it is told to. */
const verdictOn = ({ task, blocks }: Shown): object => {
  if (task.includes('Write better criteria')) return { criteria: ['Is it kind?'] };
  const isKind = blocks.some(({ text }) => text.includes('gladly'));
  return { reasoning: 'Read.', score: task.includes('Is it kind?') ? Number(isKind) : 0.5 };
};
/** People like the odd ones, which are kind; the reward likes what it should not. */
const isKind = (k: number) => k % 2 === 1;
const lines = (of: (k: number) => object) =>
  Array.from({ length: 40 }, (_, k) => `${JSON.stringify(of(k))}\n`).join('');

beforeAll(async () => {
  server = await startJudge(verdictOn);
  writeFileSync(
    at('pawl.config.ts'),
    `import { defineConfig, judge, outcome, weighted, words } from 'pawl';
     export default defineConfig({
       agents: [{ name: 'desk', reward: weighted({
         judge: [0.2, judge({ criteria: 'Is it long?' })],
         curt: [0.5, words({ forbidden: ['gladly'] })], kind: [0.3, words({ required: ['gladly'] })],
       }) }],
       upstreams: { box: { baseUrl: ${JSON.stringify(server.url)}, price: { prompt: 2, completion: 10 } } },
       judge: { upstream: 'box', model: 'large' },
     });\n`,
  );
  writeFileSync(
    at('next.ts'),
    `import { defineAgent, weighted, words } from 'pawl';
     export default defineAgent({ name: 'desk', reward: weighted({ kind: [1, words({ required: ['gladly'] })] }) });\n`,
  );
  writeFileSync(
    at('logs.jsonl'),
    lines((k) => ({
      ...{ id: `c-${k}`, outcomes: { resolved: isKind(k) } },
      messages: [
        { role: 'user', content: `number ${k}?` },
        { role: 'assistant', content: `${isKind(k) ? 'gladly' : 'go away'}, ${k}` },
      ],
    })),
  );
  const label = (k: number) => ({ trajectory: `c-${k}`, score: (isKind(k) ? 0.8 : 0.05) + k / 400, reviewer: 'rita' });
  writeFileSync(at('labels.jsonl'), `${lines(label)}{"trajectory":"c-1","score":1.7}\n`);
  pawl = await startPawl({}, undefined, undefined, ['--config', at('pawl.config.ts')]);
  store = await pawl.store();
});
afterAll(async () => {
  await store?.close();
  await pawl?.remove();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

const run = (...args: string[]): Promise<{ readonly code: number; readonly out: string; readonly said: string }> => {
  const env = { ...process.env, PAWL_HOME: pawl.home };
  const command = ['bin/pawl.js', ...args, '--config', at('pawl.config.ts')];
  return new Promise((resolve) => {
    execFile(process.execPath, command, { env }, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), out: `${out}${err}`, said: out }),
    );
  });
};
// biome-ignore lint/suspicious/noExplicitAny: what commands print as JSON
const json = async (...args: string[]): Promise<any> => JSON.parse((await run(...args, '--json')).said);

it('labels come in from a file, which says what it cannot take, and go out again', async () => {
  expect((await run('trajectories', 'import', at('logs.jsonl'))).code).toBe(0);
  const labelled = await run('labels', 'import', at('labels.jsonl'));
  expect(labelled).toMatchObject({ code: 1, out: expect.stringContaining('40 labels of desk: 40 values written') });
  expect(labelled.out).toContain('line 41: score: Too big');
  const exported = (await run('labels', 'export')).out.trim().split('\n');
  expect(exported.map((line) => JSON.parse(line))).toHaveLength(40);
});

it('a dry run says how many calls and how much money, and what is then asked is what it said', async () => {
  const plan = await json('score', 'run', '--since', '1h', '--dry-run');
  expect(plan).toMatchObject({ trajectories: 40, pending: 40, calls: 40, unpriced: 0 });
  expect(plan.money).toBeGreaterThan(0.1);
  expect(server.bodies).toHaveLength(0);
  expect(await json('score', 'run', '--since', '1h')).toMatchObject({ scored: 40, judge: { calls: 40 } });
});

it('a reward that people disagree with is an alarm, part by part, wherever one looks', async () => {
  const [status, shown, plain] = await Promise.all([
    json('reward', 'status'),
    run('reward', 'status'),
    run('score', 'show', 'c-1'),
  ]);
  expect(status.total).toMatchObject({ labels: 40, state: 'alarm' });
  expect(status.total.spearman).toBeLessThan(0);
  const stateOf = (name: string) => status.parts.find(({ part }: { part: string }) => part === name).state;
  expect(['kind', 'curt', 'judge'].map(stateOf)).toEqual(['ok', 'alarm', 'unmeasured']);
  expect(shown.out).toMatch(/total +40 +-0\.\d\d .*ALARM/);
  expect(shown.out).toMatch(/judge +40 +– +all alike/);
  expect(shown.out).toContain('orders conversations differently from people (bar 0.7)');
  // For somebody who did not build it: the sum in words, each part with what it added and why.
  expect(plain.out).toContain('0.400 of 1');
  expect(plain.out).toContain('Judge is half and half and adds 0.100 of 0.200: Read.\n');
  expect(plain.out).toContain('Kind is as good as it can be and adds 0.300 of 0.300');
  expect(plain.out).toMatch(/Curt is as bad as it can be and adds 0\.000 of 0\.500: .*says “gladly”/);
});

it('weights that follow the labels or an outcome are proposed, tried on history, and compared', async () => {
  const [fit, onOutcome, whatIf, compared] = await Promise.all([
    json('reward', 'fit'),
    run('reward', 'fit', '--outcome', 'resolved'),
    run('reward', 'what-if', 'kind:1,curt:0,judge:0'),
    json('reward', 'compare', 'current', at('next.ts')),
  ]);
  const proposed = Object.fromEntries(
    fit.parts.map((one: { name: string; proposed: number }) => [one.name, one.proposed]),
  );
  expect(proposed).toEqual({ judge: 0, curt: 0, kind: 1 });
  expect(fit).toMatchObject({ samples: 40, verdict: 'better', gained: 20, lost: 0 });
  expect(onOutcome.out).toContain('40 conversations of 40 tasks, fitted to outcome resolved');
  expect(onOutcome.out).toContain('AUC: now 0.000');
  expect(whatIf.out).toContain('20 would become good enough, 0 would cease to be.');
  expect(compared).toMatchObject({ conversations: 40, spearman: -1, gained: 20, lost: 0, labels: { count: 40 } });
  expect(compared.labels.a).toBeLessThan(compared.labels.b);
  expect(compared.swaps[0]).toMatchObject({ because: expect.stringContaining('curt') });
});

it('a judge’s criteria are made better from labels, and kept where they agree more unseen', async () => {
  writeFileSync(at('criteria.md'), 'Is it long?');
  const refined = await run(
    'judge',
    'refine',
    '--labels',
    '20',
    '--criteria',
    at('criteria.md'),
    '--out',
    at('kept.md'),
  );
  expect(refined.out).toContain('20 labels, half to learn from; 1 proposal tried.');
  expect(refined.out).toContain('Kept, in');
  expect(readFileSync(at('kept.md'), 'utf8')).toBe('Is it kind?');
});

it('a reward model is trained from thousands of labels, passes its gate, and is then a part of the reward under its version', async () => {
  await writeCheckpoint(
    at('base'),
    newModel({ hidden: 32, layers: 1, heads: 2, vocabulary: 300, context: 64 }, { seed: 2, texts: [] }),
  );
  const train = (...more: string[]) => run('reward', 'train', 'helpful', '--base', at('base'), ...more);
  const early = await train();
  expect(early).toMatchObject({ code: 1, out: expect.stringMatching(/There are 40 labelled.*is trained from 2000/) });
  expect((await run('reward', 'models')).out).toContain('There is no reward model yet');

  const many = (name: string, labelOf: (k: number) => number) =>
    writeFileSync(
      at(`${name}.jsonl`),
      Array.from({ length: 2000 }, (_, k) => {
        const messages = [
          { role: 'user', content: `can you ${k}` },
          { role: 'assistant', content: isKind(k) ? 'yes' : 'no' },
        ];
        return `${JSON.stringify({ id: `${name}-${k}`, messages, label: labelOf(k) })}\n`;
      }).join(''),
    );
  many('taught', (k) => (isKind(k) ? 1 : 0));
  await run('trajectories', 'import', at('taught.jsonl'));
  const trained = await train('--learning-rate', '0.01');
  expect(trained.out).toContain('It may be used');
  const model = await json('reward', 'models');
  expect(model).toMatchObject({
    refused: null,
    report: { auc: expect.any(Number), calibrationError: expect.any(Number) },
  });
  expect(model.report.auc).toBeGreaterThan(0.95);

  const settings = readFileSync(at('pawl.config.ts'), 'utf8');
  const withModel = (version: string) =>
    writeFileSync(
      at('pawl.config.ts'),
      settings
        .replace('{ defineConfig', '{ defineConfig, rewardModel')
        .replace('weighted({', `weighted({ learned: [5, rewardModel('helpful', '${version}')],`),
    );
  withModel(model.version);
  await run('score', 'run', '--since', '1h');
  const [good, bad] = await Promise.all(['taught-1', 'taught-2'].map((id) => json('score', 'show', id)));
  expect(good.parts.learned.value).toBeGreaterThan(0.5);
  expect(bad.parts.learned.value).toBeLessThan(0.5);
  expect(good.parts.learned.reason).toContain(model.version);
  // A version that is none is a part that failed, not a score without it.
  withModel('f'.repeat(16));
  expect((await json('score', 'run', '--since', '1h')).broken).toBeGreaterThan(0);
  expect((await run('score', 'show', 'taught-1')).out).toContain('No score yet: learned failed.');
});
