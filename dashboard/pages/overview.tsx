/** The loop at a glance: where it is, what needs a person, what it gained, and whether it is worth it. */
import type { ReactNode } from 'react';
import { useAgent } from '../agent.tsx';
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import { Act } from '../parts/act.tsx';
import { Bar } from '../parts/bar.tsx';
import { Command } from '../parts/command.tsx';
import { Figure, Figures, Tag, type Tone } from '../parts/figure.tsx';
import { Page, Panel } from '../parts/layout.tsx';
import { Sentence } from '../parts/sentence.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Plain } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { Link, pathTo } from '../router.tsx';
import { count, fixed, money, pawl, percent, points } from '../words.ts';
import { Gains } from './gains.tsx';

const read = (agent: string, signal: AbortSignal) => ask('get', '/api/overview', { query: { agent } }, signal);
export type Overview = Awaited<ReturnType<typeof read>>;

export default function OverviewPage() {
  const agent = useAgent();
  const found = useAnswer(`overview ${agent}`, (signal) => read(agent, signal), {
    topics: [
      'trajectories',
      'scores',
      'datasets',
      'runs',
      'reports',
      'rollouts',
      'releases',
      'reviews',
      'loop',
      'erasures',
    ],
  });
  return (
    <Page
      title={agent}
      about={found.value === null ? ' ' : <Serving serving={found.value.serving} />}
      actions={<Turning agent={agent} isPaused={found.value?.loop.paused ?? false} again={found.again} />}
    >
      <Asked of={found} rows={16}>
        {(value) => (
          <>
            <Loop {...value} />
            <Needs {...value} />
            <div className="columns">
              <Panel title="Gain per turn" note="golden cases solved, before → after">
                {value.gains.length === 0 ? (
                  <Empty title="No turn has been evaluated yet.">
                    Each turn of the loop ends in one number here, with its interval.
                  </Empty>
                ) : (
                  <Gains gains={value.gains} />
                )}
                <Command line={pawl('loop', 'history', ['--agent', agent])} />
              </Panel>
              <Worth {...value} />
            </div>
            <Go {...value} />
            <Command line={pawl('overview', ['--agent', agent])} />
          </>
        )}
      </Asked>
    </Page>
  );
}

function Serving({ serving }: Pick<Overview, 'serving'>) {
  if (serving === null) return 'No release serves yet; calls go as they come to an upstream, where there is one.';
  return (
    <>
      <Link to={pathTo('deploy', 'releases', serving.name)}>{serving.name}</Link> answers since{' '}
      <Time at={serving.since} />
      {serving.killed && (
        <>
          {' '}
          <Tag tone="bad">kill switch pulled</Tag>
        </>
      )}
    </>
  );
}

type TurningProps = { readonly agent: string; readonly isPaused: boolean; readonly again: () => void };

function Turning({ agent, isPaused, again }: TurningProps) {
  const say = { needs: 'operator' as const, done: again };
  return (
    <>
      <Act
        {...say}
        name="Turn now"
        isMain
        title={`Turn the loop of ${agent} now?`}
        command={() => pawl('loop', 'run', ['--agent', agent])}
        does={() => ask('post', '/api/loop/run', { json: { agent } })}
      >
        It learns from everything since the last turn, or goes on with one that failed. Users see nothing of it before a
        rollout.
      </Act>
      {isPaused ? (
        <Act
          {...say}
          name="Resume"
          title={`Let the loop of ${agent} go on?`}
          command={() => pawl('loop', 'resume', ['--agent', agent])}
          does={() => ask('post', '/api/loop/resume', { json: { agent } })}
        />
      ) : (
        <Act
          {...say}
          name="Pause"
          title={`Pause the loop of ${agent}?`}
          command={() => pawl('loop', 'pause', ['--agent', agent])}
          does={() => ask('post', '/api/loop/pause', { json: { agent } })}
        >
          The stage under way stops where it can go on, and nothing begins. A rollout that is with users goes on.
        </Act>
      )}
    </>
  );
}

/** A number that may have been counted only so far. */
const upTo = (n: number, most: number): string => (n >= most ? `${count(most)}+` : count(n));

function Loop({ agent, loop, stages }: Pick<Overview, 'agent' | 'loop' | 'stages'>) {
  const { most } = stages;
  const figures: readonly (readonly [string, ReactNode, ReactNode])[] = [
    [
      'collect',
      upTo(stages.conversations.day, most),
      `conversations today, ${upTo(stages.conversations.week, most)} this week`,
    ],
    [
      'score',
      stages.scores.mean === null ? '–' : fixed(stages.scores.mean, 2),
      `mean reward of ${upTo(stages.scores.week, most)} this week`,
    ],
    [
      'curate',
      stages.datasets.rows === null ? '–' : count(stages.datasets.rows),
      stages.datasets.newest === null ? 'no dataset yet' : `examples in ${stages.datasets.newest}`,
    ],
    [
      'train',
      stages.runs.running > 0 ? `${stages.runs.running} running` : count(stages.runs.week),
      stages.runs.running > 0 ? 'right now' : 'runs this week',
    ],
    ['evaluate', `${stages.reports.passed} of ${stages.reports.ended}`, 'evaluations passed'],
    [
      'deploy',
      stages.rollouts.open > 0 ? `${stages.rollouts.open} open` : count(stages.rollouts.promoted),
      stages.rollouts.open > 0 ? 'on its way to users' : 'rollouts promoted',
    ],
  ];
  return (
    <Panel
      title={loop.turn === null ? 'The loop has not turned yet' : `Turn ${loop.turn}`}
      note={loop.paused ? <Tag tone="warn">paused</Tag> : undefined}
    >
      <ol className="loop">
        {figures.map(([stage, value, note]) => {
          const isNow = loop.stage === stage;
          const isDone = loop.stage !== null && loop.done.includes(stage);
          return (
            <li key={stage} className={isNow ? 'now' : isDone ? 'done' : ''} aria-current={isNow ? 'step' : undefined}>
              <Link to={`/${stage}`} className="stage">
                {stage}
              </Link>
              <span className="value">{value}</span>
              <span className="note">{note}</span>
              {isNow && loop.progress !== null && (
                <Bar share={loop.progress.share} label={`${loop.progress.text}, ${percent(loop.progress.share, 0)}`} />
              )}
              {isNow && loop.progress !== null && <span className="note">{loop.progress.text}</span>}
            </li>
          );
        })}
      </ol>
      <p className="back">
        <span>↺ what users get becomes what is learned from</span>
      </p>
      <p>
        <strong>Next:</strong> <Sentence text={loop.next.reason} />
      </p>
      <Command line={pawl('loop', 'status', ['--agent', agent])} />
    </Panel>
  );
}

