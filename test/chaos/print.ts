/** A run's result in words and numbers. */
import type { Wrong } from './account.ts';
import type { Result } from './run.ts';

/** The bars a run is held to; `max_unrecorded_ms` is judged only at the rate it is stated for. */
export const maxUnrecordedMs = 50;
export const statedRate = 300;

export function figures({ account, faults }: Result) {
  return {
    faults,
    acknowledged: account.acknowledged,
    lost_acknowledged: account.lostAcknowledged.length,
    doubled: account.doubled.length,
    uncounted: account.uncounted.length,
    own_5xx: account.own5xx.length,
    max_unrecorded_ms: Math.round(account.maxUnrecordedMs),
  };
}

/** Sentences about what is not as it must be; none: the run is good. */
export function failures(result: Result, rate: number): string[] {
  const { account, findings } = result;
  const some = (all: readonly Wrong[], what: string) => {
    const byPlace = new Map<string, string[]>();
    for (const { id, where } of all) byPlace.set(where, [...(byPlace.get(where) ?? []), id]);
    return [...byPlace].map(
      ([where, ids]) => `${ids.length} ${what} ${where}: ${ids.slice(0, 3).join(', ')}${ids.length > 3 ? ', …' : ''}`,
    );
  };
  return [
    ...some(account.lostAcknowledged, 'acknowledged and lost'),
    ...some(account.doubled, 'doubled'),
    ...some(account.uncounted, 'answered, neither recorded nor counted'),
    ...some(account.own5xx, '5xx of Pawl’s own'),
    ...some(account.unanswered, 'without an answer and without a cause'),
    ...(account.odd.length === 0
      ? []
      : [
          `${account.odd.length} turns took a time that cannot be, e.g. ${account.odd[0]!.where}: ${account.odd[0]!.id}`,
        ]),
    ...(rate >= statedRate && account.maxUnrecordedMs > maxUnrecordedMs
      ? [
          `an answer was unrecorded for ${Math.round(account.maxUnrecordedMs)} ms; at most ${maxUnrecordedMs}: ${account.oldest}`,
        ]
      : []),
    ...findings.map(({ during, what }) => `${what} (during ${during})`),
  ];
}

export function table(result: Result): string {
  const { account, byFault, lives } = result;
  const line = (name: string, ...cells: (string | number)[]) =>
    `  ${name.padEnd(28)}${cells.map((cell) => String(cell).padStart(10)).join('')}`;
  return [
    line('', 'sent', 'good', 'recorded'),
    ...Object.entries(account.byKind).map(([kind, row]) => line(kind, row.sent, row.answered, row.recorded)),
    '',
    line('acknowledged', account.acknowledged),
    line('  of these lost', account.lostAcknowledged.length),
    line('counted as lost', account.counted),
    line('laid to a kill -9', account.killed),
    line('destroyed on purpose', account.destroyed),
    line('uncounted', account.uncounted.length),
    line('doubled', account.doubled.length),
    line('5xx of Pawl’s own', account.own5xx.length),
    line('no answer and no cause', account.unanswered.length),
    line('turns with impossible times', account.odd.length),
    line('oldest answer lost in a kill', `${Math.round(account.maxUnrecordedMs)} ms`),
    '',
    ...Object.entries(lives).map(([end, n]) => line(`lives of the gateway: ${end}`, n)),
    '',
    ...[...byFault].toSorted(([a], [b]) => a.localeCompare(b)).map(([name, n]) => line(name, n)),
  ].join('\n');
}
