/** Everything a case expects, held against one answer. All of it must hold. */
import { z } from 'zod';
import { contains } from './graders/contains.ts';
import { equals } from './graders/equals.ts';
import type { Grader, Played } from './graders/grader.ts';
import { matches } from './graders/matches.ts';
import { schema } from './graders/schema.ts';
import { score } from './graders/score.ts';
import { tool } from './graders/tool.ts';

/** By the name that a case calls them by. */
const graders = { equals, contains, matches, schema, tool, score } as const;
const names = Object.keys(graders) as (keyof typeof graders)[];

export const expectSchema = z
  .strictObject({
    equals: equals.expected.optional(),
    contains: contains.expected.optional(),
    matches: matches.expected.optional(),
    schema: schema.expected.optional(),
    tool: tool.expected.optional(),
    score: score.expected.optional(),
  } satisfies Record<keyof typeof graders, z.ZodType>)
  .refine((expect) => Object.keys(expect).length > 0, `expects nothing; give at least one of ${names.join(', ')}`);
export type Expect = z.infer<typeof expectSchema>;

/** Which expectations did not hold and why; empty when all did. Throws when one could not be told. */
export async function grade(expect: Expect, played: Played): Promise<string[]> {
  const reasons: string[] = [];
  for (const name of names) {
    if (expect[name] === undefined) continue;
    const why = await (graders[name] as Grader<unknown>).grade(expect[name], played);
    if (why !== null) reasons.push(`${name}: ${why}`);
  }
  return reasons;
}
