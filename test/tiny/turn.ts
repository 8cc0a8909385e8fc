/** One turn of the loop on the tiny world, with everything a test needs to stop it anywhere and to tell how it ended. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Agent } from '../../src/agent.ts';
import { openArtifacts } from '../../src/artifacts/open.ts';
import { createRelease, reconcile, serveRelease } from '../../src/deploy/reconcile.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { writeModel } from '../../src/engine/fixtures/write-model.ts';
import { ensureLoaded, type LoopParts } from '../../src/loop/parts.ts';
import { resumeLoop, wantTurn } from '../../src/loop/people.ts';
import { lockName } from '../../src/loop/runner.ts';
import { type LoopTurn, summaryOf } from '../../src/loop/turn.ts';
import { type Advanced, advance } from '../../src/loop.ts';
import { listDatasets } from '../../src/store/datasets.ts';
import { leading } from '../../src/store/lead.ts';
import { listLoopTurns } from '../../src/store/loop-turns.ts';
import type { Store } from '../../src/store/postgres.ts';
import { servingRelease } from '../../src/store/releases.ts';
import { postgresRunStore } from '../../src/store/runs.ts';
import { agent, definition, golden, sendCustomers } from './world.ts';

export const run = `${agent}-turn-1`;
const conversations = 40;
const wave = 16;

/** A base model that serves, and golden cases; once per home. */
export async function prepareHome(store: Store, home: string): Promise<void> {
  const base = join(home, 'base');
  if (!existsSync(base)) await writeModel(base, 'd16-l2-h2-kv1-v280-f24-c128');
  writeFileSync(
    join(home, 'golden.jsonl'),
    golden()
      .map((task) => `${JSON.stringify(task)}\n`)
      .join(''),
  );
  const name = `${agent}-0`;
  const given = { agent, name, upstream: 'engine', model: name, checkpoint: base };
  await serveRelease(store, await createRelease(store, given, 'pawl', 1), 'pawl', 1);
}

/** Its golden cases lie in the home. */
export const agentIn = (home: string, more: Partial<Agent> = {}): Agent => ({
  ...definition,
  ...more,
  evaluate: { ...definition.evaluate, golden: join(home, 'golden.jsonl') },
});

export type More = Partial<Pick<LoopParts, 'signal' | 'say'>> & {
  readonly resume?: boolean;
  readonly agent?: Partial<Agent>;
};

export const lastTurn = async (store: Store): Promise<LoopTurn | undefined> =>
  (await listLoopTurns(store, agent, 1))[0];

/** Customers before the turn that learns from them; their window. */
async function visited(store: Store, say: LoopParts['say'], signal: AbortSignal | undefined) {
  const since = Date.now();
  const onVisit = (done: number) => say.progress('collect', done / conversations, `${done}`);
  const prefix = `turn-1-${since.toString(36)}`;
  await sendCustomers(store, { prefix, seed: 7, count: conversations, onVisit, ...(signal ? { signal } : {}) });
  return { since, until: Date.now() + 1 };
}

/** Starts the turn, or goes on with it, until it ends or waits; customers come while users try the candidate. */
export async function turnOnce(store: Store, home: string, engine: Engine, more: More = {}): Promise<Advanced> {
  const artifacts = openArtifacts({ home });
  await ensureLoaded(engine, `${agent}-0`, join(home, 'base'), artifacts);
  const { resume, agent: changed, ...given } = more;
  const said = { agent, by: 'kim', now: Date.now() };
  if (resume) await resumeLoop(store, said);
  const say = given.say ?? { progress: () => {}, done: () => {} };
  const last = await lastTurn(store);
  const isUnderWay = last !== undefined && last.endedAt === null;
  await wantTurn(store, {
    ...said,
    seed: 7,
    ...(isUnderWay ? {} : { window: await visited(store, say, given.signal) }),
  });
  const parts: Omit<LoopParts, 'lead'> = {
    ...{ store, artifacts, agent: agentIn(home, changed), recorded: async () => {}, ...given, say },
    gatewayUrl: async () => null,
    engine: async () => engine,
    trainer: async () => engine,
  };
  const held = await leading(store, lockName(agent), 'test', (lead) => turned({ ...parts, lead }));
  return held!.done;
}

async function turned(parts: LoopParts): Promise<Advanced> {
  const { store, say, signal } = parts;
  for (let n = 0; ; n++) {
    const advanced = await advance(parts, { once: true });
    const { turn, next } = advanced;
    if (next.kind === 'ask' || !turn?.done.includes('evaluate') || turn.endedAt !== null) return advanced;
    say.progress('deploy', 0, 'with the users');
    const visits = { prefix: `turn-1-wave-${n}-${Date.now().toString(36)}`, seed: 7000 + n + 1, count: wave };
    await sendCustomers(store, { ...visits, ...(signal ? { signal } : {}) });
    await reconcile(store, { now: Date.now(), agent });
  }
}

/** Everything that must not depend on how often the turn was stopped. */
export async function outcomeOf(store: Store, home: string, turn: LoopTurn) {
  const { seconds: _, ...summary } = summaryOf(turn)!;
  const runs = postgresRunStore(store);
  const record = (await runs.get(run))!;
  const model = await openArtifacts({ home }).folder(turn.state.train!.checkpoint);
  const weights = readFileSync(join(model, 'model.safetensors'));
  return {
    summary,
    weights: createHash('sha256').update(weights).digest('hex'),
    run: [record.status, record.step, record.steps, record.spent.tokens],
    // All but what the clock says.
    curve: (await runs.metrics(run)).map(({ step, stage, values }) => ({
      ...{ step, stage },
      values: Object.fromEntries(Object.entries(values).filter(([name]) => !/seconds?$/.test(name))),
    })),
    lines: readFileSync(join(home, 'runs', run, 'metrics.jsonl'), 'utf8')
      .trim()
      .split('\n').length,
    datasets: (await listDatasets(store, { agent })).map(({ version, rows }) => [version, rows]),
    serving: (await servingRelease(store, agent))!.name,
    scored: turn.state.score,
  };
}
