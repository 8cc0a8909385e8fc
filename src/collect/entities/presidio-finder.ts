/** Asks a Presidio analyzer (POST /analyze), a text at a time and a few at once. What it does not answer in time is an error. */
import { z } from 'zod';
import type { Span } from '../redact/redactor.ts';
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
    const response = await fetch(`${url.replace(/\/+$/, '')}/analyze`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text, language, score_threshold: minScore }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (!response.ok) throw new Error(`The Presidio analyzer at ${url} answered ${response.status}.`);
    const body = await response.text();
    if (body.length > MOST_BYTES) throw new Error(`The Presidio analyzer at ${url} answered more than 4 MB.`);
    const at = unitsOf(text);
    return answer.parse(JSON.parse(body)).flatMap(({ entity_type, start, end, score }): Span[] => {
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

/** Python counts characters, we count UTF-16 units. */
function unitsOf(text: string): (characters: number) => number {
  if (!/[\ud800-\udbff]/.test(text)) return (characters) => Math.min(characters, text.length);
  const units: number[] = [0];
  for (const one of text) units.push(units[units.length - 1]! + one.length);
  return (characters) => units[Math.min(characters, units.length - 1)]!;
}
