/**
 * What any door hands to the recorder: an exchange whose bytes nobody has read (the gateway), or a call that the door has read
 * itself (an import, a trace). Both become a turn in the same way from there on: fitted, threaded, bounded, redacted.
 */
import { type DoorField, doorFields } from '../store/turn-columns.ts';
import type { Assembled } from './assemble.ts';
import type { DoorFacts, Exchange } from './exchange.ts';
import type { Choice, Turn } from './turn.ts';
import { isObject, type JsonObject, parseUntrusted } from './untrusted.ts';

/** What was asked and answered, in the wire format that `endpoint` names. */
export type Understood = Pick<
  Turn,
  'model' | 'request' | 'choices' | 'promptTokenIds' | 'promptTokens' | 'completionTokens' | 'reasoningTokens' | 'usage'
>;

export type TurnInput = Exchange | (DoorFacts & { readonly content: Understood });

/** The same as bytes, which is what crosses to the recorder's thread and is counted on the way. */
export function exchangeOf(input: TurnInput): Exchange {
  if (!('content' in input)) return input;
  const { content, ...facts } = input;
  const requestBody = Buffer.from(JSON.stringify(content));
  const wire = { requestBody, responseChunks: [], responseTruncated: false, isUnderstood: true } as const;
  return { ...facts, requestedModel: content.model, ...wire };
}

const count = (value: unknown): number | null => (typeof value === 'number' ? value : null);
const numbers = (value: unknown): number[] | undefined =>
  Array.isArray(value) && value.every((one) => typeof one === 'number') ? value : undefined;

/** What a door said it had read. It came from outside all the same: whatever has another shape is left out. */
export function readUnderstood(exchange: Exchange): Assembled {
  const facts = doorFields.filter((field) => field !== 'trajectory' && exchange[field] !== undefined);
  const known = Object.fromEntries(facts.map((field) => [field, exchange[field]])) as Pick<
    Assembled,
    keyof Assembled & DoorField
  >;
  const read = parseUntrusted(new TextDecoder().decode(exchange.requestBody));
  const content = isObject(read) ? read : {};
  const promptTokenIds = numbers(content.promptTokenIds);
  return {
    ...known,
    model: exchange.requestedModel,
    request: isObject(content.request) ? content.request : {},
    choices: Array.isArray(content.choices) ? content.choices.filter(isObject).map(choiceOf) : [],
    ...(promptTokenIds === undefined ? {} : { promptTokenIds }),
    promptTokens: count(content.promptTokens),
    completionTokens: count(content.completionTokens),
    reasoningTokens: count(content.reasoningTokens),
    usage: isObject(content.usage) ? content.usage : null,
  };
}

function choiceOf(choice: JsonObject, position: number): Choice {
  const tokenIds = numbers(choice.tokenIds);
  const logprobs = numbers(choice.logprobs);
  return {
    index: Number.isSafeInteger(choice.index) ? (choice.index as number) : position,
    message: isObject(choice.message) ? choice.message : {},
    finishReason: typeof choice.finishReason === 'string' ? choice.finishReason : null,
    ...(tokenIds === undefined ? {} : { tokenIds }),
    ...(logprobs === undefined ? {} : { logprobs }),
  };
}
