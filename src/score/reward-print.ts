/** What `pawl reward` prints. */
import { counted, type Terminal, table } from '../terminal.ts';
import { type Agreement, fewestLabels, trustBar } from './agreement.ts';
import type { RewardCheck } from './check-reward.ts';
import type { Comparison } from './compare-rewards.ts';
import { type Figure, fewestSamples, type Proposal } from './propose.ts';
import type { WhatIf } from './what-if.ts';

const number = (value: number | null, digits = 2): string => (value === null ? '–' : value.toFixed(digits));
function signed(value: number | null): string {
  if (value === null) return '–';
  const digits = value.toFixed(3);
  if (Number(digits) === 0) return '0.000';
  return value > 0 ? `+${digits}` : digits;
}
const range = ({ low, high }: { low: number | null; high: number | null }): string =>
  low === null || high === null ? '' : `${number(low)} to ${number(high)}`;
const percent = (share: number): string => `${Math.round(share * 100)}%`;

const stateOf = ({ state, labels }: Agreement): string => {
  if (state === 'unmeasured') return labels < fewestLabels ? 'too few labels' : 'all alike';
  return state === 'ok' ? 'agrees' : 'ALARM';
};

export function trustLines(check: RewardCheck, terminal: Terminal): string[] {
  const { paint } = terminal;
  const all: readonly Agreement[] = [check.total, ...check.parts];
  const columns = [
    ...[{ title: 'PART' }, { title: 'LABELS', right: true }, { title: 'SPEARMAN', right: true }],
    ...[{ title: '95%' }, { title: '' }],
  ];
  const rows = all.map((one) => [
    ...[one.part ?? 'total', String(one.labels), number(one.spearman), range(one), stateOf(one)],
  ]);
  const dress = (cell: string, row: number, column: number) =>
    column === 4 && all[row]!.state === 'alarm' ? paint.red(cell) : cell;
  const worst =
    check.total.state === 'alarm'
      ? [
          `The reward orders conversations differently from people (bar ${trustBar}): \`pawl reward fit\` proposes weights.`,
        ]
      : [];
  const none =
    check.total.labels < fewestLabels
      ? [
          `Fewer than ${fewestLabels} labelled conversations have a score: pawl labels import FILE, then pawl score run.`,
        ]
      : [];
  const weeks = check.drift.map(({ part, means, measured, change, low, high, state }) => [
    ...[part ?? 'total', means.map((mean) => number(mean)).join(' ← '), percent(measured[0] ?? 0)],
    ...[signed(change), low === null || high === null ? '' : `${signed(low)} to ${signed(high)}`],
    state === 'moved' ? 'moved' : state === 'steady' ? 'steady' : 'too few scores',
  ]);
  const weekColumns = [
    ...[{ title: 'PART' }, { title: 'MEAN BY WEEK, LATEST FIRST', shrinkTo: 12 }, { title: 'MEASURED', right: true }],
    ...[{ title: 'CHANGE', right: true }, { title: '95%' }, { title: '' }],
  ];
  return [
    paint.bold(`Reward ${check.spec} of ${check.agent} against people`),
    ...table(columns, rows, terminal, dress),
    ...none,
    ...worst,
    ...(weeks.length === 0 ? [] : ['', paint.bold('From week to week'), ...table(weekColumns, weeks, terminal)]),
  ];
}

const figure = (one: Figure): string => `${number(one.value, 3)}${one.low === null ? '' : ` (${range(one)})`}`;

const verdicts: Readonly<Record<Proposal['verdict'], string>> = {
  better: 'The proposed weights are better on conversations they were not fitted to.',
  'not shown': 'That the proposed weights are better is not shown: the interval of the difference in FIGURE reaches 0.',
  worse: 'The proposed weights are worse on conversations they were not fitted to: keep yours.',
  none: 'No part of the reward rises with the target: no weighting of these parts can follow it.',
  'too few': `Fewer than ${fewestSamples} conversations, of five tasks at least, have both: too few to fit weights.`,
};

