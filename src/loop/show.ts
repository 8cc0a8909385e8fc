/** A turn of the loop as text for a terminal: what its stages did, what it cost and what it gained. Pure. */
import type { UserFigures } from '../deploy/users.ts';
import { duration } from '../train/cost.ts';
import type { Spent } from '../train/stop.ts';
import type { Next } from './next-step.ts';
import { type LoopState, type LoopTurn, type StageName, stageNames } from './turn.ts';

export const percent = (share: number) => `${(share * 100).toFixed(1)}%`;
export const signed = (share: number) => `${share < 0 ? '−' : '+'}${Math.abs(share * 100).toFixed(1)}`;

/** What a stage did, in plain numbers. */
export function stageLines(stage: StageName, state: LoopState): string[] {
  switch (stage) {
    case 'collect':
      return [`${state.collect!.conversations} conversations through the gateway`];
    case 'score': {
      const { trajectories, scored } = state.score!;
      return [`${scored} of ${trajectories} trajectories scored`];
    }
    case 'curate': {
      const { dataset, rows, pairs = 0, funnel } = state.curate!;
      const left = funnel.filter(({ entered, passed }) => entered > passed);
      return [
        dataset === undefined
          ? 'nothing was kept, so there is no dataset'
          : `${rows} examples${pairs === 0 ? '' : ` and ${pairs} pairs`} in dataset ${dataset}`,
        ...(left.length === 0
          ? []
          : [`left out: ${left.map(({ gate, entered, passed }) => `${gate} ${entered - passed}`).join(', ')}`]),
      ];
    }
    case 'train': {
      const { run: id, recipe = '', reasons = [], steps, tokens } = state.train!;
      const of = `${recipe === '' ? '' : `${recipe}, `}${steps} steps, ${Math.round(tokens / 1000)}k tokens`;
      return [`run ${id}, ${of}`, ...reasons];
    }
    case 'evaluate': {
      const { before, after, verdict, p } = state.evaluate!;
      return [`golden ${percent(before)} → ${percent(after)}, p ${p < 0.001 ? '< 0.001' : p.toFixed(3)}: ${verdict}`];
    }
    case 'deploy': {
      const { release, phase, reasons } = state.deploy!;
      return [`${release}: ${phase}`, ...(phase === 'promoted' ? [] : reasons), ...usersLines(state)];
    }
    default:
      return stage satisfies never;
  }
}

/** Golden cases and users side by side: before, beside the candidate, and with it, each with its 95% interval. */
export function usersLines({ evaluate, users }: LoopState): string[] {
  if (!users) return [];
  const golden =
    evaluate === undefined
      ? []
      : [
          [
            'golden cases',
            percent(evaluate.before),
            '',
            `${percent(evaluate.after)} (${evaluate.interval.map(signed).join(' to ')})`,
          ],
        ];
  const cells = ({ before, baseline, after }: UserFigures) => [before, baseline, after].map(userFigure);
  const rows = [
    ...golden,
    ['all users', ...cells(users.all)],
    ...users.slices.map(({ slice, ...figures }) => [`  ${slice}`, ...cells(figures)]),
  ];
  const titles = [users.outcome, 'before', 'beside the candidate', 'with the candidate'];
  const widths = titles.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]!.length)));
  return [titles, ...rows].map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i]!))
      .join('  ')
      .trimEnd(),
  );
}

const userFigure = (figure: UserFigures['before']): string =>
  figure === null
    ? 'nobody'
    : `${percent(figure.success)} (${figure.interval.map((bound) => Math.round(bound * 100)).join('–')}) of ${figure.n}`;

/** What a turn has used up, in one line. */
export function costOf({ seconds, tokens, money }: Spent): string {
  return [
    duration(seconds),
    ...(tokens === 0 ? [] : [tokens < 10_000 ? `${tokens} tokens` : `${Math.round(tokens / 1000)}k tokens`]),
    ...(money === 0 ? [] : [`${money.toFixed(2)} in money`]),
  ].join(', ');
}

/** Points on the golden cases, with their 95% interval. */
export const gainOf = ({ evaluate }: LoopState): string =>
  evaluate === undefined
    ? ''
    : `${signed(evaluate.after - evaluate.before)} (${evaluate.interval.map(signed).join(' to ')})`;

export function turnLines({ number, seed, done, state, endedAt }: LoopTurn): string[] {
  const at = stageNames.find((stage) => !done.includes(stage));
  return [
    `Turn ${number}, seed ${seed}: ${endedAt === null ? `at ${at}` : 'ended'}`,
    ...[state.begun?.reason, state.ended].flatMap((why) => (why === undefined ? [] : [`  ${why}`])),
    ...done.flatMap((stage) =>
      stageLines(stage, state).map((text, i) => `  ${(i === 0 ? stage : '').padEnd(10)}${text}`),
    ),
    ...(state.spent === undefined ? [] : [`  ${'cost'.padEnd(10)}${costOf(state.spent)}`]),
    ...(state.evaluate === undefined ? [] : [`  ${'gain'.padEnd(10)}${gainOf(state)} points`]),
  ];
}

/** What the loop would do now, and why. */
export function nextLines(next: Next): string[] {
  switch (next.kind) {
    case 'wait':
      return [next.until === null ? 'Waits.' : `Waits until ${moment(next.until)}.`, next.reason];
    case 'ask':
      return [`Waits for a person: ${next.question}`, next.reason];
    case 'run':
      return [`Now: ${next.stage}.`, next.reason];
    case 'begin':
      return ['Now: a turn begins.', next.reason];
    case 'end':
      return ['Now: the turn ends.', next.reason];
    default:
      return next satisfies never;
  }
}

const moment = (at: number): string => new Date(at).toISOString().slice(0, 16).replace('T', ' ');

export const historyColumns = [
  { title: 'turn', right: true },
  { title: 'started' },
  { title: 'by' },
  { title: 'before', right: true },
  { title: 'after', right: true },
  { title: 'gain' },
  { title: 'cost' },
  { title: 'ended', shrinkTo: 12 },
];

export function historyRow({ number, startedAt, endedAt, done, state }: LoopTurn): string[] {
  const { evaluate, deploy, ended, begun, spent } = state;
  return [
    String(number),
    moment(startedAt),
    begun?.trigger ?? '',
    evaluate === undefined ? '' : percent(evaluate.before),
    evaluate === undefined ? '' : percent(evaluate.after),
    gainOf(state),
    spent === undefined ? '' : costOf(spent),
    endedAt === null ? `at ${stageNames.find((stage) => !done.includes(stage))}` : (deploy?.phase ?? ended ?? ''),
  ];
}
