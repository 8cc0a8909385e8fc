/**
 * Which tokens end a generation, by what a model's own files say and nothing else: generation_config.json (config.json where
 * it is silent), the tokenizer's eos_token, and the token its chat template closes an assistant's turn with. Models differ in
 * which of the three they bother to get right, so whatever serves a model stops at all of them.
 */
import { EngineError, RequestError } from '../errors.ts';
import type { Chat } from './chat.ts';
import type { Tokenizer } from './tokenizer.ts';

const maxStopTokens = 64;

/** eos_token_id of generation_config.json, or of config.json. */
export function endTokens(
  config: Readonly<Record<string, unknown>>,
  files: ReadonlyMap<string, Uint8Array>,
): readonly number[] {
  const generation = files.get('generation_config.json');
  let eos: unknown = config.eos_token_id;
  if (generation) {
    try {
      eos = (JSON.parse(Buffer.from(generation).toString('utf8')) as { eos_token_id?: unknown })?.eos_token_id ?? eos;
    } catch (cause) {
      throw new EngineError(`generation_config.json is not JSON: ${(cause as Error).message}.`, { cause });
    }
  }
  const ids = Array.isArray(eos) ? eos : [eos];
  return [...new Set(ids.filter((id): id is number => Number.isSafeInteger(id) && id >= 0))].slice(0, maxStopTokens);
}

/** The special token that the template puts behind what an assistant said; undefined if it puts none there. */
export function turnEnd(chat: Chat, tokenizer: Tokenizer): number | undefined {
  const said = (content: string) =>
    chat.encode(
      [
        { role: 'user', content: 'a' },
        { role: 'assistant', content },
      ],
      { addGenerationPrompt: false },
    ).tokens;
  let pair: readonly [number[], number[]];
  try {
    pair = [said('b'), said('c')];
  } catch (error) {
    if (error instanceof RequestError) return undefined; // a template for something else than such a conversation
    throw error;
  }
  // What follows the content is what the two have in common at the end.
  const [one, other] = pair;
  let shared = 0;
  while (shared < one.length && one.at(-1 - shared) === other.at(-1 - shared)) shared++;
  if (shared === one.length) return undefined; // what an assistant says is not shown at all
  const special = new Set([...tokenizer.controls.values()].filter((c) => c.special).map(({ id }) => id));
  return one.slice(one.length - shared).find((id) => special.has(id));
}

/** Everything a served model stops at. */
export function stopTokens(
  config: Readonly<Record<string, unknown>>,
  files: ReadonlyMap<string, Uint8Array>,
  tokenizer: Tokenizer | undefined,
  chat: Chat | undefined,
): readonly number[] {
  const named = tokenizer?.controls.get(tokenizer.named.eos_token ?? '')?.id;
  const turn = tokenizer && chat && turnEnd(chat, tokenizer);
  return [...new Set([...endTokens(config, files), named, turn])].filter((id) => id !== undefined);
}
