/**
 * Plays on an Engine, keeping exact tokens. The history of a conversation is append-only: a turn's prompt is the last
 * prompt, the tokens sampled after it, and the tokens of what was said since. Nothing the model wrote is ever decoded and
 * tokenised again, because a model's own tokens need not be the ones a tokenizer would choose for their text, and training
 * on the latter would be off policy without anyone noticing.
 *
 * Which tokens come after a completion is found by rendering a stand-in conversation with and without the new messages
 * (the way TRL does for tool results), so any chat template that only appends will do.
 */
import type { Engine, Sample } from '../engine/engine.ts';
import { EngineError } from '../errors.ts';
import type { AssistantMessage, Message, ToolSpec } from './message.ts';
import type { Conversation, PlayedTurn, Player } from './player.ts';

/** Chat ↔ tokens of one model: its template, its tokenizer, its tool-call syntax. */
export type ChatCodec = {
  /** `generate`: end with the tokens that open an assistant's turn. */
  readonly encode: (
    messages: readonly Message[],
    tools: readonly ToolSpec[],
    options: { readonly generate: boolean },
  ) => readonly number[];
  /** A completion without its stop token. `malformed` says why a tool call in it cannot be read. */
  readonly decode: (tokens: readonly number[]) => { readonly message: AssistantMessage; readonly malformed?: string };
  /** Tokens that end an assistant's turn. */
  readonly stopTokens: readonly number[];
};

export type EnginePlayerOptions = {
  readonly temperature?: number; // 1
  readonly topP?: number; // 1
  readonly topK?: number; // 0
  readonly minP?: number; // 0
};

/**
 * The same engine, remembering whether it died under a call. Episodes that it left unanswered say nothing about the model,
 * and those it still answered are no fair sample: whoever counts them plays again.
 */
export function watchEngine(engine: Pick<Engine, 'sample'>): {
  readonly engine: Pick<Engine, 'sample'>;
  /** Throws what the engine died of, if it did. */
  readonly throwIfDied: () => void;
} {
  let death: EngineError | null = null;
  return {
    engine: {
      sample: async (...call) => {
        try {
          return await engine.sample(...call);
        } catch (error) {
          if (error instanceof EngineError && error.retryable) death ??= error;
          throw error;
        }
      },
    },
    throwIfDied: () => {
      if (death !== null) throw death;
    },
  };
}

export function enginePlayer(
  engine: Pick<Engine, 'sample'>,
  model: string,
  codec: ChatCodec,
  options: EnginePlayerOptions = {},
): Player {
  return async (conversations, signal) => {
    const answers: PlayedTurn[] = new Array(conversations.length);
    // Attempts with equal prompts go as one prompt with n attempts, which the engine computes once. The key holds the
    // group's seed, so that who else is in the batch changes nothing.
    const groups = new Map<string, { prompt: readonly number[]; maxTokens: number; seed: number; members: number[] }>();
    // The attempts at a task come together and mostly begin alike: what was just rendered is not rendered again.
    let opening: { readonly one: Conversation; readonly prompt: readonly number[] } | null = null;
    conversations.forEach((one, i) => {
      const prompt: readonly number[] =
        opening && beginsAlike(opening.one, one) ? opening.prompt : promptTokens(codec, one);
      if (one.previous === null) opening = { one, prompt };
      const maxTokens = Math.min(one.maxTokens, one.context - prompt.length);
      if (maxTokens < 1) {
        const detail = `${prompt.length} tokens of prompt leave no room in a context of ${one.context}`;
        answers[i] = { kind: 'full', detail };
        return;
      }
      const key = `${one.groupSeed}/${maxTokens}/${prompt.join()}`;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, { prompt, maxTokens, seed: one.groupSeed, members: [i] });
      else group.members.push(i);
    });

    // All at once: an engine that batches continuously takes them into one running batch.
    await Promise.all(
      [...groups.values()].map(async ({ prompt, maxTokens, seed, members }) => {
        const params = { ...options, maxTokens, seed, n: members.length, stopTokens: codec.stopTokens };
        try {
          const [result] = await engine.sample(model, [prompt], params, signal === undefined ? {} : { signal });
          members.forEach((i, attempt) => {
            answers[i] = said(codec, prompt, result!.samples[attempt]!, result!.version);
          });
        } catch (error) {
          signal?.throwIfAborted();
          for (const i of members) answers[i] = { kind: 'failed', detail: `engine: ${(error as Error).message}` };
        }
      }),
    );
    return answers;
  };
}

function said(codec: ChatCodec, prompt: readonly number[], sample: Sample, version: number): PlayedTurn {
  const completion = Array.from(sample.tokens);
  const stopped = completion.length > 0 && codec.stopTokens.includes(completion.at(-1)!);
  const { message, malformed } = codec.decode(stopped ? completion.slice(0, -1) : completion);
  return {
    kind: 'said',
    message,
    ...(malformed === undefined ? {} : { malformed }),
    finish: sample.finish,
    tokens: {
      prompt,
      completion,
      logprobs: Array.from(sample.logprobs),
      rawLogprobs: Array.from(sample.rawLogprobs),
      version,
    },
  };
}

const beginsAlike = (one: Conversation, other: Conversation): boolean =>
  other.previous === null &&
  one.tools === other.tools &&
  one.messages.length === other.messages.length &&
  one.messages.every(
    ({ role, content }, i) =>
      (role === 'system' || role === 'user') &&
      role === other.messages[i]!.role &&
      content === other.messages[i]!.content,
  );

/** The exact tokens the model reads next. */
export function promptTokens(codec: ChatCodec, conversation: Conversation): readonly number[] {
  const { previous, messages, tools } = conversation;
  if (previous === null) return codec.encode(messages, tools, { generate: true });
  const { prompt, completion } = previous.tokens;
  const since = messages.slice(previous.messages);
  return [...prompt, ...completion, ...continuation(codec, completion.at(-1), since, tools)];
}

const standIn: readonly Message[] = [
  { role: 'user', content: 'a' },
  { role: 'assistant', content: 'b' },
];

/** Tokens from the end of an assistant's turn to the start of the next. `last` is the turn's last token. */
function continuation(
  codec: ChatCodec,
  last: number | undefined,
  since: readonly Message[],
  tools: readonly ToolSpec[],
): readonly number[] {
  const closed = codec.encode(standIn, tools, { generate: false });
  const whole = codec.encode([...standIn, ...since], tools, { generate: true });
  const end = closed.findLastIndex((token) => codec.stopTokens.includes(token));
  if (end < 0) {
    throw new Error(
      'The chat template does not end an assistant turn with one of the stop tokens; set stopTokens to it.',
    );
  }
  for (let i = 0; i <= end; i++) {
    if (closed[i] !== whole[i]) {
      throw new Error(
        `The chat template changes earlier messages when new ones come (token ${i}); it must only append.`,
      );
    }
  }
  // An engine may or may not hand the stop token back; the history has it exactly once.
  const ended = last !== undefined && codec.stopTokens.includes(last);
  return whole.slice(ended ? end + 1 : end);
}
