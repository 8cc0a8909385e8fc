/**
 * Everything in one place: the engine as a child process, the server, and turns of the loop between them. What `pawl start`
 * and `pawl loop run` share.
 */
import { pathToFileURL } from 'node:url';
import type { Logger } from 'pino';
import { loadSecret, personId } from './collect/person.ts';
import type { Recorder } from './collect/recorder.ts';
import type { Config } from './config.ts';
import { createRelease, serveRelease } from './deploy/reconcile.ts';
import { type EngineProcess, startEngine } from './engine/process.ts';
import { ConfigError, StoreError } from './errors.ts';
import { ensureLoaded, type LoopSettings, type World } from './loop.ts';
import type { LoopTurn } from './loop-turn.ts';
import { type Serving, serve } from './serve.ts';
import { giveConsent, withdrawConsent } from './store/consents.ts';
import { createKey, listKeys, revokeKey } from './store/keys.ts';
import { listLoopTurns, saveLoopTurn } from './store/loop-turns.ts';
import type { Store } from './store/postgres.ts';
import { readRelease, servingRelease } from './store/releases.ts';
import { listRollouts } from './store/rollouts.ts';

/** Name of the upstream that is our own engine. */
export const engineUpstream = 'engine';

/**
 * A week in minutes, for a demo: few conversations, short holds, small samples. A real deployment holds a step for a day and
 * asks for hundreds of calls (deploy/rollout.ts has those defaults).
 */
export const demoSettings = ({ conversations, steps }: Config['loop']): LoopSettings => ({
  conversations,
  minScore: 0.7,
  grpoSteps: steps,
  rollout: { holdSeconds: 2, patienceSeconds: 180, minTurns: 20, minUnits: 8, latencyRatio: 3 },
  wave: 100,
});

export type Started = {
  readonly serving: Serving;
  readonly engine: EngineProcess;
  readonly world: World;
  close(): Promise<void>;
};

export async function startAll(
  config: Config & { world: string },
  log: Logger,
  linesLost?: () => number,
): Promise<Started> {
  const engine = await startEngine({ log: (line) => log.warn(line) });
  try {
    const upstreams = { ...config.upstreams, [engineUpstream]: { ...upstreamDefaults, baseUrl: `${engine.url}/v1` } };
    const serving = await serve({ ...config, upstreams }, log, linesLost);
    try {
      const world = await openWorld(config, serving);
      await openDoors(serving.store, config.agent, engine, world);
      const close = async () => {
        await serving.close();
        await engine.close();
      };
      return { serving, engine, world, close };
    } catch (error) {
      await serving.close();
      throw error;
    }
  } catch (error) {
    await engine.close();
    throw error;
  }
}

const upstreamDefaults = { models: [], defaults: {}, silenceSeconds: 120 };

async function openWorld(config: Config & { world: string }, { store, url }: Serving): Promise<World> {
  const at = config.world.lastIndexOf('#');
  const [file, name] = [config.world.slice(0, at), config.world.slice(at + 1)];
  const module: Record<string, unknown> = await import(pathToFileURL(file).href);
  const make = module[name];
  if (typeof make !== 'function')
    throw new ConfigError(`world: ${file} exports no function ${name}; it exports ${Object.keys(module).join(', ')}.`);
  const secret = await loadSecret(config.home);
  return make({
    url,
    key: await customersKey(store, config.agent),
    agent: config.agent,
    consent: async (user: string, consent: 'given' | 'withdrawn') => {
      const record = consent === 'given' ? giveConsent : withdrawConsent;
      await record(store, config.agent, personId(user, secret), new Date());
    },
  }) as World;
}

/** Tokens are not kept, so each start makes a key of its own for the simulated customers and ends the one before. */
async function customersKey(store: Store, agent: string): Promise<string> {
  const name = 'simulated customers';
  for (const key of await listKeys(store, { agent }))
    if (key.name === name && !key.revokedAt) await revokeKey(store, key.id);
  return (await createKey(store, { agent, name })).token;
}

/** The base model serves first; whatever is in play is loaded. */
async function openDoors(store: Store, agent: string, { engine }: EngineProcess, world: World): Promise<void> {
  const now = Date.now();
  if ((await servingRelease(store, agent)) === null) {
    const base = { agent, name: `${agent}-0`, upstream: engineUpstream, model: `${agent}-0`, checkpoint: world.base };
    await serveRelease(store, await createRelease(store, base, 'pawl', now), 'pawl', now);
  }
  const open = await listRollouts(store, { agent, open: true });
  const inPlay = [
    await servingRelease(store, agent),
    ...(await Promise.all(open.map(({ candidate }) => readRelease(store, { id: candidate })))),
  ];
  for (const release of inPlay)
    if (release?.upstream === engineUpstream && release.checkpoint !== null)
      await ensureLoaded(engine, release.model, release.checkpoint);
}

/** Waits until the database has all that was recorded; a database that takes nothing for minutes ends the wait. */
export async function recordedBy(recorder: Recorder): Promise<void> {
  if (!(await recorder.drain(300_000)))
    throw new StoreError('The database has not taken the recorded traffic within 5 minutes; see /healthz for why.', {
      retryable: true,
    });
}

/** The turn that was interrupted, else a new one. */
export async function nextTurn(store: Store, agent: string, seed: number | undefined): Promise<LoopTurn> {
  const [last] = await listLoopTurns(store, agent, 1);
  if (last && last.endedAt === null) return last;
  const number = (last?.number ?? 0) + 1;
  const turn: LoopTurn = {
    agent,
    number,
    seed: seed ?? number,
    done: [],
    state: {},
    startedAt: Date.now(),
    endedAt: null,
  };
  await saveLoopTurn(store, turn);
  return turn;
}
