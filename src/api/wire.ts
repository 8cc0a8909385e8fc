/** Records as /api sends them: dates become text, token arrays stay home. The only place where the two shapes meet. */
import type { Sibling } from '../collect/sibling.ts';
import type { Signal } from '../collect/signal.ts';
import type { Trajectory } from '../collect/trajectory.ts';
import type { Turn } from '../collect/turn.ts';
import type { WholeConsent } from '../privacy/consent.ts';
import type { ConsentRecord } from '../store/consents.ts';
import type { Key } from '../store/keys.ts';
import { type ShownField, shownFields, turnColumns } from '../store/turn-columns.ts';
import type { ApiConsent, ApiKey, ApiSibling, ApiSignal, ApiTrajectory, ApiTurn } from './schema.ts';

/** A time that no calendar here holds (the database's reaches further) is told as the last that one does. */
const time = (at: Date | number): string => {
  const date = new Date(at);
  return (Number.isNaN(date.getTime()) ? new Date(8.64e15) : date).toISOString();
};
const timeOrNull = (at: Date | null): string | null => (at === null ? null : time(at));

export const wireTrajectory = (t: Trajectory): ApiTrajectory => ({
  id: t.id,
  agent: t.agent,
  user: t.user,
  origin: t.origin,
  consent: t.consent,
  startedAt: time(t.startedAt),
  endedAt: time(t.endedAt),
  turns: t.turns,
  errors: t.errors,
  promptTokens: t.promptTokens,
  completionTokens: t.completionTokens,
  latencyMs: t.latencyMs,
  release: t.release,
});

/** `leftOut`: it was read without request and answer, which are too large for one answer. */
export const wireTurn = (turn: Turn, leftOut = false): ApiTurn => ({
  ...shownOf(turn),
  request: { ...turn.request },
  choices: turn.choices.map(({ index, message, finishReason }) => ({ index, message: { ...message }, finishReason })),
  hasTokenIds: turn.choices.some(({ tokenIds }) => tokenIds !== undefined),
  contentLeftOut: leftOut,
});

const shownOf = (turn: Turn): Pick<ApiTurn, ShownField> =>
  Object.fromEntries(
    shownFields.map((field) => {
      const isTime = turnColumns[field].type === 'timestamp with time zone';
      return [field, isTime ? time(turn[field] as number) : turn[field]];
    }),
  ) as Pick<ApiTurn, ShownField>;

export const wireSibling = (sibling: Sibling): ApiSibling => ({
  id: sibling.id,
  parent: sibling.parent,
  origin: sibling.origin,
  temperature: sibling.temperature,
  topP: sibling.topP,
  startedAt: time(sibling.startedAt),
  latencyMs: sibling.latencyMs,
  upstream: sibling.upstream,
  release: sibling.release,
  model: sibling.model,
  choices: sibling.choices.map(({ index, message, finishReason }) => ({
    index,
    message: { ...message },
    finishReason,
  })),
  promptTokens: sibling.promptTokens,
  completionTokens: sibling.completionTokens,
  redactions: { ...sibling.redactions },
});

export const wireSignal = (signal: Signal): ApiSignal => ({
  id: signal.id,
  target: signal.target,
  kind: signal.kind,
  name: signal.name,
  value: signal.value,
  unit: signal.unit,
  user: signal.user,
  comment: signal.comment,
  correction: signal.correction,
  at: time(signal.at),
  receivedAt: time(signal.receivedAt),
});

export const wireKey = (key: Key): ApiKey => ({
  id: key.id,
  name: key.name,
  agent: key.agent,
  prefix: key.prefix,
  origin: key.origin,
  scopes: [...key.scopes],
  rateLimit: key.rateLimit,
  region: key.region,
  tenant: key.tenant,
  createdAt: time(key.createdAt),
  revokedAt: timeOrNull(key.revokedAt),
  lastUsedAt: timeOrNull(key.lastUsedAt),
});

export const wireConsent = (consent: ConsentRecord & Partial<WholeConsent>): ApiConsent => ({
  agent: consent.agent,
  user: consent.user,
  consent: consent.now,
  givenAt: timeOrNull(consent.givenAt),
  withdrawnAt: timeOrNull(consent.withdrawnAt),
  ...(consent.others && {
    others: consent.others.map(({ purpose, now, givenAt, withdrawnAt }) => ({
      ...{ purpose, consent: now, givenAt: timeOrNull(givenAt), withdrawnAt: timeOrNull(withdrawnAt) },
    })),
  }),
});
