/**
 * A recognizer of the settings: a pattern, words that make it surer, and a checksum. The schema has seen to it that the pattern's
 * work per place is bounded (bounded-pattern.ts).
 */
import type { Redactor, Span } from './redactor.ts';
import type { RecognizerSettings } from './settings.ts';
import { validators } from './validators.ts';

const NEAR = 60;
const RAISE = 0.35;
const ENOUGH = 0.5;

export function recognizer({ kind, pattern, ignoreCase, context, score, validator }: RecognizerSettings): Redactor {
  const search = new RegExp(pattern, ignoreCase ? 'giu' : 'gu');
  const words = context.map((word) => word.toLowerCase());
  const check = validator === undefined ? null : validators[validator];
  return {
    name: kind,
    find(text) {
      const spans: Span[] = [];
      search.lastIndex = 0;
      for (let hit = search.exec(text); hit !== null; hit = search.exec(text)) {
        const [value] = hit;
        if (value === '') search.lastIndex += 1;
        else if (check === null || check(value)) {
          const end = hit.index + value.length;
          const isNear = words.length > 0 && near(text, hit.index, end);
          const confidence = Math.min(1, score + (isNear ? RAISE : 0));
          if (confidence >= ENOUGH)
            spans.push({ start: hit.index, end, kind, confidence, isContextual: score < ENOUGH });
        }
      }
      return spans;
    },
  };

  function near(text: string, start: number, end: number): boolean {
    const around = text.slice(Math.max(0, start - NEAR), end + NEAR).toLowerCase();
    return words.some((word) => around.includes(word));
  }
}
