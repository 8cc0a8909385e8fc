/**
 * The loops of a serving Pawl: one for each agent, asleep until something is due or announced. Over all processes of one
 * database an agent's loop is run by one at a time (store/lead.ts); the others look again a little later, so that one
 * takes over where another went away. Pausing stops the stage under way at a point from which it can go on.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Agent } from '../agent.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import type { Config } from '../config.ts';
import type { Engine } from '../engine/engine.ts';
import { advance } from '../loop.ts';
import { type Lead, leading } from '../store/lead.ts';
import { listen } from '../store/listen.ts';
import { loopsChannel, readLoop, saveLoop } from '../store/loops.ts';
import type { Store } from '../store/postgres.ts';
import { routesChannel } from '../store/rollouts.ts';
import { mlflowTracker } from '../train/mlflow.ts';
import type { Ask, Wait } from './next-step.ts';
import type { StageName } from './turn.ts';

export type LoopsParts = {
  readonly store: Store;
  readonly artifacts: Artifacts;
  readonly config: { readonly agents: readonly Agent[] } & Pick<Config, 'mlflow'>;
  readonly engine: () => Promise<Engine>;
  readonly trainer: () => Promise<Engine>;
  readonly gatewayUrl: () => Promise<string | null>;
  /** Resolves once all traffic so far is in the database. */
  readonly recorded: () => Promise<void>;
  readonly log: Logger;
  /** This one among all that share the database. */
  readonly process: string;
};

/** What the database could not be asked is asked again after so long. */
const againMs = 60_000;
/** Where another process is at it: it may die, and the turn goes on here. */
const takeOverMs = 2_000;
const closeMs = 10_000;
/** What a timer can be set to. */
const longestMs = 2 ** 31 - 1;

export const lockName = (agent: string): string => `pawl loop ${agent}`;

/** How far the stage under way is. */
export type Progress = { readonly stage: StageName; readonly share: number; readonly text: string };

export type Loops = {
  /** Null where nothing is under way here. */
  progress(agent: string): Progress | null;
  close(): Promise<void>;
};

export function startLoops(parts: LoopsParts): Loops {
  const { store, config } = parts;
  const stop = new AbortController();
  const loops = config.agents.map((agent) => startLoop(parts, agent, stop.signal));
  const listener = listen(store, [loopsChannel, routesChannel], (channel) => {
    for (const loop of loops) loop.heard(channel);
  });
  return {
    progress: (agent) => loops.find(({ name }) => name === agent)?.progress() ?? null,
    async close() {
      stop.abort(new Error('Pawl is stopping.'));
      // A stage that does not come to its safe point in time is left to the next start, as if the process had been killed.
      const ended = Promise.all([listener.close(), ...loops.map(({ ended }) => ended)]);
      await Promise.race([ended, sleep(closeMs, undefined, { ref: false })]);
    },
  };
}

function startLoop(parts: LoopsParts, agent: Agent, stop: AbortSignal) {
  const { store, log } = parts;
  const about = { agent: agent.name };
  const { mlflow } = parts.config;
  const tracker = mlflow && mlflowTracker(mlflow, (sentence) => log.warn(about, sentence));
  let wake = () => {};
  let news = false;
  let said = '';
  let progress: Progress | null = null;
  /** Of the stage under way. */
  let interrupt: AbortController | null = null;

  const pausedMeanwhile = async () => {
    if (interrupt === null) return;
    const loop = await readLoop(store, agent.name).catch(() => null);
    if (loop?.paused) interrupt?.abort(new Error(`The loop was paused by ${loop.paused.by}.`));
  };

  const once = async (lead: Lead): Promise<Wait | Ask> => {
    interrupt = new AbortController();
    try {
      const { next } = await advance({
        ...{
          store,
          agent,
          artifacts: parts.artifacts,
          engine: parts.engine,
          trainer: parts.trainer,
          gatewayUrl: parts.gatewayUrl,
          tracker,
        },
        recorded: parts.recorded,
        signal: AbortSignal.any([stop, lead.lost, interrupt.signal]),
        lead,
        say: {
          begun: ({ number, state }) => log.info(about, `loop: turn ${number} begins: ${state.begun?.reason}`),
          progress: (stage, share, text) => {
            progress = { stage, share, text };
          },
          done: (stage, state) => {
            progress = null;
            log.info({ ...about, spent: state.spent }, `loop: ${stage} is done`);
          },
        },
      });
      return next;
    } catch (error) {
      if (!interrupt.signal.aborted || stop.aborted) throw error;
      return { kind: 'wait', until: Date.now(), reason: 'Paused.' };
    } finally {
      interrupt = null;
      progress = null;
    }
  };

  const tell = (next: Wait | Ask) => {
    if (next.reason === said) return;
    said = next.reason;
    if (next.kind === 'ask') log.warn({ ...about, command: next.command }, `loop: ${next.reason}`);
    else log.info(about, `loop: ${next.reason}`);
  };

  const run = async () => {
    let first = true;
    while (!stop.aborted) {
      news = false;
      let until: number | null = Date.now() + againMs;
      try {
        if (first) await saveLoop(store, agent.name, Date.now());
        first = false;
        const held = await leading(store, lockName(agent.name), parts.process, once);
        if (held === null) until = Date.now() + takeOverMs;
        else {
          tell(held.done);
          until = held.done.kind === 'wait' ? held.done.until : null;
        }
      } catch (error) {
        if (stop.aborted) return;
        log.warn({ ...about, err: error }, 'loop: cannot go on now, and tries again');
      }
      await slept(until);
    }
  };

  const slept = (until: number | null) =>
    new Promise<void>((resolve) => {
      const ms = until === null ? longestMs : Math.min(Math.max(0, until - Date.now()), longestMs);
      const timer = news || stop.aborted ? undefined : setTimeout(resolve, ms);
      timer?.unref();
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
      if (timer === undefined) resolve();
    });
  stop.addEventListener('abort', () => wake(), { once: true });

  return {
    name: agent.name,
    progress: () => progress,
    ended: run(),
    heard(channel: string) {
      news = true;
      if (channel === loopsChannel) void pausedMeanwhile();
      wake();
    },
  };
}
