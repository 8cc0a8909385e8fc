/**
 * Exchange → the Turn that may be written: assembled, threaded (on the words as they were, since clients send those
 * again), then redacted. Fails closed: if redaction breaks, the turn is kept without its content. Token ids and
 * logprobs spell out the text they belong to, so they go as soon as anything in prompt or answer was replaced.
 */
import { type Assembled, assemble } from './assemble.ts';
import type { Exchange } from './exchange.ts';
import { hashedId, readableId } from './person.ts';
import { redact } from './redact/redact.ts';
import type { Counts } from './redact/redactor.ts';
import type { Attachment, Signal } from './signal.ts';
import type { Threader } from './thread.ts';
import type { Choice, Turn } from './turn.ts';

export type Made = {
  readonly turn: Turn;
  /** Exact token ids were there and had to go. */
  readonly tokensDropped: boolean;
  /** Redaction failed; the content was dropped. */
  readonly contentDropped: boolean;
};

export type MakeContext = {
  readonly threader: Threader;
  readonly secret: string;
  readonly now: number;
  readonly newId: () => string;
  /** Replaced in tests. */
  readonly redact?: typeof redact;
};

export function makeTurn(exchange: Exchange, context: MakeContext): Made {
  const { secret } = context;
  const assembled = assemble(exchange);
  const user = exchange.user === null ? null : hashedId(exchange.user, secret);
  const explicit = exchange.trajectory === null ? null : readableId(exchange.trajectory, secret);
  const { trajectory, threadKey } = context.threader.place(
    {
      explicit,
      agent: exchange.agent,
      user,
      messages: assembled.request.messages,
      choices: assembled.choices,
      complete: assembled.status === 'ok',
    },
    context.now,
    context.newId,
  );
  const keys = exchange.keys.map((key) => readableId(key, secret));
  const place = { trajectory, threadKey, user, keys };
  try {
    return redacted(assembled, withSafeIds(assembled.request, secret), place, context.redact ?? redact);
  } catch (error) {
    return { turn: withoutContent(assembled, place, error), tokensDropped: false, contentDropped: true };
  }
}

type Place = Pick<Turn, 'trajectory' | 'threadKey' | 'user' | 'keys'>;

function redacted(assembled: Assembled, original: Turn['request'], place: Place, clean: typeof redact): Made {
  const counts: Counts = {};
  const request = clean(original, counts);
  const messages = assembled.choices.map((choice) => clean(choice.message, counts));
  const spelled = Object.keys(counts).length > 0;
  const hasTokens =
    assembled.promptTokenIds !== undefined || assembled.choices.some((choice) => hasExactTokens(choice));
  const choices = assembled.choices.map((choice, i): Choice => {
    const message = messages[i] as Choice['message'];
    return spelled || !hasExactTokens(choice)
      ? { index: choice.index, message, finishReason: choice.finishReason }
      : { ...choice, message };
  });
  const { assigned, promptTokenIds } = assembled;
  // Field by field: spreading two objects of this size took a tenth of the recorder's time.
  const turn: Turn = {
    id: assembled.id,
    trajectory: place.trajectory,
    agent: assembled.agent,
    user: place.user,
    origin: assembled.origin,
    keys: place.keys,
    endpoint: assembled.endpoint,
    startedAt: assembled.startedAt,
    firstTokenMs: assembled.firstTokenMs,
    latencyMs: assembled.latencyMs,
    upstream: assembled.upstream,
    release: assembled.release,
    ...(assigned === undefined ? null : { assigned }),
    model: clean(assembled.model, counts),
    status: assembled.status,
    httpStatus: assembled.httpStatus,
    error: clean(assembled.error, counts),
    attempts: assembled.attempts,
    stream: assembled.stream,
    request,
    choices,
    ...(spelled || promptTokenIds === undefined ? null : { promptTokenIds }),
    promptTokens: assembled.promptTokens,
    completionTokens: assembled.completionTokens,
    reasoningTokens: assembled.reasoningTokens,
    usage: clean(assembled.usage, counts),
    threadKey: place.threadKey,
    redactions: counts,
  };
  return { turn, tokensDropped: spelled && hasTokens, contentDropped: false };
}

function hasExactTokens(choice: Choice): boolean {
  return choice.tokenIds !== undefined || choice.logprobs !== undefined;
}

/** The request repeats the user's id, which must be the stored form there too; it is no part of the prompt. */
function withSafeIds(request: Turn['request'], secret: string): Turn['request'] {
  let safe = request;
  for (const name of ['user', 'safety_identifier']) {
    const raw = request[name];
    if (typeof raw === 'string') safe = { ...safe, [name]: hashedId(raw, secret) };
  }
  return safe;
}

function withoutContent(assembled: Assembled, place: Place, cause: unknown): Turn {
  const { promptTokenIds: _, ...rest } = assembled;
  return {
    ...rest,
    ...place,
    request: {},
    choices: [],
    usage: null,
    model: '',
    // The cause is our own error, but its text could quote content.
    error: `The content of this turn was not recorded, because redaction failed (${cause instanceof Error ? cause.name : 'unknown'}).`,
    redactions: {},
  };
}

/** A signal fit to write. Its identity stays the same for the same sender, so repeats still replace each other. */
export function makeSignal(signal: Signal, secret: string): { signal: Signal; counts: Counts } {
  const counts: Counts = {};
  const clean = {
    ...signal,
    identity: hashedId(signal.identity, secret), // it names the user,
    target: { ...signal.target, id: readableId(signal.target.id, secret) },
    name: redact(signal.name, counts),
    unit: redact(signal.unit, counts),
    user: signal.user === null ? null : hashedId(signal.user, secret),
    comment: redact(signal.comment, counts),
    correction: redact(signal.correction, counts),
  };
  return { signal: clean, counts };
}

export function makeAttachment(attachment: Attachment, secret: string): Attachment {
  return {
    ...attachment,
    key: readableId(attachment.key, secret),
    trajectory: attachment.trajectory === null ? null : readableId(attachment.trajectory, secret),
  };
}
