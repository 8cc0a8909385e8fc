/** Drift of tasks on Pawl's own engine: how far a candidate is from what serves, and from what its line began with. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { agentSchema } from '../agent.ts';
import { openArtifacts } from '../artifacts/open.ts';
import type { Engine } from '../engine/engine.ts';
import { writeModel } from '../engine/fixtures/write-model.ts';
import { openEngine } from '../engine/open.ts';
import { type Environment, makeTask } from '../simulate/environment.ts';
import { withStore } from '../store/test-store.ts';
import { evaluateReleases } from './run.ts';
import { makeSuite } from './suite.ts';

type Data = { word: string };
const world: Environment<Data, null> = {
  name: 'words',
  system: '',
  types: { any: (rng) => ({ word: rng.pick(['ab', 'cd', 'ef']) }) },
  data: z.strictObject({ word: z.string() }),
  database: () => null,
  tools: [],
  user: ({ data }) => ({ open: () => data.word, answer: () => null }),
  gradeTurn: () => ({ reward: 0, parts: {}, reasons: [] }),
  gradeEnd: () => ({ success: true, reward: 1, parts: {}, reasons: [] }),
  limits: { turns: 1, callsPerTurn: 1, mistakes: 1, tokensPerTurn: 4, tokens: 64, seconds: 60, characters: 100 },
};
const suite = makeSuite(
  'golden',
  Array.from({ length: 12 }, (_, i) => makeTask(world, 'any', 'golden', i)),
);

const folder = mkdtempSync(join(tmpdir(), 'pawl-base-drift-'));
const folderOf = (name: string) => join(folder, name);
const store = await withStore();
let engine: Engine;

beforeAll(async () => {
  await writeModel(folderOf('v1'), 'd16-l2-h2-kv1-v280-f24-c128');
  // v2 and v3 are other weights of the same kind; `merged` cuts text into other tokens.
  await writeModel(folderOf('v2'), 'd16-l2-h2-kv1-v280-f32-c128');
  await writeModel(folderOf('v3'), 'd16-l2-h2-kv1-v280-f40-c128');
  await writeModel(folderOf('merged'), 'd16-l2-h2-kv1-v300-f24-c128', ['the order is late, the order is lost']);
  engine = await openEngine({ threads: 1 });
});
afterAll(async () => {
  await engine?.close();
  rmSync(folder, { recursive: true, force: true });
});

const evaluate = (baseline: string, candidate: string, base?: string) => {
  const contestant = (name: string) => ({
    ...{ name, upstream: 'engine', checkpoint: folderOf(name), internal: false },
  });
  return evaluateReleases({
    agent: agentSchema.parse({ name: `agent-${Math.random().toString(36).slice(2)}`, environment: world }),
    ...{ store, artifacts: openArtifacts({ home: folder }), suite, upstreams: {} },
    ...{ baseline: contestant(baseline), candidate: contestant(candidate) },
    base: base === undefined ? undefined : contestant(base),
    play: {
      withEngine: (use) => use(engine),
      withDoor: () => Promise.reject(new Error('Nothing here goes through the gateway.')),
    },
  });
};

it('is counted from both, and no model is left behind', async () => {
  const direct = await evaluate('v1', 'v3');
  expect(direct.base).toBeUndefined();
  const report = await evaluate('v2', 'v3', 'v1');
  expect(report.drift).toBeGreaterThan(0);
  // The same candidate writes the same, so it is as far from v1 as when v1 was the baseline.
  expect(report.base).toEqual({ release: 'v1', drift: expect.closeTo(direct.drift!, 5) });
  expect(report.base!.drift).not.toBeCloseTo(report.drift!, 5);
  expect(await engine.models()).toEqual([]);
});

it('is not known between models that cut text into other tokens, which ends no evaluation', async () => {
  const report = await evaluate('merged', 'v3', 'v1');
  expect(report.drift).toBeNull();
  expect(report.base!.drift).toBeGreaterThan(0);
  const gate = report.gates!.find(({ name }) => name === 'drift')!;
  expect(gate).toMatchObject({ verdict: 'unmeasured', reason: expect.stringContaining('have other tokens') });
  expect((await evaluate('v1', 'merged')).drift).toBeNull();
});
