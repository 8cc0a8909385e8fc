/**
 * Where the journal is emptied into: the database, seen from collect/. One implementation lives in store/; tests have
 * their own. A write is idempotent by the entries' ids, because after a crash the same entries come again.
 */
import type { Line } from '../store/line.ts';
import type { ThreadPoint } from './thread.ts';

export type SinkResult = {
  /** Entries that can never be written, and why; the others of the batch are committed. */
  readonly refused: readonly { readonly line: Line; readonly error: string }[];
};

export type Sink = {
  /** Commits, or throws. A thrown error with `retryable: false` says that this batch will never be accepted. */
  write(lines: readonly Line[]): Promise<SinkResult>;
  /** The newest whole answers' thread keys since a time, oldest first, so that inference survives a restart. */
  threads?(since: number): Promise<readonly ThreadPoint[]>;
  /** What waits has waited too long: gives way to nobody until it is told that this is over. */
  hurry?(on: boolean): void;
  /** Within a few seconds, whatever the database does. */
  close(): Promise<void>;
  /** Gives the connections up without a word to the database: they have fallen silent. A write under way fails. */
  destroy(): void;
};

export type SinkOptions = {
  readonly home: string;
  readonly databaseUrl: string | null;
  /** Makes a process get only what nobody else wants, or no longer; where that cannot be taken back it is not there. */
  readonly setIdle?: (pid: number, isIdle: boolean) => void;
};

/** What a sink module exports. It may throw while the database is away; it is called again. */
export type OpenSink = (options: SinkOptions) => Promise<Sink>;
