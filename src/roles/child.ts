/**
 * One of several gateway processes that share a port (`pawl gateway --processes`), as it sees the others: its parent speaks for all of
 * them at /healthz and /metrics, and has the one engine. A process whose parent is gone ends (Node's cluster sees to it).
 */
import cluster from 'node:cluster';
import type { KeptEngine, Placed } from '../engine/keep.ts';
import type { FamilyHealth, FromChild, FromParent, Member } from './family-words.ts';

export type Child = {
  /** From 1. */
  readonly number: number;
  /** Whether it is this one that sees after what earlier processes left. */
  readonly isFirst: boolean;
  readonly of: number;
  up(url: string): void;
  failed(message: string): void;
  /** Resolves when the parent says that it is to end. */
  readonly stopped: Promise<void>;
  /** Tells the parent from now on how this process is. */
  tells(how: () => Promise<Member>): void;
  health(): Promise<FamilyHealth>;
  /** Of all processes, as Prometheus text. */
  figures(): Promise<string>;
  /** The parent's engine. `onStart` is told where it answers. */
  engine(onStart: (url: string) => void): KeptEngine;
};

/** `<number>/<of>`: which of how many processes this is. */
export const childVariable = 'PAWL_GATEWAY_PROCESS';

/** Null in a process that is alone. */
export function thisChild(): Child | null {
  const given = /^(\d{1,4})\/(\d{1,4})$/.exec(process.env[childVariable] ?? '');
  if (!cluster.isWorker || given === null) return null;
  const [number, of] = [Number(given[1]), Number(given[2])];
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let tickets = 0;
  let how: (() => Promise<Member>) | null = null;
  let engineUrl: string | null = null;
  let onEngine: (url: string) => void = () => {};
  let stop = () => {};
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });

  const send = (message: FromChild) => {
    if (process.connected) process.send?.(message);
  };
  const ask = <T>(question: (ticket: number) => FromChild): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      const ticket = ++tickets;
      waiting.set(ticket, { resolve: resolve as (value: unknown) => void, reject });
      send(question(ticket));
    });

  process.on('message', (message: FromParent) => {
    switch (message.kind) {
      case 'stop':
        return stop();
      case 'engine':
        engineUrl = message.url;
        return onEngine(message.url);
      case 'how-are-you':
        return void how?.().then((member) => send({ kind: 'member', ticket: message.ticket, member }));
      case 'answer': {
        const { ticket, value, problem } = message;
        const asked = waiting.get(ticket);
        waiting.delete(ticket);
        return problem === undefined ? asked?.resolve(value) : asked?.reject(new Error(problem));
      }
    }
  });

  return {
    number,
    of,
    isFirst: number === 1,
    up: (url) => send({ kind: 'up', url }),
    failed: (message) => send({ kind: 'failed', message }),
    stopped,
    tells(by) {
      how = by;
    },
    health: () => ask((ticket) => ({ kind: 'ask', ticket, what: 'health' })),
    figures: () => ask((ticket) => ({ kind: 'ask', ticket, what: 'figures' })),
    engine(onStart) {
      onEngine = onStart;
      if (engineUrl !== null) onStart(engineUrl);
      let inPlay = new Set<string>();
      /** Models in play that are loaded; any other may be unloaded without our hearing of it. */
      const loaded = new Set<string>();
      const notHere = () => Promise.reject(new Error('The engine is the parent’s; a gateway process does not train.'));
      return {
        process: notHere,
        trainer: notHere,
        isReady: (model) => loaded.has(model),
        async ready(placed: Placed) {
          if (loaded.has(placed.model)) return;
          await ask((ticket) => ({ kind: 'load', ticket, placed }));
          if (inPlay.has(placed.model)) loaded.add(placed.model);
        },
        inPlay(placed) {
          inPlay = new Set(placed.map(({ model }) => model));
          for (const model of loaded) if (!inPlay.has(model)) loaded.delete(model);
          send({ kind: 'in-play', placed });
        },
        pid: undefined,
        close: async () => {},
      };
    },
  };
}
