/**
 * What the main thread keeps of the conversations that the recorder's thread knows, so that the next thread need not ask
 * the database, which may be away, before it can place an exchange. The worker reports points in pieces, as text that
 * nobody reads until then; the newest of them are kept.
 */
import type { ThreadPoint } from './thread.ts';

export type KnownThreads = {
  /** Points that have just been journalled. */
  add(piece: string): void;
  /** Points of earlier processes: kept while there is room. */
  addOlder(piece: string): void;
  /** Oldest first. */
  pieces(): string[];
};

/** About as many points as a threader keeps. */
const MOST_CHARACTERS = 4_000_000;

export function createKnownThreads(most = MOST_CHARACTERS): KnownThreads {
  let pieces: string[] = [];
  let head = 0;
  let characters = 0;
  return {
    add(piece) {
      pieces.push(piece);
      characters += piece.length;
      while (characters > most && head < pieces.length) {
        characters -= (pieces[head] as string).length;
        pieces[head++] = '';
      }
      if (head > 64 && head * 2 > pieces.length) {
        pieces = pieces.slice(head);
        head = 0;
      }
    },
    addOlder(piece) {
      if (characters + piece.length > most) return;
      pieces = [piece, ...pieces.slice(head)];
      head = 0;
      characters += piece.length;
    },
    pieces: () => pieces.slice(head),
  };
}

/** Rows without names, as exchange.ts packs them. */
export const packThreads = (points: readonly ThreadPoint[]): string =>
  JSON.stringify(points.map(({ threadKey, trajectory, at }) => [threadKey, trajectory, at]));

export const unpackThreads = (piece: string): ThreadPoint[] =>
  (JSON.parse(piece) as [string, string, number][]).map(([threadKey, trajectory, at]) => ({
    threadKey,
    trajectory,
    at,
  }));
