/** One turn of the loop on the tiny world, with everything a test needs to stop it anywhere and to tell how it ended. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRelease, serveRelease } from '../../src/deploy/reconcile.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { writeModel } from '../../src/engine/fixtures/write-model.ts';
import { ensureLoaded, type LoopParts, runTurn } from '../../src/loop.ts';
import { type LoopTurn, summaryOf } from '../../src/loop-turn.ts';
import { nextTurn } from '../../src/start.ts';
import { listDatasets } from '../../src/store/datasets.ts';
import type { Store } from '../../src/store/postgres.ts';
import { servingRelease } from '../../src/store/releases.ts';
import { postgresRunStore } from '../../src/store/runs.ts';
import { agent, withCustomers } from './world.ts';

export const run = `${agent}-turn-1`;
export const settings: LoopParts['settings'] = {
  conversations: 40,
  minScore: 0.7,
  train: { steps: 6, tasksPerStep: 4, attempts: 4, learningRate: 0.08 },
  rollout: { steps: [0.5, 1], holdSeconds: 0, minTurns: 4, minUnits: 2, outcome: null },
  wave: 16,
};

/** A base model that serves; once per home. */
export async function prepareHome(store: Store, home: string): Promise<void> {
  const base = join(home, 'base');
  if (!existsSync(base)) await writeModel(base, 'd16-l2-h2-kv1-v280-f24-c128');
  const name = `${agent}-0`;
  const given = { agent, name, upstream: 'engine', model: name, checkpoint: base };
  await serveRelease(store, await createRelease(store, given, 'pawl', 1), 'pawl', 1);
}

/** Starts the turn, or goes on with it, until it ends or waits. */
export async function turnOnce(
  store: Store,
  home: string,
  engine: Engine,
  more: Partial<Pick<LoopParts, 'signal' | 'say' | 'resume' | 'settings'>> = {},
): Promise<LoopTurn> {
  const base = join(home, 'base');
  await ensureLoaded(engine, `${agent}-0`, base);
  return runTurn(
    {
      store,
      home,
      engine,
      upstream: 'engine',
      world: withCustomers(store, base),
      settings,
      recorded: async () => {},
      say: { progress: () => {}, done: () => {} },
      ...more,
    },
    await nextTurn(store, agent, 7),
  );
}

/** Everything that must not depend on how often the turn was stopped. */
export async function outcomeOf(store: Store, home: string, turn: LoopTurn) {
  const { seconds: _, ...summary } = summaryOf(turn)!;
  const runs = postgresRunStore(store);
  const record = (await runs.get(run))!;
  const weights = readFileSync(join(turn.state.train!.checkpoint, 'model.safetensors'));
  return {
    summary,
    weights: createHash('sha256').update(weights).digest('hex'),
    run: [record.status, record.step, record.steps, record.spent.tokens],
    curve: (await runs.metrics(run)).map(({ step, stage, values: { seconds, tokens_per_second, ...values } }) => ({
      ...{ step, stage, values },
    })),
    lines: readFileSync(join(home, 'runs', run, 'metrics.jsonl'), 'utf8')
      .trim()
      .split('\n').length,
    datasets: (await listDatasets(store, { agent })).map(({ version, rows }) => [version, rows]),
    serving: (await servingRelease(store, agent))!.name,
    scored: turn.state.score,
  };
}
