/** Evaluations: which release was compared with which, and what came of it; each leads to its report. One can be started here. */
import { useEffect, useState } from 'react';
import { useAgent } from '../agent.tsx';
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import type { PageProps } from '../pages.ts';
import { Act } from '../parts/act.tsx';
import { Bar } from '../parts/bar.tsx';
import { Command } from '../parts/command.tsx';
import { Choice, Entry } from '../parts/field.tsx';
import { Tag } from '../parts/figure.tsx';
import { Interval, scaleOf } from '../parts/interval.tsx';
import { Page, Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Plain } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { Link, pathTo, setQuery, usePlace } from '../router.tsx';
import { said, toneOf } from '../verdict.ts';
import { count, pawl, percent, points } from '../words.ts';
import { Report } from './report.tsx';

const list = (agent: string, signal: AbortSignal) =>
  ask('get', '/api/reports', { query: { agent, limit: 100 } }, signal);
type Listed = Awaited<ReturnType<typeof list>>['reports'][number];

export default function Evaluate({ rest }: PageProps) {
  return rest[0] === undefined ? <List /> : <Report id={rest[0]} />;
}

function columnsFor(reports: readonly Listed[]): readonly Column<Listed>[] {
  const most = scaleOf(reports.flatMap(({ overall }) => (overall === null ? [] : [overall.interval])));
  return [
    { name: 'Candidate', grow: 2, cell: ({ candidate }) => <span dir="auto">{candidate}</span> },
    { name: 'Verdict', grow: 1.3, cell: ({ verdict }) => <Tag tone={toneOf(verdict)}>{verdict}</Tag> },
    { name: 'Against', grow: 1.6, isWide: true, cell: ({ baseline }) => <span dir="auto">{baseline}</span> },
    {
      ...{ name: 'Solved before', isNumber: true, isWide: true, grow: 1.3 },
      cell: ({ overall }) => (overall === null ? '–' : percent(overall.baseline)),
    },
    { name: 'Solved', isNumber: true, cell: ({ overall }) => (overall === null ? '–' : percent(overall.candidate)) },
    {
      ...{ name: 'Points', isNumber: true },
      cell: ({ overall }) => (overall === null ? '–' : points(overall.difference)),
    },
    {
      ...{ name: '95% interval', grow: 2, isWide: true },
      cell: ({ overall }) =>
        overall && (
          <Interval value={overall.difference} interval={overall.interval} most={most} label={said(overall)} />
        ),
    },
    { name: 'Cases', isNumber: true, isWide: true, cell: ({ suite }) => count(suite.tasks) },
    { name: 'When', grow: 1.4, isWide: true, cell: ({ createdAt }) => <Time at={new Date(createdAt).toISOString()} /> },
  ];
}

function List() {
  const agent = useAgent();
  const reports = useAnswer(agent, (signal) => list(agent, signal), { topics: ['reports'] });
  return (
    <Page
      title="Evaluate"
      about="A candidate and what it would replace, on the same cases with the same seeds."
      actions={<Start agent={agent} />}
    >
      <Progress done={reports.again} />
      <Panel title="Reports" note="newest first">
        <Asked of={reports} rows={8}>
          {({ reports: all }) => (
            <Plain
              label="Reports"
              rows={all}
              columns={columnsFor(all)}
              idOf={({ id }) => id}
              to={({ id }) => pathTo('evaluate', id)}
              empty={
                <Empty title="Nothing was evaluated yet.">
                  The loop evaluates what it trained; a release can be evaluated by hand.
                </Empty>
              }
            />
          )}
        </Asked>
      </Panel>
      <Command line={pawl('reports', 'list', ['--agent', agent])} />
    </Page>
  );
}

function Start({ agent }: { readonly agent: string }) {
  const [chosen, choose] = useState({ candidate: '', baseline: '', attempts: '', seed: '' });
  const releases = useAnswer(
    `releases ${agent}`,
    (signal) => ask('get', '/api/releases', { query: { agent, limit: 100 } }, signal),
    { topics: ['releases'] },
  );
  const names = releases.value?.releases ?? [];
  const candidate = chosen.candidate || (names.find(({ serving }) => !serving)?.name ?? '');
  const number = (text: string): number | undefined => (text === '' ? undefined : Number(text));
  const set = (name: keyof typeof chosen) => (value: string) => choose((old) => ({ ...old, [name]: value }));
  return (
    <Act
      name="Start an evaluation"
      needs="operator"
      isMain
      title="Evaluate a release"
      disabled={candidate === '' ? 'There is no release but the one that serves.' : null}
      command={() =>
        pawl(
          'evaluate',
          ['--agent', agent],
          ['--candidate', candidate],
          ['--baseline', chosen.baseline],
          ['--attempts', chosen.attempts],
          ['--seed', chosen.seed],
        )
      }
      does={async () => {
        const { id } = await ask('post', '/api/evaluations', {
          json: {
            ...{ agent, candidate },
            ...(chosen.baseline === '' ? {} : { baseline: chosen.baseline }),
            ...{ attempts: number(chosen.attempts), seed: number(chosen.seed) },
          },
        });
        setQuery({ job: id });
      }}
    >
      <p>Both releases play the golden cases of the agent. Nobody’s traffic is touched.</p>
      <Choice
        label="Candidate"
        value={candidate}
        set={set('candidate')}
        options={names.map(({ name, serving }) => [name, serving ? `${name} (serves)` : name])}
      />
      <Choice
        label="Against"
        value={chosen.baseline}
        set={set('baseline')}
        options={[['', 'what serves'], ...names.map(({ name }) => [name, name] as const)]}
      />
      <Entry label="Attempts at each case" type="number" value={chosen.attempts} set={set('attempts')} hint="as set" />
      <Entry label="Seed" type="number" value={chosen.seed} set={set('seed')} hint="0; another plays anew" />
    </Act>
  );
}

/** Of the evaluation that was started from here: its id stands in the address. */
function Progress({ done }: { readonly done: () => void }) {
  const id = usePlace().query.get('job');
  const job = useAnswer(id, (signal) => ask('get', '/api/evaluations/:id', { param: { id: id ?? '' } }, signal));
  const { again, value } = job;
  const isRunning = value?.status === 'running';
  useEffect(() => {
    if (!isRunning) return;
    const timer = window.setInterval(again, 1500);
    return () => {
      window.clearInterval(timer);
      done();
    };
  }, [isRunning, again, done]);
  if (id === null) return null;
  return (
    <Panel
      title="This evaluation"
      actions={
        <button type="button" className="quiet" onClick={() => setQuery({ job: '' })}>
          Hide
        </button>
      }
    >
      <Asked of={job} rows={1}>
        {({ status, played, total, report, error }) => (
          <div role="status" className="progress">
            <Bar
              share={total === 0 ? 0 : played / total}
              label={`${count(played)} of ${count(total)} attempts`}
              tone={status === 'failed' ? 'bad' : 'plain'}
            />
            {status === 'failed' ? (
              <p className="failed">{error}</p>
            ) : report === null ? (
              <p>
                {total === 0 ? 'It begins …' : `${count(played)} of ${count(total)} attempts played by both releases`}
              </p>
            ) : (
              <p>
                It is done: <Link to={pathTo('evaluate', report)}>read the report</Link>
              </p>
            )}
          </div>
        )}
      </Asked>
    </Panel>
  );
}
