/**
 * What a batch of turns adds to each of its conversations: the sums and extremes that a trajectory's row is made of. The consent of a
 * conversation is the worst of its turns': withdrawn, else unknown, else given, which is the order of the alphabet. A turn without a user is
 * unknown, and one that comes late changes the stamp. `errors` are calls that went wrong; a caller who left is not an error. Pure.
 */
import type { Consent } from '../collect/trajectory.ts';
import type { Turn } from '../collect/turn.ts';
import { dayOf } from './partitions.ts';
import type { Day } from './tables.ts';
import type { SummedTurn } from './turn-rows.ts';

export type TrajectorySum = {
  readonly id: string;
  readonly agent: string;
  /** Of the earliest turn of the batch. */
  day: Day;
  user: string | null;
  origin: Turn['origin'];
  consent: Consent;
  startedAt: number;
  endedAt: number;
  turns: number;
  errors: number;
  promptTokens: number;
  completionTokens: number;
  latencyMs: number;
  release: string;
  releaseAt: number;
};

/** What the user of a turn had said when it began. */
export type ConsentOf = (turn: SummedTurn) => Consent;

/** Of what began at the same moment the ids decide, so that any order gives the same. */
const isBefore = (a: SummedTurn, b: SummedTurn): boolean =>
  a.startedAt < b.startedAt || (a.startedAt === b.startedAt && a.id < b.id);

type Sum = TrajectorySum & { newest: SummedTurn; named: SummedTurn | null };

export function sumTrajectories(turns: readonly SummedTurn[], consentOf: ConsentOf): TrajectorySum[] {
  const byAgent = new Map<string, Map<string, Sum>>();
  const all: Sum[] = [];
  for (const turn of turns) {
    const ofAgent = byAgent.get(turn.agent) ?? new Map<string, Sum>();
    if (ofAgent.size === 0) byAgent.set(turn.agent, ofAgent);
    const sum = ofAgent.get(turn.trajectory);
    if (sum === undefined) {
      const first = begin(turn, consentOf(turn));
      ofAgent.set(turn.trajectory, first);
      all.push(first);
    } else add(sum, turn, consentOf(turn));
  }
  return all;
}

const isError = ({ status }: SummedTurn): boolean => status === 'error' || status === 'truncated';

function begin(turn: SummedTurn, consent: Consent): Sum {
  const { agent, trajectory: id, user, origin, startedAt, latencyMs, release } = turn;
  return {
    id,
    agent,
    day: dayOf(startedAt),
    user,
    origin,
    consent,
    startedAt,
    endedAt: startedAt + latencyMs,
    turns: 1,
    errors: isError(turn) ? 1 : 0,
    promptTokens: turn.promptTokens ?? 0,
    completionTokens: turn.completionTokens ?? 0,
    latencyMs,
    release,
    releaseAt: startedAt,
    newest: turn,
    named: user === null ? null : turn,
  };
}

function add(sum: Sum, turn: SummedTurn, consent: Consent): void {
  const { user, origin, startedAt, latencyMs } = turn;
  const day = dayOf(startedAt);
  if (day < sum.day) sum.day = day;
  if (user !== null && (sum.named === null || isBefore(turn, sum.named))) {
    sum.named = turn;
    sum.user = user;
  }
  // Fail closed: one turn that is not production makes the whole not production.
  if (origin !== 'production' && (sum.origin === 'production' || origin < sum.origin)) sum.origin = origin;
  if (consent > sum.consent) sum.consent = consent;
  sum.startedAt = Math.min(sum.startedAt, startedAt);
  sum.endedAt = Math.max(sum.endedAt, startedAt + latencyMs);
  sum.turns++;
  if (isError(turn)) sum.errors++;
  sum.promptTokens += turn.promptTokens ?? 0;
  sum.completionTokens += turn.completionTokens ?? 0;
  sum.latencyMs += latencyMs;
  if (isBefore(sum.newest, turn)) {
    sum.newest = turn;
    sum.release = turn.release;
    sum.releaseAt = startedAt;
  }
}
