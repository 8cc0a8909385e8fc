/** A long list, page by page: more when the reader comes to its end, and what is new at its head. */
import { useCallback, useEffect, useRef, useState } from 'react';
import { asProblem, type On, useChanges } from './answer.ts';
import type { Problem } from './client.ts';

export type Page<T> = { readonly rows: readonly T[]; readonly next: string | null };
export type Rows<T> = {
  /** null until the first page is there. */
  readonly rows: readonly T[] | null;
  readonly isWhole: boolean;
  readonly problem: Problem | null;
  readonly more: () => void;
  readonly again: () => void;
};

type State<T> = Page<T> & { readonly key: string; readonly problem: Problem | null };

/** What the head of the list is now, before what was read earlier; a row that is in both is the newer one. */
export function withHead<T>(known: readonly T[], head: readonly T[], idOf: (row: T) => string): T[] {
  const fresh = new Map(head.map((row) => [idOf(row), row]));
  const isKnown = new Set(known.map(idOf));
  return [...head.filter((row) => !isKnown.has(idOf(row))), ...known.map((row) => fresh.get(idOf(row)) ?? row)];
}

export function useRows<T>(
  key: string,
  asking: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>,
  idOf: (row: T) => string,
  on: On = {},
): Rows<T> {
  const [state, setState] = useState<State<T> | null>(null);
  const [round, setRound] = useState(0);
  const latest = useRef({ asking, idOf, state });
  latest.current = { asking, idOf, state };
  const isBusy = useRef(false);
  const current = useRef(key);
  current.current = key;

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new round is what asks again
  useEffect(() => {
    const stop = new AbortController();
    isBusy.current = false;
    latest.current.asking(undefined, stop.signal).then(
      (page) => !stop.signal.aborted && setState({ ...page, key, problem: null }),
      (error: unknown) => !stop.signal.aborted && setState({ rows: [], next: null, key, problem: asProblem(error) }),
    );
    return () => stop.abort();
  }, [key, round]);

  const more = useCallback(() => {
    const before = latest.current.state;
    if (before === null || before.next === null || before.key !== current.current || isBusy.current) return;
    isBusy.current = true;
    latest.current
      .asking(before.next, new AbortController().signal)
      .then((page) =>
        setState((now) =>
          now?.key === before.key && now.next === before.next
            ? { ...now, rows: [...now.rows, ...page.rows], next: page.next }
            : now,
        ),
      )
      .catch(() => {}) // the end of the list is asked for again when it is scrolled to again
      .finally(() => {
        isBusy.current = false;
      });
  }, []);

  useChanges(on, () => {
    latest.current
      .asking(undefined, new AbortController().signal)
      .then((page) =>
        setState((now) =>
          now?.key === current.current && now.problem === null
            ? {
                ...now,
                rows: withHead(now.rows, page.rows, latest.current.idOf),
                next: now.rows.length === 0 ? page.next : now.next,
              }
            : now,
        ),
      )
      .catch(() => {}); // what is shown stays; the next change asks again
  });

  const again = useCallback(() => setRound((n) => n + 1), []);
  const mine = state?.key === key ? state : null;
  return {
    rows: mine === null || mine.problem !== null ? null : mine.rows,
    isWhole: mine?.next === null,
    problem: mine?.problem ?? null,
    more,
    again,
  };
}
