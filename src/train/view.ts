/** A run as text for a terminal: progress, what is left, and the curves. Pure: the same run and width, the same lines. */
import { plain, type Terminal, wrap } from '../terminal.ts';
import { duration } from './cost.ts';
import type { KeptEpisode } from './kept-episodes.ts';
import type { MetricName, StepMetrics } from './metrics.ts';
import type { RunRecord } from './run-record.ts';
import { type StepTime, type TimePart, timeOf, timeParts } from './step-clock.ts';

const blocks = '▁▂▃▄▅▆▇█';

/** A curve in one line: the values averaged into `width` columns, scaled between their lowest and highest. */
export function sparkline(values: readonly number[], width: number): string {
  const finite = values.filter(Number.isFinite);
  if (finite.length === 0) return '';
  const columns = Math.min(width, finite.length);
  const means = Array.from({ length: columns }, (_, c) => {
    const part = finite.slice(
      Math.floor((c * finite.length) / columns),
      Math.floor(((c + 1) * finite.length) / columns),
    );
    return part.reduce((a, b) => a + b, 0) / part.length;
  });
  const low = Math.min(...means);
  const span = Math.max(...means) - low;
  return means.map((m) => blocks[span === 0 ? 0 : Math.min(7, Math.floor(((m - low) / span) * 8))]).join('');
}

export function progressBar(share: number, width: number): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * width);
  return '█'.repeat(full) + '░'.repeat(width - full);
}

/** Seconds left at the pace of the last steps; null before there is a pace. */
export function secondsLeft(run: Pick<RunRecord, 'steps' | 'step'>, metrics: readonly StepMetrics[]): number | null {
  const recent = metrics.slice(-20).flatMap((m) => m.values.seconds ?? []);
  if (recent.length === 0) return null;
  return (recent.reduce((a, b) => a + b, 0) / recent.length) * (run.steps - run.step);
}

const shown: readonly (readonly [MetricName, string])[] = [
  ['reward_mean', 'reward'],
  ['reward_std', 'reward std'],
  ['success', 'success'],
  ['validation_success', 'validation'],
  ['loss', 'loss'],
  ['accuracy', 'accuracy'],
  ['kl', 'KL'],
  ['entropy', 'entropy'],
  ['grad_norm', 'gradient'],
  ['clip_fraction', 'clipped'],
  ['zero_variance_fraction', 'flat groups'],
  ['length', 'length'],
  ['tokens_per_second', 'tokens/s'],
];

export function renderRun(run: RunRecord, metrics: readonly StepMetrics[], width = 80): string {
  const last = metrics.at(-1);
  const left = run.status === 'running' ? secondsLeft(run, metrics) : null;
  const lines = [
    `${run.id}  ${run.recipe}  ${run.agent}  ${run.status}${run.internal ? ', internal' : ''}${run.reason ? `: ${run.reason}` : ''}`,
    `${progressBar(run.step / Math.max(1, run.steps), Math.max(10, width - 50))} ${run.step}/${run.steps}` +
      `${last ? `  ${last.stage}` : ''}  ${duration(run.spent.seconds)}${left === null ? '' : `, ${duration(left)} left`}`,
  ];
  const columns = Math.max(10, width - 34);
  for (const [name, label] of shown) {
    const values = metrics.flatMap((m) => m.values[name] ?? []);
    if (values.length === 0) continue;
    lines.push(`${label.padEnd(12)} ${format(values.at(-1)!).padStart(9)}  ${sparkline(values, columns)}`);
  }
  const time = timeOf(metrics.slice(-20));
  if (time !== null) {
    const whole = Math.max(
      timeParts.reduce((sum, part) => sum + time[part], 0),
      1e-9,
    );
    const shares = timeParts.map((part) => `${label(part)} ${Math.round((100 * time[part]) / whole)}%`);
    lines.push(`time         ${shares.join('  ')}`);
  }
  const types = metrics.findLast((m) => m.taskTypes)?.taskTypes;
  if (types)
    lines.push(
      `by type      ${Object.entries(types)
        .map(([type, { success }]) => `${type} ${Math.round(success * 100)}%`)
        .join('  ')}`,
    );
  return lines.join('\n');
}

const label = (part: TimePart): string => (part === 'pawl' ? 'Pawl' : part);

/** Where the time of the newest steps went, and of all: one row each, in seconds. */
export function timeRows(metrics: readonly StepMetrics[], newest: number): string[][] {
  const all = timeOf(metrics);
  if (all === null) return [];
  const row = (name: string, time: StepTime) => {
    const parts = timeParts.map((part) => time[part]);
    return [name, ...[parts.reduce((sum, one) => sum + one, 0), ...parts].map((seconds) => seconds.toFixed(2))];
  };
  const steps = metrics.slice(-newest).flatMap((one) => {
    const time = timeOf([one]);
    return time === null ? [] : [row(String(one.step + 1), time)];
  });
  return [...steps, row(`all ${all.steps}`, all)];
}

export const timeColumns = [
  { title: 'STEP', right: true },
  { title: 'SECONDS', right: true },
  ...timeParts.map((part) => ({ title: label(part).toUpperCase(), right: true })),
];

/** An episode to read, below its reward. */
export function episodeLines(episode: KeptEpisode, { columns, paint }: Pick<Terminal, 'columns' | 'paint'>): string[] {
  const { attempt, reward, success, outcome, reasons, messages, leftOut } = episode;
  const end = `${success ? 'solved' : 'not solved'}${outcome === 'done' ? '' : `, ${outcome}`}`;
  const lines = ['', paint.bold(plain(`Attempt ${attempt + 1}: reward ${reward.toFixed(2)}, ${end}`))];
  for (const reason of reasons) lines.push(...said('', reason).map(paint.dim));
  for (const { role, text, reasoning, calls = [], reward: earned, reasons: why = [] } of messages) {
    if (reasoning !== undefined && reasoning !== '') lines.push(...said('thought', reasoning).map(paint.dim));
    if (text !== '') lines.push(...said(role, text));
    for (const { name, input } of calls) lines.push(...said('calls', `${name}(${input})`));
    if (earned !== undefined && (earned !== 0 || why.length > 0))
      lines.push(
        ...said('', `earned ${earned.toFixed(2)}${why.length === 0 ? '' : `: ${why.join(' ')}`}`).map(paint.dim),
      );
  }
  if (leftOut > 0) lines.push(...said('', `${leftOut} more messages are not kept`).map(paint.dim));
  return lines;

  function said(who: string, what: string): string[] {
    return wrap(plain(what), columns - 12).map((line, i) => `  ${(i === 0 ? who : '').padEnd(10)}${line}`);
  }
}

function format(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 100_000)) return value.toExponential(2);
  return size >= 100 ? value.toFixed(0) : value.toFixed(3);
}
