/** Dates of birth: a date right behind words that say so, or in Korean before one. Any other date is not personal. */
import type { Span } from '../redact/redactor.ts';

const said =
  /(?:\bd\.?o\.?b\.?|\bborn(?: on)?|(?:date of )?birth(?:day|date)?(?: is| was)?|생년월일은?|생일은?|geboren am|geburtsdatum)[\s:.?]{1,4}(?:it'?s |is |on )?/giu;
const date =
  /(?:\d{4}[-./년]\s?\d{1,2}[-./월]\s?\d{1,2}일?|\d{1,2}[-./]\d{1,2}[-./](?:\d{4}|\d{2})|\d{1,2}(?:st|nd|rd|th)? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6},? \d{4}|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6} \d{1,2}(?:st|nd|rd|th)?,? \d{4})/iuy;

/** 1990년 1월 2일생, 90.01.02생; not 생일, which stands before a date, nor 2월 3일 생산. */
const korean =
  /(?<!\d)(?:19|20)?\d{2}(?:년 ?\d{1,2}월 ?\d{1,2}일 ?|[-./] ?\d{1,2}[-./] ?\d{1,2} ?)(?=생(?![가-힣])|생(?:입니다|이|인|으로|의))/gu;

export function birthsIn(text: string): Span[] {
  const spans: Span[] = [];
  for (const { index: start, 0: value } of text.matchAll(korean))
    spans.push({
      start,
      end: start + value.trimEnd().length,
      kind: 'birth',
      confidence: 0.8,
      isContextual: true,
      isGuess: true,
    });
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
