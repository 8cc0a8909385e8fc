/** An agent's loop at a glance as text for a terminal: what the Overview page shows. Pure. */
import { percent, signed } from '../loop/show.ts';
import { stageNames } from '../loop/turn.ts';
import { returnWeeks } from '../loop/worth.ts';
import { plain, type Terminal, table, wrap } from '../terminal.ts';
import type { Overview } from './overview.ts';

const thousand = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const count = (n: number): string => thousand.format(n);
const money = (n: number): string => n.toFixed(2);
const minute = (at: Date): string => at.toISOString().slice(0, 16).replace('T', ' ');

/** What each stage has done lately, in words. */
function stagesOf({ stages }: Overview): Readonly<Record<(typeof stageNames)[number], string>> {
  const { conversations, scores, datasets, runs, reports, rollouts, most } = stages;
  const upTo = (n: number): string => (n >= most ? `${count(most)} or more` : count(n));
  return {
    collect: `${upTo(conversations.day)} conversations today, ${upTo(conversations.week)} this week`,
    score:
      scores.mean === null
        ? 'nothing scored this week'
        : `mean reward ${scores.mean.toFixed(2)} of ${upTo(scores.week)} this week`,
    curate: datasets.rows === null ? 'no dataset yet' : `${count(datasets.rows)} examples in ${datasets.newest}`,
    train: runs.running > 0 ? `${runs.running} running right now` : `${runs.week} runs this week`,
    evaluate: `${reports.passed} of ${reports.ended} evaluations passed`,
    deploy: rollouts.open > 0 ? `${rollouts.open} on its way to users` : `${rollouts.promoted} rollouts promoted`,
  };
}

export function overviewLines(overview: Overview, terminal: Pick<Terminal, 'columns' | 'paint'>): string[] {
  const { agent, loop, waiting, gains, go, money: worth, stages } = overview;
  const { paint } = terminal;
  const { serving } = stages;
  const lines: string[] = [];
  const say = (...more: string[]) => lines.push(...more.map(plain));
  const head = (title: string) => lines.push('', paint.bold(plain(title)));
  /** A name, and what there is to say of it, as wide as the terminal. */
  const row = (name: string, text: string, mark = ' ') =>
    wrap(plain(text), terminal.columns - 14).forEach((line, i) => {
      lines.push(i === 0 ? `${mark} ${plain(name).padEnd(11)} ${line}` : `${' '.repeat(14)}${line}`);
    });

  say(
    serving === null
      ? `${agent}: no release serves yet; calls go as they come to an upstream, where there is one.`
      : `${agent}: ${serving.name} answers since ${minute(serving.since)}${serving.killed ? ', by the kill switch' : ''}`,
  );
  head(loop.turn === null ? 'The loop has not turned yet' : `Turn ${loop.turn}${loop.paused ? ', paused' : ''}`);
  const done = stagesOf(overview);
  for (const stage of stageNames) {
    const isNow = loop.stage === stage;
    const doing =
      isNow && loop.progress !== null
        ? `; ${loop.progress.text}, ${percent(loop.progress.share)}`
        : isNow
          ? '; now'
          : '';
    row(stage, `${done[stage]}${doing}`, isNow ? '▸' : ' ');
  }
  row('next', loop.next.reason);

  head('Needs a person now');
  if (waiting.length === 0) say('  nothing');
  for (const { kind, sentence, command } of waiting) {
    row(kind, sentence);
    row('', command);
  }

  head('Gain per turn');
  if (gains.length === 0) say('  No turn has been evaluated yet.');
  else
    lines.push(
      ...table(
        gainColumns,
        gains.map((one) => [
          ...[String(one.turn), percent(one.before), percent(one.after)],
          `${signed(one.after - one.before)} (${signed(one.interval[0])} to ${signed(one.interval[1])})`,
          ...[one.verdict, one.promoted ? 'promoted' : '', one.money === 0 ? '' : money(one.money)],
        ]),
        terminal,
      ),
    );

  head('Cost and return');
  row('cost so far', money(worth.cost));
  if (worth.savedPerWeek !== null) row('brings', `${money(worth.savedPerWeek)} a week`);
  if (worth.return !== null) row('return', `${worth.return.toFixed(1)} × in ${returnWeeks} weeks; wanted: above 1.5 ×`);
  if (worth.paybackWeeks !== null) row('pays back', `in ${worth.paybackWeeks.toFixed(1)} weeks`);
  const { deploymentsSucceeded: held, evaluationsPassed: passed } = overview;
  if (held !== null) row('rollouts', `${percent(held)} held; wanted: 95%`);
  if (passed !== null) row('evaluations', `${percent(passed)} passed`);
  for (const sentence of worth.unmeasured) row('unmeasured', sentence);

  const { phase } = go;
  head(`Go or no-go: ${go.verdict}`);
  say(
    `  Phase ${phase.name}, meant for ${count(phase.traces)} conversations${phase.money === null ? '' : `, ${money(phase.money)}`}${phase.gain === null ? '' : `, ${signed(phase.gain)} points`}.`,
  );
  const figure = (n: number | null): string => (n === null ? '–' : Number.isInteger(n) ? count(n) : n.toFixed(2));
  lines.push(
    ...table(
      goColumns,
      go.checks.map(({ name, value, threshold, end, wayOut }) => [
        ...[name, figure(value), figure(threshold), end, wayOut ?? ''],
      ]),
      terminal,
    ),
  );
  return lines;
}

const gainColumns = [
  { title: 'TURN', right: true },
  { title: 'BEFORE', right: true },
  { title: 'AFTER', right: true },
  { title: 'GAIN' },
  { title: 'VERDICT' },
  { title: 'ENDED', shrinkTo: 8 },
  { title: 'COST', right: true },
];
const goColumns = [
  { title: 'CHECK' },
  { title: 'NOW', right: true },
  { title: 'WANTED', right: true },
  { title: 'END' },
  { title: 'WHAT WOULD BRING IT', shrinkTo: 20 },
];
