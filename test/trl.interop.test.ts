/**
 * What `pawl datasets export` writes, read by Hugging Face's `datasets` and trained on by TRL itself, with the support desk's model. Needs
 * Python 3.12; torch is 5 GB, once (python.ts says where). The Python side is python/trl-exports.py.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openArtifacts } from '../src/artifacts/open.ts';
import type { JournalEntry } from '../src/collect/signal.ts';
import { type ExportFormat, exportFormats } from '../src/curate/export.ts';
import { exportLines, exportToFile } from '../src/curate/export-run.ts';
import { curateWindow } from '../src/curate/run.ts';
import { readCheckpoint, writeCheckpoint } from '../src/engine/checkpoint.ts';
import { converse, orderTool, type Said } from '../src/score/fixtures.ts';
import { outcome } from '../src/score/outcome.ts';
import { scoreWindow } from '../src/score/run.ts';
import { weighted } from '../src/score/weighted.ts';
import { giveConsent } from '../src/store/consents.ts';
import { entry, noon } from '../src/store/fixtures.ts';
import { writeEntries } from '../src/store/record.ts';
import { withStore } from '../src/store/test-store.ts';
import { leftOut, pythonMissing, torchVenv, withTorch } from './python.ts';

// The first run installs several GB.
vi.setConfig({ testTimeout: 3_600_000, hookTimeout: 3_600_000 });

/** Its id is a text where the other tool's is a number, and its lines are of two types: columns that have no one type. */
const refundTool = {
  type: 'function',
  function: {
    name: 'refund',
    description: 'Pays back.',
    parameters: {
      type: 'object',
      properties: { id: { type: 'string' }, lines: { type: 'array', items: {} }, reason: { enum: ['late', 7, null] } },
    },
  },
};
const users = ['ann', 'bob', 'cleo', 'dan', 'eve', 'finn'];

/** One asks with tools and thinks before it speaks, one without any, one with another tool, in turn. */
const conversations = users.flatMap((user, i): JournalEntry[] => {
  const kinds: readonly (readonly Said[])[] = [
    [{ say: [['get_order', `{"id":${i}}`]], results: ['{"status":"sent"}'] }, { say: 'It was sent.' }],
    [{ say: `Order ${i} is on its way.` }],
    [
      { say: [['refund', `{"id":"A-${i}","lines":[1,"two"],"reason":null}`]], results: ['ok'] },
      { say: 'Paid back. 돌려드렸습니다 🙂' },
    ],
  ];
  const turns = converse(`Where is order ${i}?`, kinds[i % 3]!, { trajectory: `c${i}`, user });
  const tools = [[orderTool], undefined, [orderTool, refundTool]][i % 3];
  return turns.map((turn, k) => {
    const { tools: _, ...request } = turn.request as Record<string, unknown>;
    const [choice] = turn.choices;
    const message = {
      ...(choice!.message as object),
      ...(k === 0 && i < 3 && { reasoning_content: 'I should look.' }),
    };
    const asked = { ...request, ...(tools && { tools }) };
    return { kind: 'turn', turn: { ...turn, request: asked, choices: [{ ...choice!, message }] } };
  });
});
const about = (id: string, fields: object) =>
  entry.signal({
    identity: `${id} ${JSON.stringify(fields)}`,
    user: null,
    target: { kind: 'trajectory', id },
    ...fields,
  });
const evidence = users.flatMap((_, i) => [
  about(`c${i}`, { kind: 'outcome', name: 'resolved', value: 1 }),
  about(`c${i}`, { value: null, correction: `Order ${i} comes tomorrow.` }),
]);

type Step = { readonly steps: number; readonly loss: number; readonly moved: number };
type Told = {
  readonly loaded: Readonly<Record<string, readonly Record<string, unknown>[]>>;
  readonly sft: Step & { readonly learned: readonly string[] };
  readonly dpo: Step;
};

describe.skipIf(pythonMissing !== null)(`exports in TRL${leftOut}`, () => {
  const root = mkdtempSync(join(tmpdir(), 'pawl-trl-'));
  const exports = join(root, 'exports');
  const lines = (format: ExportFormat): Record<string, unknown>[] =>
    readFileSync(join(exports, `${format}.jsonl`), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
  let told: Told;
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  beforeAll(async () => {
    await withTorch();
    await torchVenv.once('trl-1.16.0', (pip) => pip('trl==1.16.0'));
    const { config, weights, files } = await readCheckpoint('examples/support-desk/model');
    await writeCheckpoint(join(root, 'model'), { config, weights, files });
    const store = await withStore();
    for (const user of users) await giveConsent(store, 'desk', user, new Date(noon - 1000));
    await writeEntries(store, [...conversations, ...evidence]);
    const window = {
      ...{ agent: 'desk', spec: weighted({ resolved: [1, outcome('resolved')] }) },
      ...{ since: new Date(noon - 3_600_000), until: new Date(noon + 3_600_000), now: new Date(noon + 7_200_000) },
    };
    await scoreWindow(store, window);
    const artifacts = openArtifacts({ home: join(root, 'home') });
    const dataset = await curateWindow(store, artifacts, { ...window, settings: { maxUserShare: 1, kAnonymity: 1 } });
    expect(dataset).toMatchObject({ rows: 6, pairs: { rows: 6 } });
    mkdirSync(exports);
    for (const format of exportFormats)
      for (const ending of ['jsonl', 'parquet']) {
        const out = join(exports, `${format}.${ending}`);
        await exportToFile(exportLines(store, artifacts, dataset, { format, by: 'test' }), out, {
          format,
          force: false,
        });
      }
    const env = { ...torchVenv.env, HF_HOME: join(root, 'hf') };
    const args = ['test/python/trl-exports.py', exports, join(root, 'model'), 'test/python/desk-training.jinja'];
    const { stdout } = await promisify(execFile)(torchVenv.bin('python'), args, { env, maxBuffer: 2 ** 26 });
    told = JSON.parse(stdout.trim().split('\n').at(-1)!);
  });

  test.each(exportFormats)('%s is to `datasets` what was written, as JSONL and as Parquet', (format) => {
    // A column that a line does not have is null there.
    const rows = lines(format).map((line) => ({ tools: null, ...line }));
    expect(told.loaded[`${format}.jsonl`]).toEqual(rows);
    expect(told.loaded[`${format}.parquet`]).toEqual(rows);
  });

  test('a step of SFT learns what the agent said and called, and nothing that it was told', () => {
    expect(told.sft).toMatchObject({ steps: 1, loss: expect.any(Number) });
    expect(told.sft.loss).toBeGreaterThan(0);
    expect(told.sft.moved).toBeGreaterThan(0);
    expect(told.sft.learned.toSorted()).toEqual(
      users
        .map((_, i) => {
          const kinds = [
            `<tool_call>{"name":"get_order","arguments":{"id":${i}}}</tool_call><|im_end|>It was sent.<|im_end|>`,
            `Order ${i} is on its way.<|im_end|>`,
            `<tool_call>{"name":"refund","arguments":{"id":"A-${i}","lines":[1,"two"],"reason":null}}</tool_call><|im_end|>Paid back. 돌려드렸습니다 🙂<|im_end|>`,
          ];
          return kinds[i % 3]!;
        })
        .toSorted(),
    );
  });

  test('a step of DPO begins where neither answer is preferred', () => {
    expect(told.dpo.steps).toBe(1);
    expect(told.dpo.loss).toBeCloseTo(Math.LN2, 4); // the policy is its own reference
    expect(told.dpo.moved).toBeGreaterThan(0);
  });
});
