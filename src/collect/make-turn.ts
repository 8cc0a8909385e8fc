/**
 * Exchange → the Turn that may be written: assembled, its numbers made fit, threaded (on the words as they were, since
 * clients send those again), bounded, then redacted. Fails closed: if redaction breaks or would take too long, the turn
 * is kept without its content. Token ids and logprobs spell out the text they belong to, so they go as soon as anything
 * in prompt or answer was replaced.
 */
import { type Assembled, assemble } from './assemble.ts';
import { bounded } from './bound.ts';
import { chatMessages } from './chat-form.ts';
import { type Exchange, exchangeBytes } from './exchange.ts';
import { fitAttachment, fitSignal, fitTurn } from './fit.ts';
import { hashedId, readableId } from './person.ts';
import type { KnownMessages } from './redact/known-messages.ts';
import { Dropped, type Numbers } from './redact/placeholder.ts';
import { openRedaction, type Redaction } from './redact/redact.ts';
import type { Counts } from './redact/redactor.ts';
import { ordinaryRules, type Rules } from './redact/rules.ts';
import type { Attachment, Signal } from './signal.ts';
import type { Threader } from './thread.ts';
import type { Choice, Turn } from './turn.ts';
import { readUnderstood } from './turn-input.ts';
import { isObject, isTooIntricate } from './untrusted.ts';

export type Made = {
  readonly turn: Turn;
  /** Exact token ids were there and had to go. */
  readonly tokensDropped: boolean;
  /** The content was dropped: redaction failed, or reading or redacting it would have taken too long. */
  readonly contentDropped: boolean;
  /** Values that no column holds, and fields too large to be read back: made fit or left out. */
  readonly unfit: number;
};

export type MakeContext = {
  readonly threader: Threader;
  readonly secret: string;
  readonly now: number;
  readonly newId: () => string;
  /** What was redacted before; without it everything is looked at anew. */
  readonly known?: KnownMessages;
  /** What is personal for this agent, and what becomes of it. */
  readonly rules?: Rules;
  /** The numbers that values of a conversation have had so far. */
  readonly numbersOf?: (trajectory: string) => Numbers;
  /** Replaced in tests. */
  readonly redaction?: typeof openRedaction;
};

export function makeTurn(exchange: Exchange, context: MakeContext): Made {
  const { secret } = context;
  const readable = !isTooIntricate(exchange.requestBody, exchange.responseChunks);
  const { assembled, unfit } = fitTurn(readable ? read(exchange, context.known) : assembleUnread(exchange));
  const user = exchange.user === null ? null : hashedId(exchange.user, secret);
  const explicit = exchange.trajectory === null ? null : readableId(exchange.trajectory, secret);
  const { trajectory, threadKey } =
    exchange.sibling === undefined
      ? context.threader.place(
          {
            explicit,
            agent: exchange.agent,
            user,
            messages: chatMessages(assembled),
            choices: assembled.choices,
            complete: assembled.status === 'ok',
          },
          context.now,
          context.newId,
        )
      : notThreaded;
  const keys = exchange.keys.map((key) => readableId(key, secret));
  const place = { trajectory, threadKey, user, keys };
  const dropped = (reason: string): Made => ({
    turn: withoutContent(assembled, place, context.rules ?? ordinaryRules, reason),
    ...{ tokensDropped: false, contentDropped: true, unfit },
  });
  if (!readable) return dropped('it holds too many values or names');
  try {
    const sized = boundContent(assembled, exchange);
    const original = withSafeIds(sized.content.request, secret);
    return redacted(sized.content, original, place, unfit + sized.replaced, context);
  } catch (error) {
    if (error instanceof Dropped)
      return dropped(`it holds ${error.kind}, and the agent's policy for that is to drop it`);
    // The cause is our own error, but its text could quote content.
    const reason = `redaction failed (${error instanceof Error ? error.name : 'unknown'})`;
    return dropped(reason);
  }
}

/** Nobody was shown a sibling's answer, so nobody goes on from it. */
const notThreaded = { trajectory: '', threadKey: null };

const read = (exchange: Exchange, known: KnownMessages | undefined): Assembled =>
  exchange.isUnderstood ? readUnderstood(exchange) : assemble(exchange, known?.parse);

/** What is known without reading a byte of it. */
function assembleUnread(exchange: Exchange): Assembled {
  const unread = assemble({ ...exchange, requestBody: new Uint8Array(), responseChunks: [] });
  return { ...unread, status: exchange.status };
}

function boundContent(assembled: Assembled, exchange: Exchange): { content: Assembled; replaced: number } {
  const whole = exchangeBytes(exchange);
  const raw = exchange.isUnderstood ? whole : whole - exchange.requestBody.length;
  const request = bounded(assembled.request, MAX_REQUEST, exchange.requestBody.length);
  const share = Math.floor(MAX_ANSWER / Math.max(1, assembled.choices.length));
  const messages = assembled.choices.map(({ message }) => bounded(message, share, raw));
  const usage = assembled.usage === null ? null : bounded(assembled.usage, MAX_USAGE, raw);
  const replaced = messages.reduce((sum, one) => sum + one.replaced, request.replaced + (usage?.replaced ?? 0));
  if (replaced === 0) return { content: assembled, replaced };
  const choices = assembled.choices.map((choice, i) => ({ ...choice, message: messages[i]!.value }));
  return { content: { ...assembled, request: request.value, choices, usage: usage?.value ?? null }, replaced };
}
/** Written out in full by the database, in bytes. */
const MAX_REQUEST = 32 * 1024 * 1024;
const MAX_ANSWER = 32 * 1024 * 1024;
const MAX_USAGE = 64 * 1024;