export function proposalLines(proposal: Proposal, outcome: string | undefined, terminal: Terminal): string[] {
  const target = outcome === undefined ? 'labels' : `outcome ${outcome}`;
  const columns = [{ title: 'PART' }, { title: 'WEIGHT NOW', right: true }, { title: 'PROPOSED', right: true }];
  const rows = proposal.parts.map(({ name, current, proposed, kept }) => [
    ...[name, number(current, 3)],
    proposed === 0 ? 'leave it out' : `${number(proposed, 3)}${kept ? ' kept' : ''}`,
  ]);
  const told = (name: string, one: Proposal['spearman']) =>
    `${name}: now ${figure(one.current)}, proposed, held out, ${figure(one.proposed)}, difference ${signed(one.difference.value)}${
      one.difference.low === null ? '' : ` (${signed(one.difference.low)} to ${signed(one.difference.high)})`
    }`;
  const isFitted = proposal.parts.some(({ proposed }) => proposed !== null);
  return [
    terminal.paint.bold(
      `${counted(proposal.samples, 'conversation')} of ${counted(proposal.groups, 'task')}, fitted to ${target}`,
    ),
    ...table(columns, rows, terminal),
    ...(proposal.leftOut.length === 0
      ? []
      : [`Left out of all figures, since it reads the target: ${proposal.leftOut.join(', ')}.`]),
    ...(isFitted ? [told('Spearman', proposal.spearman), ...(proposal.auc ? [told('AUC', proposal.auc)] : [])] : []),
    ...(isFitted
      ? [
          `Of these conversations ${proposal.gained} would rise above curate.minScore and ${proposal.lost} fall below it.`,
        ]
      : []),
    verdicts[proposal.verdict].replace('FIGURE', proposal.auc === null ? 'Spearman' : 'AUC'),
  ];
}

export function comparisonLines(found: Comparison, a: string, b: string, terminal: Terminal): string[] {
  if (found.conversations === 0) return [`No conversation of that time has a score under both ${a} and ${b}.`];
  const { labels } = found;
  const columns = [
    ...[
      { title: 'CONVERSATION', shrinkTo: 12 },
      { title: 'A', right: true },
      { title: 'B', right: true },
    ],
    ...[
      { title: 'PLACE', right: true },
      { title: 'BECAUSE', shrinkTo: 8 },
    ],
  ];
  const place = (at: number) => (Number.isInteger(at) ? String(at) : at.toFixed(1));
  const rows = found.swaps.map(({ trajectory, a: before, b: after, placeA, placeB, because }) => [
    ...[trajectory, number(before, 3), number(after, 3), `${place(placeA)} → ${place(placeB)}`, because ?? '–'],
  ]);
  return [
    terminal.paint.bold(`${counted(found.conversations, 'conversation')} under A ${a} and B ${b}`),
    `Mean ${number(found.meanA, 3)} and ${number(found.meanB, 3)}; they order alike with Spearman ${number(found.spearman, 3)}; ${
      found.reordered === null
        ? 'no pair is ordered by both'
        : `${(found.reordered * 100).toFixed(1)}% of pairs change places`
    }.`,
    `Under B ${found.gained} rise above curate.minScore and ${found.lost} fall below it.`,
    labels.count < fewestLabels
      ? `${labels.count} of them have a label: too few to say which of the two people agree with.`
      : `With ${labels.count} labels A agrees ${number(labels.a)} and B ${number(labels.b)}; B less A ${
          labels.low === null ? '–' : `${signed(labels.low)} to ${signed(labels.high)}`
        } (95%).`,
    ...(rows.length === 0 ? ['Nobody changes places.'] : table(columns, rows, terminal)),
  ];
}

/** A row per twentieth would be a page; four make a fifth. */
const joined = (bins: readonly number[]): number[] =>
  Array.from({ length: 5 }, (_, i) => bins.slice(4 * i, 4 * i + 4).reduce((sum, one) => sum + one, 0));

export function whatIfLines(found: WhatIf, terminal: Terminal): string[] {
  const { agent, spec, sample, minScore, current, proposed, kept } = found;
  if (sample === 0) return [`${agent} has no score under reward ${spec} in that time. \`pawl score run\` gives some.`];
  const [now, then] = [joined(current.bins), joined(proposed.bins)];
  const rows = [
    ['mean', number(current.mean, 3), number(proposed.mean, 3)],
    [`good enough (${minScore} or more)`, String(kept.current), String(kept.proposed)],
    ...now.map((count, i) => [`${number(i / 5, 1)} to ${number((i + 1) / 5, 1)}`, String(count), String(then[i])]),
  ];
  const columns = [{ title: '' }, { title: 'AS SET', right: true }, { title: 'SO WEIGHTED', right: true }];
  return [
    terminal.paint.bold(`The newest ${sample} scores of ${agent} under reward ${spec}`),
    ...table(columns, rows, terminal),
    `${kept.gained} would become good enough, ${kept.lost} would cease to be.`,
  ];
}
