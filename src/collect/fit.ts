/**
 * A turn's numbers made fit for the columns they go into. Upstreams and clocks send odd ones, and a database that refuses
 * one value refuses the whole turn. What has a nearest fit value is moved there; what would then say something wrong (a
 * token's id, a token count) is left out. Pure. Text needs nothing here: line.ts takes out what the database cannot hold,
 * make-turn.ts cuts what is indexed.
 */
import { earliestTime, latestTime } from '../store/times.ts';
import type { Assembled } from './assemble.ts';
import type { Attachment, Signal } from './signal.ts';
import type { Choice } from './turn.ts';

const EARLIEST = earliestTime;
const LATEST = latestTime - 1;
/** A call is over after a month at the latest; more is a clock that was set. */
const LONGEST_MS = 31 * 24 * 60 * 60 * 1000;
/** Sums of millions of these still fit into 64 bits. */
const MOST_TOKENS = 1e12;
const INT32 = 2 ** 31 - 1;
/** Of a 32-bit float; what is smaller than the smallest becomes zero. */
const LARGEST_REAL = 3.4028234e38;
const SMALLEST_REAL = 1.2e-38;

export type Fit = {
  readonly assembled: Assembled;
  /** How many values were moved or left out. */
  readonly unfit: number;
};

export function fitTurn(given: Assembled): Fit {
  const numbers = fitNumbers(given);
  let unfit = numberNames.filter((name) => !Object.is(numbers[name], given[name])).length;
  let fixed: { -readonly [K in keyof Assembled]: Assembled[K] } | null = unfit === 0 ? null : { ...given, ...numbers }; // most turns need none
  if (given.promptTokenIds !== undefined && !given.promptTokenIds.every(isTokenId)) {
    fixed ??= { ...given };
    delete fixed.promptTokenIds;
    unfit++;
  }
  if (given.choices.some((choice) => choice.tokenIds !== undefined || choice.logprobs !== undefined)) {
    const choices = given.choices.map(fitChoice);
    const changed = choices.filter((choice, i) => choice !== given.choices[i]).length;
    if (changed > 0) fixed = { ...(fixed ?? given), choices };
    unfit += changed;
  }
  return { assembled: fixed ?? given, unfit };
}

type Numbers = Pick<Assembled, (typeof numberNames)[number]>;
const numberNames = [
  'startedAt',
  'latencyMs',
  'firstTokenMs',
  'httpStatus',
  'attempts',
  'promptTokens',
  'completionTokens',
  'reasoningTokens',
] as const;

const fitNumbers = (given: Numbers): Numbers => ({
  startedAt: within(given.startedAt, EARLIEST, LATEST),
  latencyMs: within(given.latencyMs, 0, LONGEST_MS),
  firstTokenMs: given.firstTokenMs === null ? null : within(given.firstTokenMs, 0, LONGEST_MS),
  httpStatus: Number.isInteger(given.httpStatus) ? within(given.httpStatus, 0, 999) : 0,
  attempts: Math.round(within(given.attempts, 0, INT32)),
  promptTokens: countOrNull(given.promptTokens),
  completionTokens: countOrNull(given.completionTokens),
  reasoningTokens: countOrNull(given.reasoningTokens),
});

export function fitSignal(signal: Signal): Signal {
  return {
    ...signal,
    value: signal.value === null || Number.isFinite(signal.value) ? signal.value : null,
    at: within(signal.at, EARLIEST, LATEST),
    receivedAt: within(signal.receivedAt, EARLIEST, LATEST),
  };
}

export const fitAttachment = (attachment: Attachment): Attachment => ({
  ...attachment,
  at: within(attachment.at, EARLIEST, LATEST),
});

function within(value: number, least: number, most: number): number {
  if (Number.isNaN(value)) return least;
  return Math.min(most, Math.max(least, value));
}

const countOrNull = (count: number | null): number | null =>
  count !== null && Number.isInteger(count) && count >= 0 && count <= MOST_TOKENS ? count : null;

const isTokenId = (id: number): boolean => Number.isInteger(id) && id >= 0 && id <= INT32;

const isReal = (value: number): boolean =>
  value === 0 || (Math.abs(value) >= SMALLEST_REAL && Math.abs(value) <= LARGEST_REAL);

function fitReal(value: number): number {
  if (Math.abs(value) < SMALLEST_REAL) return 0;
  return within(value, -LARGEST_REAL, LARGEST_REAL);
}

/** The same choice when there is nothing to change. */
function fitChoice(choice: Choice): Choice {
  const { tokenIds, logprobs, ...rest } = choice;
  const idsFit = tokenIds === undefined || tokenIds.every(isTokenId);
  const logprobsFit = logprobs === undefined || logprobs.every(isReal);
  if (idsFit && logprobsFit) return choice;
  return {
    ...rest,
    ...(idsFit && tokenIds !== undefined ? { tokenIds } : {}),
    ...(logprobs !== undefined ? { logprobs: logprobs.map(fitReal) } : {}),
  };
}
