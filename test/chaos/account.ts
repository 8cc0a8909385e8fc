/**
 * The accountant: ledger and database in, one account out. Pure.
 *
 *   answered          the caller got a whole 200
 *   acknowledged      a vote or outcome got its 202
 *   recorded          its row is in the database at the end, after the last recovery and a drain
 *   counted           lost by the gateway's own counters, summed over all its lives
 *   killed            answered within `windowMs` before a kill -9 of the gateway and not recorded, beyond what it had counted
 *                     by then, which pays for the oldest: counters in memory die with their process, so these losses are
 *                     laid to the kill by time
 *   destroyed         a record whose only copy a fault damaged on purpose, by name
 *
 *   lost_acknowledged 202, not destroyed, no row
 *   doubled           two rows for one id, more turns than calls in a trajectory, or a trajectory whose sums are not
 *                     those of its turns
 *   uncounted         calls the gateway had named (x-pawl-turn) with no row, neither killed nor destroyed, beyond what it
 *                     counted in that life. Calls that ended badly must be recorded as well, so they are in this sum:
 *                     else a counted loss of theirs could hide an uncounted one
 *   own_5xx           a 5xx that no fault and no request for misbehaviour explains
 *   max_unrecorded_ms the oldest answer that a kill cost: how long a 200 may be without being durable
 */
import type { Broken, Excuse, Kind, Ledger, Life, Sent } from './ledger.ts';

/** What the database holds. */
export type Evidence = {
  /** Rows by turn id. */
  readonly turns: ReadonlyMap<string, number>;
  /** Turns by trajectory. */
  readonly turnsOf: ReadonlyMap<string, number>;
  /** Rows by signal, as `signalKey` names it. */
  readonly signals: ReadonlyMap<string, number>;
  /** Trajectories whose sums differ from those over their turns, and how. */
  readonly uneven: ReadonlyMap<string, string>;
  /** Turns that took less than no time, or ten minutes. */
  readonly odd: ReadonlyMap<string, string>;
};

export const signalKey = (kind: 'vote' | 'outcome', trajectory: string): string => `${kind} ${trajectory}`;

/** An id that is not as it must be, and where in the run to look for the cause. */
export type Wrong = { readonly id: string; readonly where: string };

export type Account = {
  readonly byKind: Readonly<
    Record<Kind, { readonly sent: number; readonly answered: number; readonly recorded: number }>
  >;
  readonly acknowledged: number;
  readonly killed: number;
  readonly destroyed: number;
  readonly counted: number;
  readonly lostAcknowledged: readonly Wrong[];
  readonly doubled: readonly Wrong[];
  readonly uncounted: readonly Wrong[];
  readonly own5xx: readonly Wrong[];
  /** Calls without a whole answer that no fault explains. */
  readonly unanswered: readonly Wrong[];
  /** Turns whose measured time cannot be. */
  readonly odd: readonly Wrong[];
  readonly maxUnrecordedMs: number;
  /** Where that answer was. */
  readonly oldest: string | null;
};

/** A fault's effects outlast it a little: connections are made again, queues run empty. */
const graceMs = 5_000;

const isSignal = ({ kind }: Sent): boolean => kind === 'vote' || kind === 'outcome';

export function account(ledger: Ledger, evidence: Evidence, windowMs = 1000): Account {
  const destroyed = new Set(ledger.broken.flatMap((broken) => broken.destroyed));
  const isDestroyed = ({ record }: Sent) => record !== null && destroyed.has(record);
  const isRecorded = (sent: Sent) =>
    sent.kind === 'vote' || sent.kind === 'outcome'
      ? evidence.signals.has(signalKey(sent.kind, sent.trajectory))
      : sent.record !== null && evidence.turns.has(sent.record);

  let killed = 0;
  let maxUnrecordedMs = 0;
  let oldest: string | null = null;
  const missing = new Map<Life | null, Sent[]>();
  for (const call of ledger.sent) {
    if (isSignal(call) || call.record === null || isRecorded(call) || isDestroyed(call)) continue;
    const life = lifeOf(ledger.lives, call);
    missing.set(life, [...(missing.get(life) ?? []), call]);
  }
  const wrong = (sent: Sent): Wrong => ({ id: sent.id, where: whereIn(ledger, sent) });
  const uncounted: Wrong[] = [];
  for (const [life, calls] of missing) {
    const byAge = calls.toSorted((a, b) => (a.endedAt ?? Infinity) - (b.endedAt ?? Infinity));
    for (const call of byAge.slice(life?.counted ?? 0)) {
      const age = life === null ? null : ageAtKill(life, call);
      if (age === null || age > windowMs) {
        uncounted.push(wrong(call));
        continue;
      }
      killed++;
      if (call.status === 200 && age > maxUnrecordedMs) {
        maxUnrecordedMs = age;
        oldest = whereIn(ledger, call);
      }
    }
  }

  const acknowledged = ledger.sent.filter((sent) => isSignal(sent) && sent.status === 202);
  const row = (kind: Kind) => {
    const sent = ledger.sent.filter((one) => one.kind === kind);
    const good = sent.filter(({ status }) => status === 200 || status === 202);
    return { sent: sent.length, answered: good.length, recorded: good.filter(isRecorded).length };
  };
  return {
    byKind: { call: row('call'), stream: row('stream'), vote: row('vote'), outcome: row('outcome') },
    acknowledged: acknowledged.length,
    killed,
    destroyed: ledger.sent.filter((sent) => isDestroyed(sent) && !isRecorded(sent)).length,
    counted: ledger.lives.reduce((sum, life) => sum + life.counted, 0),
    lostAcknowledged: acknowledged.filter((sent) => !isRecorded(sent) && !isDestroyed(sent)).map(wrong),
    doubled: doubledIn(ledger, evidence),
    uncounted,
    own5xx: ledger.sent.filter((sent) => isOwn5xx(sent, ledger.broken)).map(wrong),
    unanswered: ledger.sent
      .filter((sent) => sent.endedAt !== null && sent.status === 0 && !sent.provoked)
      .filter((sent) => !isExcused(sent, ledger.broken, ['away', 'upstream']))
      .map(wrong),
    odd: [...evidence.odd].map(([id, where]) => ({ id, where })),
    maxUnrecordedMs,
    oldest,
  };
}

