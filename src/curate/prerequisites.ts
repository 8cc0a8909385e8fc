/**
 * What must hold before a dataset is trained on: each condition with its number, its threshold and what to do about it. Pure.
 * Facts come from check.ts. A condition that does not hold refuses training; whoever goes on without it names it (`--without`,
 * `train.without`), and the audit log has the name.
 */
import { z } from 'zod';
import type { Planted } from './planted.ts';
import type { Shift } from './shifts.ts';

export const conditionNames = ['points', 'clean', 'private', 'types', 'balance', 'canaries', 'shifts'] as const;
export type ConditionName = (typeof conditionNames)[number];

export const needs = z.strictObject({
  points: z
    .int()
    .min(1)
    .max(100_000_000)
    .default(5000)
    .meta({ unit: 'points', description: 'Conversations and pairs that a dataset must hold.' }),
  clean: z.number().gt(0).max(1).default(0.95).describe('Share of them in which a second look finds nothing.'),
  kAnonymity: z
    .int()
    .min(1)
    .max(1000)
    .default(5)
    .meta({ unit: 'people', description: 'How many people must have asked the like of every question.' }),
  types: z.int().min(1).max(1000).default(5).meta({ unit: 'task types', description: 'How many there must be.' }),
  largestType: z.number().gt(0).max(1).default(0.5).describe('Share that the largest task type may have.'),
});
export type Needs = Readonly<z.output<typeof needs>>;

export type DatasetFacts = {
  readonly dataset: string;
  readonly on: 'production' | 'simulation';
  readonly rows: number;
  readonly pairs: number;
  /** Rows and pairs in which today's redaction, or the list of what is confidential, finds something. */
  readonly unclean: number;
  /** Of these, personal data or secrets. */
  readonly personal: number;
  /** Rows and pairs whose people no longer agree, or are no longer known. */
  readonly lapsed: number;
  readonly kAnonymity: number;
  readonly taskTypes: Readonly<Record<string, number>>;
  readonly planted: Planted;
  /** That nobody has released. */
  readonly shifts: readonly Shift[];
};

export type Condition = {
  readonly name: ConditionName;
  readonly met: boolean;
  readonly found: string;
  readonly needed: string;
  /** What to do; '' where it holds. */
  readonly way: string;
};

const percent = (share: number): string => `${Math.round(share * 1000) / 10}%`;
const count = (n: number): string => n.toLocaleString('en-US');

export function conditionsOf(facts: DatasetFacts, need: Needs): Condition[] {
  const points = facts.rows + facts.pairs;
  const clean = points === 0 ? 0 : 1 - facts.unclean / points;
  const types = Object.entries(facts.taskTypes).filter(([type]) => type !== 'unknown');
  const largest = facts.rows === 0 ? 0 : Math.max(0, ...Object.values(facts.taskTypes)) / facts.rows;
  const k = facts.on === 'simulation' ? need.kAnonymity : facts.kAnonymity;
  const { canaries, repeated } = facts.planted;
  const condition = (name: ConditionName, met: boolean, found: string, needed: string, way: string): Condition => ({
    ...{ name, met, found, needed },
    way: met ? '' : way,
  });
  return [
    condition(
      'points',
      points >= need.points,
      `${count(points)} points`,
      `${count(need.points)} or more`,
      'Collect more, or curate a longer window: pawl curate run --since 90d.',
    ),
    condition(
      'clean',
      clean >= need.clean,
      `${percent(clean)} clean`,
      `${percent(need.clean)} or more`,
      'Curate again: what redaction and your lists find today stays out.',
    ),
    condition(
      'private',
      facts.personal === 0 && facts.lapsed === 0 && k >= need.kAnonymity,
      `${count(facts.personal)} with personal data, ${count(facts.lapsed)} without consent today, ${k === 1 ? 'no crowd' : `crowds of ${k}`} behind questions`,
      `none, none, ${need.kAnonymity} people`,
      k < need.kAnonymity
        ? 'Curate with curate.kAnonymity at that number.'
        : 'Curate again: what is not agreed to any more stays out.',
    ),
    condition(
      'types',
      types.length >= need.types,
      `${types.length} task types`,
      `${need.types} or more`,
      'Let the agent say what each request is about: metadata.task_type.',
    ),
    condition(
      'balance',
      largest <= need.largestType,
      `${percent(largest)} in the largest task type`,
      `${percent(need.largestType)} or less`,
      'Set curate.maxTypeShare, or collect more of the others.',
    ),
    condition(
      'canaries',
      canaries.length + repeated.length === 0,
      canaries.length + repeated.length === 0
        ? 'nothing planted'
        : [
            ...canaries.map(
              ({ phrase, found, first }) => `phrase ${phrase + 1} of the list ${found} times, first in ${first}`,
            ),
            ...repeated
              .slice(0, 5)
              .map(
                ({ owner, conversations, first }) =>
                  `a passage that only ${owner} brings, in ${conversations} conversations, first in ${first}`,
              ),
          ].join('; '),
      'nothing',
      'Look at it (pawl trajectories show ID); erase the user or revoke the key, and curate again.',
    ),
    condition(
      'shifts',
      facts.shifts.length === 0,
      facts.shifts.length === 0
        ? 'no key’s scores jumped'
        : facts.shifts
            .map(
              ({ key, taskType, before, now }) =>
                `${taskType} with key ${key}: ${before.toFixed(2)} before, ${now.toFixed(2)} now; held`,
            )
            .join('; '),
      'none',
      'Look at them (pawl trajectories list), then pawl curate release KEY TYPE.',
    ),
  ];
}

/** Why this is not trained on; null: it may be. */
export function unready(dataset: string, conditions: readonly Condition[], without: readonly string[]): string | null {
  const open = conditions.filter(({ name, met }) => !met && !without.includes(name));
  if (open.length === 0) return null;
  return [
    `Dataset ${dataset} is not ready to train on:`,
    ...open.map(({ name, found, needed, way }) => `  ${name}: ${found}, needed: ${needed}. ${way}`),
    `To go on without ${open.length === 1 ? 'it' : 'them'}: --without ${open.map(({ name }) => name).join(',')}, or train.without in the agent’s file; the audit log will have it.`,
  ].join('\n');
}
