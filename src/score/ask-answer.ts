/** What a judge wrote, read strictly: one JSON object of the shape that was asked for, with the word that was asked for. Pure. */
import { z } from 'zod';
import { parseUntrusted } from '../collect/untrusted.ts';
import type { Marks } from './ask-prompt.ts';

export type Read<T> =
  | { readonly kind: 'answer'; readonly value: T }
  /** `obeyed`: it did what the material said; asking again is no use. */
  | { readonly kind: 'none'; readonly why: string; readonly obeyed: boolean };

/** The answer's schema with the word in it, first. */
export const withControl = <Shape extends z.ZodRawShape>(answer: z.ZodObject<Shape>) =>
  z.strictObject({ control: z.string().regex(/^[a-z]{8}$/), verdict: answer });

/** A list of exactly so many, numbered from 1 in order: what is said of the second is not taken for the first. */
export const numbered = <Shape extends z.ZodRawShape>(count: number, shape: Shape) =>
  z
    .array(z.strictObject({ number: z.int(), ...shape }))
    .length(count)
    .refine(
      (list) => list.every((one, i) => (one as { number: number }).number === i + 1),
      'are not numbered in order',
    );

export function readAnswer<Shape extends z.ZodRawShape>(
  { text, isCut }: { readonly text: string; readonly isCut: boolean },
  answer: z.ZodObject<Shape>,
  { control, canary }: Pick<Marks, 'control' | 'canary'>,
): Read<z.output<z.ZodObject<Shape>>> {
  const none = (why: string, obeyed = false) => ({ kind: 'none', why, obeyed }) as const;
  const said = withoutThoughts(text);
  if (said.includes(canary)) return none('the judge took an instruction from the conversation', true);
  if (isCut) return none('the judge’s answer was cut off; raise judge.maxTokens');
  const value = parseUntrusted(withoutFence(said));
  if (value === undefined) return none(`the judge’s answer is no JSON: ${quoted(said)}`);
  const parsed = withControl(answer).safeParse(value);
  if (!parsed.success) {
    const { path, message } = parsed.error.issues[0]!;
    return none(`the judge’s answer is no verdict: ${[...path.map(String), message].join(' ')}`);
  }
  const { control: word, verdict } = parsed.data as { control: string; verdict: z.output<z.ZodObject<Shape>> };
  if (word !== control) return none('the judge did not give back the control word');
  return { kind: 'answer', value: verdict };
}

/** Thinking models whose server does not take their thoughts apart write them first. What is thought is no verdict. */
function withoutThoughts(text: string): string {
  const end = text.indexOf('</think>');
  return (end < 0 ? text : text.slice(end + '</think>'.length)).trim();
}

/** A fence around all of it; one with words around it is prose. */
const withoutFence = (text: string): string => /^```(?:json)?\s*\n([\s\S]*)\n```$/.exec(text)?.[1] ?? text;

const quoted = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