/** The life that was asked: a connection does not outlive its process, however late its end is noticed here. */
function lifeOf(lives: readonly Life[], { sentAt }: Sent): Life | null {
  return lives.findLast(({ startedAt }) => startedAt <= sentAt) ?? null;
}

function ageAtKill({ end, endedAt }: Life, call: Sent): number | null {
  if (endedAt === null || (end !== 'killed' && end !== 'stuck')) return null;
  return Math.max(0, endedAt - (call.endedAt ?? endedAt));
}

/** The faults around an answer, and how the life ended in which it was given. */
function whereIn({ broken, lives }: Ledger, sent: Sent): string {
  const at = sent.endedAt ?? sent.sentAt;
  const before = broken.findLast(({ from }) => from <= at);
  const after = broken.find(({ from }) => from > at);
  const life = lifeOf(lives, sent);
  const age = life?.endedAt == null ? '' : `, ${Math.round(life.endedAt - at)} ms before its end`;
  const status = `${sent.kind} ${sent.status}${sent.code === null ? '' : ` ${sent.code}`}${age}, `;
  return `${status}after ${before?.fault ?? 'the start'}${before?.detail ? ` (${before.detail})` : ''}, before ${
    after?.fault ?? 'the end'
  }, in life ${life === null ? 0 : lives.indexOf(life) + 1} of ${lives.length}, ${life?.end ?? ''}`;
}

function doubledIn({ sent }: Ledger, { turns, turnsOf, signals, uneven }: Evidence): Wrong[] {
  const calls = new Map<string, number>();
  for (const one of sent) if (!isSignal(one)) calls.set(one.trajectory, (calls.get(one.trajectory) ?? 0) + 1);
  const many = (rows: ReadonlyMap<string, number>): Wrong[] =>
    [...rows].filter(([, n]) => n > 1).map(([id, n]) => ({ id, where: `${n} rows` }));
  const surplus = [...calls]
    .filter(([id, n]) => (turnsOf.get(id) ?? 0) > n)
    .map(([id, n]) => ({ id, where: `${turnsOf.get(id)} turns of ${n} calls` }));
  return [...many(turns), ...many(signals), ...surplus, ...[...uneven].map(([id, where]) => ({ id, where }))];
}

/** 503 with Retry-After, by Pawl's code; any other is a matter of more requests than fit. */
const backPressure: Readonly<Record<string, Excuse>> = { not_recorded: 'not-recorded', starting: 'away' };

/** What could explain an answer with this status and code; empty: nothing may. */
function excusesFor({ status, code, retryAfter }: Sent): readonly Excuse[] {
  if (status === 503 && retryAfter) return [backPressure[code ?? ''] ?? 'overload'];
  // Without one of Pawl's own codes it is the upstream's answer, passed on.
  return code === null || code.startsWith('upstream_') ? ['upstream'] : [];
}

function isOwn5xx(sent: Sent, broken: readonly Broken[]): boolean {
  if (sent.status < 500) return false;
  const excuses = excusesFor(sent);
  return !(sent.provoked && excuses.includes('upstream')) && !isExcused(sent, broken, excuses);
}

function isExcused({ sentAt, endedAt }: Sent, broken: readonly Broken[], by: readonly Excuse[]): boolean {
  const until = endedAt ?? sentAt;
  return broken.some(
    ({ from, to, excuses }) =>
      from <= until && (to === null || sentAt <= to + graceMs) && excuses.some((excuse) => by.includes(excuse)),
  );
}

/** One account of several runs, each with a database of its own. */
export function total(accounts: readonly Account[]): Account {
  const add = (pick: (one: Account) => number) => accounts.reduce((sum, one) => sum + pick(one), 0);
  const join = (pick: (one: Account) => readonly Wrong[]) => accounts.flatMap((one) => [...pick(one)]);
  const row = (kind: Kind) => ({
    sent: add((one) => one.byKind[kind].sent),
    answered: add((one) => one.byKind[kind].answered),
    recorded: add((one) => one.byKind[kind].recorded),
  });
  return {
    byKind: { call: row('call'), stream: row('stream'), vote: row('vote'), outcome: row('outcome') },
    acknowledged: add((one) => one.acknowledged),
    killed: add((one) => one.killed),
    destroyed: add((one) => one.destroyed),
    counted: add((one) => one.counted),
    lostAcknowledged: join((one) => one.lostAcknowledged),
    doubled: join((one) => one.doubled),
    uncounted: join((one) => one.uncounted),
    own5xx: join((one) => one.own5xx),
    unanswered: join((one) => one.unanswered),
    odd: join((one) => one.odd),
    maxUnrecordedMs: Math.max(0, ...accounts.map((one) => one.maxUnrecordedMs)),
    oldest: accounts.toSorted((a, b) => b.maxUnrecordedMs - a.maxUnrecordedMs)[0]?.oldest ?? null,
  };
}