type Place = Pick<Turn, 'trajectory' | 'threadKey' | 'user' | 'keys'>;

function redacted(
  assembled: Assembled,
  original: Turn['request'],
  place: Place,
  unfit: number,
  { known, rules = ordinaryRules, numbersOf, redaction: open = openRedaction }: MakeContext,
): Made {
  const numbers = numbersOf?.(place.trajectory) ?? new Map();
  const redaction = open({ rules, numbers });
  const read = known?.redactRequest(original, redaction) ?? redaction.clean(original);
  const said = redaction.clean(assembled.choices.map((choice) => choice.message));
  const clean = <T>(value: T): T => redaction.spread(redaction.clean(value));
  const request = redaction.spread(read);
  const messages = redaction.spread(said);
  const { counts } = redaction;
  const spelled = Object.keys(counts).length > 0;
  const hasTokens =
    assembled.promptTokenIds !== undefined || assembled.choices.some((choice) => hasExactTokens(choice));
  const choices = assembled.choices.map((choice, i): Choice => {
    const message = messages[i] as Choice['message'];
    const finishReason = choice.finishReason === null ? null : label(choice.finishReason, redaction, rules);
    return spelled || !hasExactTokens(choice)
      ? { index: choice.index, message, finishReason }
      : { ...choice, message, finishReason };
  });
  const { clientKey, assigned, promptTokenIds } = assembled;
  // Field by field, and the rare ones last: spreading two objects of this size took a tenth of the recorder's time.
  const turn: { -readonly [K in keyof Turn]: Turn[K] } = {
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
    release: label(assembled.release, redaction, rules),
    model: label(assembled.model, redaction, rules),
    status: assembled.status,
    httpStatus: assembled.httpStatus,
    error: assembled.error === null ? null : shortened(assembled.error, clean(assembled.error)),
    attempts: assembled.attempts,
    stream: assembled.stream,
    request,
    choices,
    promptTokens: assembled.promptTokens,
    completionTokens: assembled.completionTokens,
    reasoningTokens: assembled.reasoningTokens,
    usage: clean(assembled.usage),
    threadKey: place.threadKey,
    redactions: counts,
  };
  if (clientKey !== undefined) turn.clientKey = clientKey;
  if (assigned !== undefined) turn.assigned = label(assigned, redaction, rules);
  if (!spelled && promptTokenIds !== undefined) turn.promptTokenIds = promptTokenIds;
  return { turn, tokensDropped: spelled && hasTokens, contentDropped: false, unfit };
}

const MAX_LABEL = 256;

/** A name that a caller or an upstream chose (model, release, reason for an end), fit to be indexed and shown in lists. */
function label(name: string, redaction: Redaction, { plainNames }: Rules): string {
  if (plainNames.get(name)) return name;
  if (name.length > MAX_LABEL) return '[too long]';
  const safe = redaction.clean(name);
  if (safe === name) plainNames.set(name, true);
  return safe.length > MAX_LABEL ? '[too long]' : safe;
}

const MAX_ERROR = 4000;
const LONGEST_WORD = 512;

/**
 * Cut only after redaction, and behind a whole word: half an address is not recognised, and the text may have been cut
 * before it came here.
 */
function shortened(raw: string, redacted: string): string {
  if (raw.length <= MAX_ERROR) return redacted;
  let end = Math.min(MAX_ERROR, redacted.length);
  for (const least = Math.max(0, end - LONGEST_WORD); end > least && !/\s/.test(redacted[end - 1] as string); ) end--;
  return `${redacted.slice(0, end)}…`;
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
  const { metadata } = request; // where Anthropic's clients name the user
  if (isObject(metadata) && typeof metadata.user_id === 'string')
    safe = { ...safe, metadata: { ...metadata, user_id: hashedId(metadata.user_id, secret) } };
  return safe;
}

function withoutContent(assembled: Assembled, place: Place, rules: Rules, reason: string): Turn {
  const { promptTokenIds: _, assigned, ...rest } = assembled;
  const named = (name: string): string => {
    try {
      return label(name, openRedaction({ rules }), rules);
    } catch (error) {
      if (error instanceof Dropped) return '[dropped]';
      throw error;
    }
  };
  return {
    ...rest,
    ...place,
    release: named(assembled.release),
    ...(assigned === undefined ? null : { assigned: named(assigned) }),
    request: {},
    choices: [],
    usage: null,
    model: '',
    error: `The content of this turn was not recorded, because ${reason}.`,
    redactions: {},
  };
}

/** A signal fit to write. Its identity stays the same for the same sender, so repeats still replace each other. */
export function makeSignal(
  signal: Signal,
  secret: string,
  { rules = ordinaryRules, numbersOf }: Pick<MakeContext, 'rules' | 'numbersOf'> = {},
): { signal: Signal; counts: Counts } {
  const id = readableId(signal.target.id, secret);
  const redaction = openRedaction({ rules, numbers: numbersOf?.(id) ?? new Map() });
  const [name, unit, comment, correction] = redaction.spread(
    redaction.clean([signal.name, signal.unit, signal.comment, signal.correction] as const),
  );
  const clean = {
    ...fitSignal(signal),
    identity: hashedId(signal.identity, secret), // it names the user,
    target: { ...signal.target, id },
    name,
    unit,
    user: signal.user === null ? null : hashedId(signal.user, secret),
    comment,
    correction,
  };
  return { signal: clean, counts: redaction.counts };
}

export function makeAttachment(attachment: Attachment, secret: string): Attachment {
  return {
    ...fitAttachment(attachment),
    key: readableId(attachment.key, secret),
    trajectory: attachment.trajectory === null ? null : readableId(attachment.trajectory, secret),
  };
}
