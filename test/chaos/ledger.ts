/**
 * The ledger of a chaos run: what callers sent and saw, how long each process of the gateway lived and what it had counted,
 * and what was broken when. Facts only; account.ts draws the conclusions.
 *
 * Times are milliseconds of one monotonic clock, that of the process that keeps the ledger.
 */

export const now = (): number => performance.now();

/** `call` and `stream` are model calls; `vote` and `outcome` are signals about one trajectory. */
export type Kind = 'call' | 'stream' | 'vote' | 'outcome';

/** What stands against a 5xx or a broken answer: somebody upstream, a recorder that cannot write, more than fits, a process that is away. */
export type Excuse = 'upstream' | 'not-recorded' | 'overload' | 'away';

export type Sent = {
  readonly id: string;
  readonly kind: Kind;
  readonly trajectory: string;
  readonly sentAt: number;
  /** The upstream was asked to misbehave, so whatever comes of it is its doing. */
  readonly provoked: boolean;
  endedAt: number | null;
  /** 0: no answer, or none that arrived whole. */
  status: number;
  /** Pawl's word for what went wrong, or null. */
  code: string | null;
  retryAfter: boolean;
  /** The name the gateway gave the record: the turn's id, or the signal's. */
  record: string | null;
};

export type Life = {
  readonly startedAt: number;
  endedAt: number | null;
  /** `died`: without being told to. `stuck`: it had to be killed because it no longer answered or did not end. */
  end: 'running' | 'asked' | 'killed' | 'stuck' | 'died';
  /** What the gateway itself said it lost, when last asked: exchanges dropped and entries the database refused. */
  counted: number;
  /** Damaged places it had skipped in its journal. */
  corrupt: number;
};

export type Broken = {
  readonly fault: string;
  readonly detail: string;
  readonly from: number;
  to: number | null;
  readonly excuses: readonly Excuse[];
  /** Names of records whose only copy the fault destroyed on purpose. */
  readonly destroyed: readonly string[];
};

/** Something that should not have happened and that no id shows: a start that failed, a process that hung. */
export type Finding = { readonly at: number; readonly during: string; readonly what: string };

export type Ledger = {
  readonly sent: Sent[];
  readonly lives: Life[];
  readonly broken: Broken[];
  readonly findings: Finding[];
};

export const newLedger = (): Ledger => ({ sent: [], lives: [], broken: [], findings: [] });

/** The faults that are on at this moment, as a word for findings. */
export const faultsNow = ({ broken }: Ledger): string =>
  broken
    .filter(({ to }) => to === null)
    .map(({ fault }) => fault)
    .join(', ') || 'no fault';
