/** Asks a Presidio analyzer (POST /analyze), a text at a time and a few at once. What it does not answer in time is an error. */
import { z } from 'zod';
import { upTo } from '../../up-to.ts';
import type { Span } from '../redact/redactor.ts';
import { parseUntrusted } from '../untrusted.ts';
import { entityKind, type FindEntities } from './finder.ts';

const TIMEOUT_MS = 30_000;
const AT_ONCE = 4;
const MOST_BYTES = 4 * 1024 * 1024;
const answer = z
  .array(z.object({ entity_type: z.string(), start: z.int().min(0), end: z.int().min(0), score: z.number() }))
  .max(100_000);

export type PresidioSettings = { readonly url: string; readonly language: string; readonly minScore: number };

export function openPresidioFinder({ url, language, minScore }: PresidioSettings): FindEntities {
  const ask = async (text: string): Promise<Span[]> => {
    if (text.trim().length < 2) return [];
    const found = answer.safeParse(parseUntrusted(await send(url, { text, language, score_threshold: minScore })));
    if (!found.success) throw new Error(`The Presidio analyzer at ${url} answered with what is no list of entities.`);
    const at = unitsOf(text);
    return found.data.flatMap(({ entity_type, start, end, score }): Span[] => {
      const kind = entityKind(entity_type);
      if (kind === null || score < minScore || end <= start) return [];
      return [{ start: at(start), end: at(end), kind, confidence: score, isContextual: true, isGuess: true }];
    });
  };
  return async (texts) => {
    const found: Span[][] = [];
    for (let i = 0; i < texts.length; i += AT_ONCE)
      found.push(...(await Promise.all(texts.slice(i, i + AT_ONCE).map(ask))));
    return found;
  };
}

async function send(
  url: string,
  asked: { readonly language: string; readonly [field: string]: unknown },
): Promise<string> {
  const late = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await fetch(`${url.replace(/\/+$/, '')}/analyze`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(asked),
      signal: late,
    });
    if (!response.ok) {
      await response.body?.cancel();
      throw new Error(`answered ${response.status}; has it a model for the language ${asked.language}?`);
    }
    const sent = await upTo(MOST_BYTES, response.body);
    if (sent === null) throw new Error(`answered more than ${MOST_BYTES} bytes`);
    return sent.toString('utf8');
  } catch (error) {
    const { message, cause } = error as Error;
    const why = late.aborted
      ? `did not answer within ${TIMEOUT_MS / 1000} s`
      : cause instanceof Error
        ? `cannot be reached: ${cause.message}`
        : message;
    throw new Error(`The Presidio analyzer at ${url} (pii.model) ${why}`, { cause: error });
  }
}

/** Python counts characters, we count UTF-16 units. */
function unitsOf(text: string): (characters: number) => number {
  if (!/[\ud800-\udbff]/.test(text)) return (characters) => Math.min(characters, text.length);
  const units: number[] = [0];
  for (const one of text) units.push(units[units.length - 1]! + one.length);
  return (characters) => units[Math.min(characters, units.length - 1)]!;
}
