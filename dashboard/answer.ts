/** Asking, and asking again when Pawl says that something changed. What is shown stays until there is something newer. */
import { useCallback, useEffect, useRef, useState } from 'react';
import { Problem } from './client.ts';
import { type Change, listen, type Topic } from './live.ts';

export type Answer<T> = {
  readonly value: T | null;
  readonly problem: Problem | null;
  readonly isLoading: boolean;
  /** Asks again now. */
  readonly again: () => void;
};

export type On = {
  /** Changes after which it is asked again. */
  readonly topics?: readonly Topic[];
  /** Only where this one changed. */
  readonly id?: string;
};

export const asProblem = (error: unknown): Problem =>
  error instanceof Problem
    ? error
    : new Problem(0, 'page', `The page failed: ${error instanceof Error ? error.message : String(error)}`);

const concerns = ({ topics = [], id }: On, change: Change): boolean =>
  change.topic === 'all' ||
  (topics.includes(change.topic) && (id === undefined || change.id === null || change.id === id));

/** Calls `tell` on changes, also on those that came while nobody looked, once somebody does. */
export function useChanges(on: On, tell: () => void): void {
  const latest = useRef({ on, tell });
  latest.current = { on, tell };
  useEffect(() => {
    let isDue = false;
    const look = () => {
      if (!isDue || document.hidden) return;
      isDue = false;
      latest.current.tell();
    };
    const stop = listen((change) => {
      if (!concerns(latest.current.on, change)) return;
      isDue = true;
      look();
    });
    document.addEventListener('visibilitychange', look);
    return () => {
      stop();
      document.removeEventListener('visibilitychange', look);
    };
  }, []);
}

/** `key` names what is asked for; another key is another question, `null` asks nothing. */
export function useAnswer<T>(key: string | null, asking: (signal: AbortSignal) => Promise<T>, on: On = {}): Answer<T> {
  const [state, setState] = useState<{ key: string | null; value: T | null; problem: Problem | null }>({
    ...{ key: null, value: null, problem: null },
  });
  const [round, setRound] = useState(0);
  const latest = useRef(asking);
  latest.current = asking;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new round is what asks again
  useEffect(() => {
    if (key === null) return;
    const stop = new AbortController();
    latest.current(stop.signal).then(
      (value) => !stop.signal.aborted && setState({ key, value, problem: null }),
      (error: unknown) =>
        !stop.signal.aborted &&
        setState((old) => ({ key, value: old.key === key ? old.value : null, problem: asProblem(error) })),
    );
    return () => stop.abort();
  }, [key, round]);
  const again = useCallback(() => setRound((n) => n + 1), []);
  useChanges(on, again);
  const isMine = state.key === key;
  return {
    value: isMine ? state.value : null,
    problem: isMine ? state.problem : null,
    isLoading: key !== null && !isMine,
    again,
  };
}
