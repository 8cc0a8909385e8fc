/** Dates of birth: a date right behind words that say so. Any other date is not personal. */
import type { Span } from '../redact/redactor.ts';

const said =
  /(?:\bd\.?o\.?b\.?|\bborn(?: on)?|(?:date of )?birth(?:day|date)?(?: is| was)?|생년월일은?|생일은?|geboren am|geburtsdatum)[\s:.?]{1,4}(?:it'?s |is |on )?/giu;
const date =
  /(?:\d{4}[-./년]\s?\d{1,2}[-./월]\s?\d{1,2}일?|\d{1,2}[-./]\d{1,2}[-./](?:\d{4}|\d{2})|\d{1,2}(?:st|nd|rd|th)? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6},? \d{4}|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6} \d{1,2}(?:st|nd|rd|th)?,? \d{4})/iuy;

export function birthsIn(text: string): Span[] {
  const spans: Span[] = [];
  for (const found of text.matchAll(said)) {
    const start = found.index + found[0].length;
    date.lastIndex = start;
    const value = date.exec(text);
    if (value !== null)
      spans.push({
        start,
        end: start + value[0].length,
        kind: 'birth',
        confidence: 0.8,
        isContextual: true,
        isGuess: true,
      });
  }
  return spans;
}
