/**
 * Everything in one place: the engine as a child process, the server, and turns of the loop between them. What `pawl start`
 * and `pawl loop run` share.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Agent } from './agent.ts';
import { hashedId } from './collect/person.ts';
import { agentOf, type Config } from './config.ts';
import { engineUpstream } from './engine/open.ts';
import type { EngineProcess } from './engine/process.ts';
import { type LoopTurn, summaryOf } from './loop/turn.ts';
import { type ServeOptions, type Serving, serve } from './serve.ts';
import type { Task } from './simulate/environment.ts';
import { giveConsent, withdrawConsent } from './store/consents.ts';
import { createKey, listKeys, revokeKey } from './store/keys.ts';
import { listLoopTurns } from './store/loop-turns.ts';
import type { Store } from './store/postgres.ts';
import { readRelease, servingRelease } from './store/releases.ts';
import { listRollouts } from './store/rollouts.ts';
import { installationSecret } from './store/secret.ts';

/** Conversations of a turn's window, and at a time while a rollout is watched. */
export const conversations = 240;
export const wave = 100;

/** How customers reach the agent, and how whoever serves them notes who agreed to training. */
export type Door = {
  /** Address of the gateway, without /v1. */
  readonly url: string;
  readonly key: string;
  readonly agent: string;
  readonly consent: (user: string, consent: 'given' | 'withdrawn') => Promise<void>;
};

export type Visits = {
  /** Trajectory ids begin with this. */
  readonly prefix: string;
  readonly seed: number;
  readonly count: number;
  readonly signal?: AbortSignal;
  readonly onVisit?: (done: number) => void;
};

/** The demo's agent, what it is judged by, and simulated customers who talk to it through the gateway. */
export type World = Agent & {
  readonly golden: () => readonly Task[];
  readonly customers: (visits: Visits) => Promise<{ conversations: number; resolved: number }>;
};

export type Started = {
  readonly serving: Serving;
  readonly engine: EngineProcess;
  readonly world: World;
  close(): Promise<void>;
};

export async function startAll(config: Config, log: Logger, options: ServeOptions): Promise<Started> {
  // The customers come when this says so, and so do the turns.
  const serving = await serve(config, log, { ...options, loops: false });
  try {
    for (const problem of serving.problems()) options.say?.(problem);
    await serving.database;
    const engine = await serving.engine.process();
    const world = await openWorld(config, serving);
    await openDoors(serving, agentOf(config).name);
    return { serving, engine, world, close: () => serving.close() };
  } catch (error) {
    await serving.close();
    throw error;
  }
}

/** Not in the package: the demo is a clone's. */
const demo = '../examples/support-desk/';

async function openWorld(config: Config, { store, url }: Serving): Promise<World> {
  const agent = agentOf(config);
  const { sendCustomers } = await import(`${demo}customers.ts`);
  const { readGolden } = await import(`${demo}golden.ts`);
  const secret = await installationSecret(store, config.home, { given: config.secret });
  const door: Door = {
    url,
    key: await customersKey(store, agentOf(config).name),
    agent: agentOf(config).name,
    consent: async (user, consent) => {
      const record = consent === 'given' ? giveConsent : withdrawConsent;
      await record(store, agentOf(config).name, hashedId(user, secret), new Date());
    },
  };
  return { ...agent, golden: readGolden, customers: (visits) => sendCustomers(door, visits) };
}

/** Tokens are not kept, so each start makes a key of its own for the simulated customers and ends the one before. */
async function customersKey(store: Store, agent: string): Promise<string> {
  const name = 'simulated customers';
  for (const key of await listKeys(store, { agent }))
    if (key.name === name && !key.revokedAt) await revokeKey(store, key.id);
  return (await createKey(store, { agent, name, scopes: ['call', 'feedback', 'outcomes'] })).token;
}

/** Whatever is in play is loaded. */
async function openDoors({ store, engine }: Serving, agent: string): Promise<void> {
  const open = await listRollouts(store, { agent, open: true });
  const inPlay = [
    await servingRelease(store, agent),
    ...(await Promise.all(open.map(({ candidate }) => readRelease(store, { id: candidate })))),
  ];
  for (const release of inPlay)
    if (release?.upstream === engineUpstream && release.checkpoint !== null)
      await engine.ready({ model: release.model, checkpoint: release.checkpoint });
}

/**
 * `summary.json` of a turn that has come to a report, whole or as it was before. It follows from the turn's row, so a start
 * that was killed before it wrote one leaves it to the next.
 */
export function writeSummary(home: string, turn: LoopTurn): void {
  const summary = summaryOf(turn);
  if (summary === null) return;
  const path = join(home, 'summary.json');
  writeFileSync(`${path}.new`, `${JSON.stringify(summary, null, 2)}\n`, { flush: true });
  renameSync(`${path}.new`, path);
}

export const lastTurn = async (store: Store, agent: string): Promise<LoopTurn | undefined> =>
  (await listLoopTurns(store, agent, 1))[0];