const whereTo = ({ kind, id }: Overview['waiting'][number]): string =>
  kind === 'rollout' && id !== null
    ? pathTo('deploy', 'rollouts', id)
    : kind === 'report' && id !== null
      ? pathTo('evaluate', id)
      : kind === 'erasure'
        ? '/curate'
        : kind === 'review'
          ? '/review'
          : kind === 'release' && id !== null
            ? pathTo('deploy', 'releases', id)
            : '/';

function Needs({ waiting }: Pick<Overview, 'waiting'>) {
  return (
    <Panel title="Needs a person now" note={waiting.length === 0 ? 'nothing' : undefined}>
      {waiting.length > 0 && (
        <ul className="needs">
          {waiting.map((one) => (
            <li key={`${one.kind} ${one.id}`}>
              <Tag tone="warn">{one.kind}</Tag>
              <Link to={whereTo(one)}>{one.sentence}</Link>
              <Command line={one.command} />
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function Worth({ money: worth, gains }: Pick<Overview, 'money' | 'gains'>) {
  const last = gains.at(-1);
  return (
    <Panel title="Cost and return">
      <Figures>
        <Figure label="Cost so far" value={worth.cost === 0 ? '–' : money(worth.cost)} />
        <Figure label="Brings per week" value={worth.savedPerWeek === null ? '–' : money(worth.savedPerWeek)} />
        <Figure
          label="Return in 12 weeks"
          value={worth.return === null ? '–' : `${fixed(worth.return, 1)} ×`}
          tone={worth.return === null ? 'plain' : worth.return >= 1.5 ? 'good' : 'bad'}
          note="wanted: above 1.5 ×"
        />
        <Figure
          label="Pays back in"
          value={worth.paybackWeeks === null ? '–' : fixed(worth.paybackWeeks, 1)}
          unit={worth.paybackWeeks === null ? undefined : 'weeks'}
        />
        <Figure
          label="Rollouts that held"
          value={worth.deploymentsSucceeded === null ? '–' : percent(worth.deploymentsSucceeded, 0)}
          note="wanted: 95%"
        />
        <Figure
          label="Evaluations passed"
          value={worth.evaluationsPassed === null ? '–' : percent(worth.evaluationsPassed, 0)}
        />
        {last !== undefined && (
          <Figure
            label="Last gain"
            value={points(last.after - last.before)}
            unit="points"
            interval={[points(last.interval[0] ?? 0), points(last.interval[1] ?? 0)]}
            tone={(last.interval[0] ?? 0) > 0 ? 'good' : 'plain'}
          />
        )}
      </Figures>
      {worth.unmeasured.map((sentence) => (
        <p key={sentence} className="note">
          <Sentence text={sentence} />
        </p>
      ))}
    </Panel>
  );
}

type Check = Overview['go']['checks'][number];
const ends: Readonly<Record<Check['end'], Tone>> = {
  pass: 'good',
  fail: 'bad',
  inconclusive: 'warn',
  unmeasured: 'plain',
};
const goColumns: readonly Column<Check>[] = [
  { name: 'Check', grow: 2, cell: ({ name }) => name },
  {
    name: 'Now',
    isNumber: true,
    cell: ({ value }) => (value === null ? '–' : Number.isInteger(value) ? count(value) : fixed(value, 2)),
  },
  {
    name: 'Wanted',
    isNumber: true,
    cell: ({ threshold }) => (Number.isInteger(threshold) ? count(threshold) : fixed(threshold, 2)),
  },
  { name: 'End', grow: 1.3, cell: ({ end }) => <Tag tone={ends[end]}>{end}</Tag> },
  {
    name: 'What would bring it',
    grow: 6,
    isWide: true,
    cell: ({ wayOut }) => <span className="wraps">{wayOut !== null && <Sentence text={wayOut} />}</span>,
  },
];

function Go({ go }: Pick<Overview, 'go'>) {
  const tone = go.verdict === 'go' ? 'good' : go.verdict === 'no-go' ? 'bad' : 'warn';
  const { phase } = go;
  return (
    <Panel title="Go or no-go" note={<Tag tone={tone}>{go.verdict}</Tag>}>
      <p className="note">
        Phase: {phase.name}, meant for {count(phase.traces)} conversations
        {phase.money !== null && `, ${money(phase.money)}`}
        {phase.gain !== null && `, ${points(phase.gain)} points`}.
      </p>
      <Plain
        label="Go or no-go"
        rows={go.checks}
        columns={goColumns}
        idOf={({ name }) => name}
        empty={<Empty title="Nothing is checked." />}
      />
    </Panel>
  );
}
