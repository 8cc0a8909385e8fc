/**
 * Criteria that people wrote, each ruled by a regular expression or judged, all judged ones in one call. What is met adds its
 * weight, a pitfall that is there takes its weight away:
 *
 *     value = (Σ weights met − Σ weights of pitfalls that are there) / Σ weights that can be met,   clamped to 0–1
 *
 * and 1 − share of the pitfalls' weights, where there are only pitfalls. So nothing is earned by saying nothing. (Negative points
 * over the positive sum are HealthBench's.) Every criterion's verdict is kept with its reason. The criteria are part of the
 * version: a changed file is another reward.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import type { Turn } from '../collect/turn.ts';
import { ConfigError } from '../errors.ts';
import { askingScorer, type JudgeChoice, noJudge, type Verdict } from './ask.ts';
import { numbered } from './ask-answer.ts';
import { type Criterion, checkCriteria, levels, parseRubric } from './rubric-file.ts';
import { type Scorer, unmeasured } from './scorer.ts';
import { withinTime } from './time-limit.ts';
import { messagesOf, transcriptOf, withoutAnswer } from './transcript.ts';

type Details = NonNullable<Verdict['details']>;
type Held = Criterion & { readonly there: boolean; readonly reason: string };

const ruleMs = 500;

const task = (criteria: readonly Criterion[]): string =>
  `Below is a conversation between a user and an assistant, message by message. For each of these statements about what the assistant said and did, in the order of the numbers, say whether it is so. Give a reason of a few words first, without personal data.\n\n${criteria
    .map(({ text }, i) => `${i + 1}. ${text}`)
    .join('\n')}`;

const weightOf = ({ level, weight = levels[level] }: Criterion): number => weight;
const sum = (criteria: readonly Criterion[]): number => criteria.reduce((total, one) => total + weightOf(one), 0);

export function rubricValue(held: readonly Held[]): number {
  const wanted = held.filter(({ level }) => level !== 'pitfall');
  const pitfalls = held.filter(({ level }) => level === 'pitfall');
  const earned = sum(wanted.filter(({ there }) => there));
  const lost = sum(pitfalls.filter(({ there }) => there));
  const value = wanted.length === 0 ? 1 - lost / sum(pitfalls) : (earned - lost) / sum(wanted);
  return Math.min(1, Math.max(0, value));
}

const isKept = ({ level, there }: Held): boolean => (level === 'pitfall' ? !there : there);

function verdictOf(held: readonly Held[]): Verdict {
  const broken = held.filter((one) => !isKept(one));
  const why = broken.map(({ text, reason }) => `${text} (${reason})`).join('; ');
  return {
    value: rubricValue(held),
    reason: `${held.length - broken.length} of ${held.length} criteria kept${why === '' ? '' : `; not: ${why}`}`,
    details: held.map((one): Details[number] => ({
      name: `${one.level}: ${one.text}`,
      value: isKept(one) ? 1 : 0,
      reason: one.reason,
    })),
  };
}

/** What the assistant said, all of it. */
const words = (turns: readonly Turn[]): string =>
  messagesOf(turns)
    .filter(({ role }) => role === 'assistant')
    .map(({ text }) => text)
    .join('\n');

function follow(criterion: Criterion, said: string): Held {
  const { rule } = criterion;
  const there = withinTime(ruleMs, () => new RegExp(rule!.source, rule!.flags.replace(/[gy]/g, '')).test(said));
  return { ...criterion, there, reason: there ? `matches ${rule}` : `nothing matches ${rule}` };
}

export type RubricOptions = JudgeChoice;

/** Criteria from a Markdown file, found from the folder of the settings, or written here. */
export function rubric(given: string | readonly Criterion[], options: RubricOptions = {}): Scorer {
  if (typeof given === 'string') return fromFile(given, options);
  return ofCriteria('rubric', checkCriteria(given, 'A rubric'), options);
}

/** Until it is known from where to read it, it scores nothing. */
function fromFile(path: string, options: RubricOptions): Scorer {
  return {
    name: `rubric ${path}`,
    version: JSON.stringify(['rubric', 1, path]),
    inProcess: true,
    score: () => {
      throw new Error(`${path} was not read; a rubric’s file is read with the settings that name the agent.`);
    },
    from(folder) {
      const file = resolve(folder, path);
      let text: string;
      try {
        text = readFileSync(file, 'utf8');
      } catch (error) {
        throw new ConfigError(`The rubric ${file} cannot be read: ${(error as Error).message}`);
      }
      return ofCriteria(`rubric ${path}`, parseRubric(text, file), options);
    },
  };
}

function ofCriteria(name: string, criteria: readonly Criterion[], using: JudgeChoice): Scorer {
  const ruled = criteria.filter(({ rule }) => rule !== undefined);
  const judged = criteria.filter(({ rule }) => rule === undefined);
  const answer = z.strictObject({ statements: numbered(judged.length, { reason: z.string(), so: z.boolean() }) });
  const said = criteria.map(({ level, text, weight, rule }) => [
    level,
    text,
    weight ?? null,
    rule ? String(rule) : null,
  ]);
  const score: Scorer['score'] = async ({ turns }, { ask }) => {
    const without = withoutAnswer(turns);
    if (without !== null) return without;
    const byRule = () => ruled.map((criterion) => follow(criterion, words(turns)));
    if (judged.length === 0) return { ...verdictOf(byRule()), turns: new Map() };
    if (ask === undefined) return unmeasured(noJudge);
    const material = transcriptOf(turns);
    const content = [JSON.stringify(said), ...material.flatMap((block) => [block.name, block.text])];
    const { value, reason } = await ask({ prompt: 'rubric 1', content, calls: 1, using }, async (call) => {
      const { statements } = await call({ task: task(judged), material, answer });
      const held = judged.map((criterion, i): Held => {
        const { so, reason } = statements[i]!;
        return { ...criterion, there: so, reason };
      });
      return verdictOf([...held, ...byRule()]);
    });
    return { value, reason, turns: new Map() };
  };
  return askingScorer({
    name,
    version: JSON.stringify(['rubric', 1, said, using]),
    score,
  });
}
