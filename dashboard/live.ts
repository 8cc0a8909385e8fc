/**
 * One line to Pawl on which it says that something changed; whoever shows that asks again. The browser mends a broken line by
 * itself and names the last event it heard; where Pawl refused it (a restart, too many listeners) we try again, later and later,
 * and then take it that everything changed.
 */
import { useSyncExternalStore } from 'react';

export type Topic =
  | 'trajectories'
  | 'scores'
  | 'datasets'
  | 'runs'
  | 'reports'
  | 'rollouts'
  | 'releases'
  | 'reviews'
  | 'loop'
  | 'audit'
  | 'erasures';
export type Change = { readonly topic: Topic | 'all'; readonly id: string | null };
type Listener = (change: Change) => void;

const listeners = new Set<Listener>();
const watchers = new Set<() => void>();
let source: EventSource | null = null;
let isUp = false;
let failures = 0;
let retry = 0;
let hasBroken = false;

const longestMs = 30_000;
const firstMs = 1_000;

function setUp(up: boolean): void {
  if (up === isUp) return;
  isUp = up;
  for (const tell of watchers) tell();
}

const tellAll = (change: Change): void => {
  for (const tell of listeners) tell(change);
};

function heard(data: string): void {
  const { topic, id } = JSON.parse(data) as { topic: Topic | 'all' | 'hello'; id?: string | null };
  failures = 0;
  setUp(true);
  if (topic !== 'hello') tellAll({ topic, id: id ?? null });
  else if (hasBroken) tellAll({ topic: 'all', id: null });
  hasBroken = false;
}

export function startLive(): void {
  if (source !== null) return;
  const line = new EventSource('/api/live');
  source = line;
  line.onmessage = (event: MessageEvent<string>) => heard(event.data);
  line.onerror = () => {
    setUp(false);
    if (line.readyState !== EventSource.CLOSED) return; // it is mending itself
    source = null;
    hasBroken = true;
    retry = window.setTimeout(startLive, Math.min(longestMs, firstMs * 2 ** failures++) * (0.5 + Math.random() / 2));
  };
}

export function stopLive(): void {
  window.clearTimeout(retry);
  source?.close();
  source = null;
  setUp(false);
}

export function listen(tell: Listener): () => void {
  listeners.add(tell);
  return () => listeners.delete(tell);
}

/** Whether the line stands. */
export const useIsLive = (): boolean =>
  useSyncExternalStore(
    (tell) => {
      watchers.add(tell);
      return () => watchers.delete(tell);
    },
    () => isUp,
  );
