/** One report: the two releases side by side, by kind of task, case by case where they differ, and every gate with the answers to look at. */
import type { ReactNode } from 'react';
import { useAgent } from '../agent.tsx';
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import { Command } from '../parts/command.tsx';
import { Figure, Figures, Tag } from '../parts/figure.tsx';
import { Foreign } from '../parts/foreign.tsx';
import { Interval, scaleOf } from '../parts/interval.tsx';
import { Page, Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Plain, Table } from '../parts/table.tsx';
import { type Tab, Tabs, useTab } from '../parts/tabs.tsx';
import { Time } from '../parts/time.tsx';
import { Link } from '../router.tsx';
import { said, toneOf } from '../verdict.ts';
import { count, duration, fixed, pawl, percent, points } from '../words.ts';

const read = (id: string, signal: AbortSignal) => ask('get', '/api/reports/:id', { param: { id } }, signal);
type Found = Awaited<ReturnType<typeof read>>;
type Case = Found['tasks'][number];
type Comparison = NonNullable<Found['overall']>;

export function Report({ id }: { readonly id: string }) {
  const found = useAnswer(id, (signal) => read(id, signal), { topics: ['reports'], id });
  return (
    <Page title={id} about={<Link to="/evaluate">All reports</Link>}>
      <Asked of={found} rows={14}>
        {(report) => (
          <>
            <Short report={report} />
            <div className="columns">
              <Slices report={report} />
              <Users report={report} />
            </div>
            <Gates report={report} />
            <Cases report={report} />
          </>
        )}
      </Asked>
      <Command line={pawl('reports', 'show', id)} />
    </Page>
  );
}

const pValue = (p: number): string => (p < 0.001 ? 'p < 0.001' : `p = ${p.toFixed(3)}`);

function Short({ report }: { readonly report: Found }) {
  const { overall, reward, suite, attempts, drift, base, broad } = report;
  return (
    <Panel
      title={`${report.candidate} against ${report.baseline}`}
      note={<Time at={new Date(report.createdAt).toISOString()} />}
    >
      <Figures>
        <Figure
          label="Verdict"
          value={report.verdict}
          tone={toneOf(report.verdict)}
          note={`${suite.name}, ${count(suite.tasks)} cases × ${attempts}`}
        />
        {overall === null ? (
          <Figure label="Solved" value="–" note="no case was measured for both" />
        ) : (
          <>
            <Figure label={`Solved by ${report.baseline}`} value={percent(overall.baseline)} />
            <Figure label={`Solved by ${report.candidate}`} value={percent(overall.candidate)} />
            <Figure
              label="Difference"
              value={points(overall.difference)}
              unit="points"
              interval={[points(overall.interval[0]), points(overall.interval[1])]}
              tone={overall.interval[0] > 0 ? 'good' : overall.interval[1] < 0 ? 'bad' : 'plain'}
              note={`${pValue(overall.p)}, ${overall.test}`}
            />
            <Figure
              label="Cases that changed"
              value={`${overall.better} ↑ ${overall.worse} ↓`}
              note={overall.detectable === null ? undefined : `${points(overall.detectable)} points could be seen`}
            />
          </>
        )}
        {reward && (
          <Figure
            label="Reward"
            value={`${fixed(reward.baseline)} → ${fixed(reward.candidate)}`}
            interval={[fixed(reward.interval[0]), fixed(reward.interval[1])]}
          />
        )}
        {report.passK?.map(({ k, baseline, candidate }) => (
          <Figure
            key={k}
            label={`All of ${k} attempts`}
            value={`${percent(baseline)} → ${percent(candidate)}`}
            note="solved every time"
          />
        ))}
        {broad && (
          <Figure
            label={`Not forgotten: ${broad.suite}`}
            value={points(broad.comparison.difference)}
            unit="points"
            interval={[points(broad.comparison.interval[0]), points(broad.comparison.interval[1])]}
          />
        )}
        <Figure
          label="Drift"
          value={drift === null ? '–' : fixed(drift)}
          unit="nats a token"
          note="from the baseline"
        />
        {base && (
          <Figure
            label="Drift from base"
            value={base.drift === null ? '–' : fixed(base.drift)}
            unit="nats a token"
            note={`from ${base.release}`}
          />
        )}
        <Figure label="Took" value={duration(report.seconds * 1000)} note={`seed ${report.seed}`} />
      </Figures>
      <ul className="sentences">
        {report.reasons.map((reason) => (
          <li key={reason}>{reason}</li>
        ))}
      </ul>
    </Panel>
  );
}

type Slice = Comparison & { readonly type: string };

const sliceColumns = (most: number): readonly Column<Slice>[] => [
  { name: 'Kind of task', grow: 1.8, cell: ({ type }) => <span dir="auto">{type}</span> },
  { name: 'Cases', isNumber: true, grow: 1.2, isWide: true, cell: ({ n }) => count(n) },
  { name: 'Before', isNumber: true, grow: 1.5, cell: ({ baseline }) => percent(baseline) },
  { name: 'After', isNumber: true, grow: 1.4, cell: ({ candidate }) => percent(candidate) },
  { name: 'Points', isNumber: true, grow: 1.3, isWide: true, cell: ({ difference }) => points(difference) },
  {
    ...{ name: '95%', grow: 1 },
    cell: (one) => <Interval value={one.difference} interval={one.interval} most={most} label={said(one)} />,
  },
  {
    name: 'p',
    isNumber: true,
    grow: 1.2,
    isWide: true,
    cell: ({ p, holm = p }) => (holm < 0.001 ? '< 0.001' : fixed(holm)),
  },
];

function Slices({ report: { types } }: { readonly report: Found }) {
  const rows = Object.entries(types).map(([type, one]) => ({ type, ...one }));
  return (
    <Panel title="By kind of task" note="p is corrected for how many are looked at">
      <Plain
        label="By kind of task"
        rows={rows}
        columns={sliceColumns(scaleOf(rows.map(({ interval }) => interval)))}
        idOf={({ type }) => type}
        empty={<Empty title="No case says what kind of task it is." />}
      />
    </Panel>
  );
}

type Seen = { readonly n: number; readonly success: number; readonly interval: readonly [number, number] } | null;
type UserFigures = { readonly before: Seen; readonly baseline: Seen; readonly after: Seen };
type SeenByUsers = {
  readonly outcome: string;
  readonly all: UserFigures;
  readonly slices: readonly (UserFigures & { readonly slice: string })[];
};

const figureOf = (seen: Seen): ReactNode =>
  seen === null ? (
    '–'
  ) : (
    <span title={`${count(seen.n)} users, 95% interval ${percent(seen.interval[0])} to ${percent(seen.interval[1])}`}>
      {percent(seen.success)} <span className="interval">of {count(seen.n)}</span>
    </span>
  );

const userColumns: readonly Column<UserFigures & { readonly slice: string }>[] = [
  { name: 'Users', grow: 2, cell: ({ slice }) => <span dir="auto">{slice}</span> },
  { name: 'Before', isNumber: true, grow: 1.4, isWide: true, cell: ({ before }) => figureOf(before) },
  { name: 'Beside it', isNumber: true, grow: 1.4, cell: ({ baseline }) => figureOf(baseline) },
  { name: 'With it', isNumber: true, grow: 1.4, cell: ({ after }) => figureOf(after) },
];

/** The turn of the loop that asked for the report has, at its end, what its users got. */
function Users({ report }: { readonly report: Found }) {
  const agent = useAgent();
  const turns = useAnswer(
    `turns ${agent} ${report.id}`,
    (signal) => ask('get', '/api/loop/turns', { query: { agent, limit: 100 } }, signal),
    { topics: ['loop'] },
  );
  return (
    <Panel title="What users saw" note="beside the golden cases">
      <Asked of={turns} rows={4}>
        {({ turns: all }) => {
          const turn = all.find(
            ({ state }) => (state.evaluate as { report?: string } | undefined)?.report === report.id,
          );
          const users = turn?.state.users as SeenByUsers | null | undefined;
          if (users === undefined || users === null)
            return (
              <Empty title="Not known.">
                {turn === undefined
                  ? 'No turn of the loop asked for this report.'
                  : 'Users are counted when the turn has ended and an outcome is measured (deploy.outcome).'}
              </Empty>
            );
          return (
            <>
              {report.overall && (
                <p>
                  Golden cases: {percent(report.overall.baseline)} → {percent(report.overall.candidate)}. Users’ own{' '}
                  <code>{users.outcome}</code>, of turn {turn!.number}:
                </p>
              )}
              <Plain
                label="What users saw"
                rows={[{ slice: 'all', ...users.all }, ...users.slices]}
                columns={userColumns}
                idOf={({ slice }) => slice}
                empty={null}
              />
            </>
          );
        }}
      </Asked>
    </Panel>
  );
}

const measured = (value: number | null): string => (value === null ? '–' : fixed(value));

function Gates({ report: { gates = [] } }: { readonly report: Found }) {
  return (
    <Panel title="Gates" note="ways in which a model looks better without being it">
      {gates.length === 0 ? (
        <Empty title="This report has no gates." />
      ) : (
        <ul className="gates">
          {gates.map((gate) => (
            <li key={gate.name}>
              <div className="gate">
                <Tag tone={toneOf(gate.verdict)}>{gate.verdict}</Tag>
                <strong>{gate.name}</strong>
                <span className="note">
                  {measured(gate.baseline)} → {measured(gate.candidate)}, limit {fixed(gate.limit)}
                </span>
                <span>{gate.reason}</span>
              </div>
              {gate.look.length > 0 && (
                <details>
                  <summary>
                    {gate.look.length} {gate.look.length === 1 ? 'answer' : 'answers'} to look at
                  </summary>
                  {gate.look.map(({ task, attempt, answer }) => (
                    <div key={`${task} ${attempt}`} className="message">
                      <div className="role" dir="auto">
                        {task}
                        {attempt > 0 && `, attempt ${attempt + 1}`}
                      </div>
                      <Foreign text={answer} />
                    </div>
                  ))}
                </details>
              )}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

const changed = ({ baseline, candidate }: Case): number | null =>
  baseline === null || candidate === null ? null : candidate - baseline;

const isShown: Readonly<Record<string, (one: Case) => boolean>> = {
  differ: (one) => changed(one) !== 0,
  worse: (one) => (changed(one) ?? 0) < 0,
  better: (one) => (changed(one) ?? 0) > 0,
  failed: ({ candidate }) => candidate !== null && candidate < 1,
  all: () => true,
};

const share = (value: number | null) =>
  value === null ? (
    <Tag>not played</Tag>
  ) : (
    <Tag tone={value === 1 ? 'good' : value === 0 ? 'bad' : 'warn'}>
      {value === 1 ? 'solved' : value === 0 ? 'not solved' : percent(value, 0)}
    </Tag>
  );
const why = (reasons: readonly string[] = []) => (
  <span dir="auto" title={reasons.join('\n')}>
    {reasons.join(' · ') || '–'}
  </span>
);

const caseColumns = ({ baseline, candidate }: Found): readonly Column<Case>[] => [
  { name: 'Case', grow: 1.4, cell: ({ id }) => <span dir="auto">{id}</span> },
  { name: 'Kind', isWide: true, cell: ({ type }) => <span dir="auto">{type}</span> },
  { name: baseline, cell: ({ baseline: value }) => share(value) },
  { name: `why, ${baseline}`, grow: 2.4, isWide: true, cell: ({ reasons }) => why(reasons?.baseline) },
  { name: candidate, cell: ({ candidate: value }) => share(value) },
  { name: `why, ${candidate}`, grow: 2.4, isWide: true, cell: ({ reasons }) => why(reasons?.candidate) },
];

const nothing = () => {};

function Cases({ report }: { readonly report: Found }) {
  const { tasks } = report;
  const tabs: readonly Tab[] = (
    [
      ['differ', 'They differ'],
      ['worse', 'Worse now'],
      ['better', 'Better now'],
      ['failed', 'Not solved'],
      ['all', 'All'],
    ] as const
  ).map(([id, name]) => ({ id, name: `${name} ${count(tasks.filter(isShown[id]!).length)}` }));
  const tab = useTab(tabs, 'cases');
  const rows = tasks.filter(isShown[tab]!);
  return (
    <Panel title="Cases" actions={<Tabs tabs={tabs} label="Which cases" name="cases" />}>
      <Table
        key={tab}
        label="Cases"
        rows={{ rows, isWhole: true, problem: null, more: nothing, again: nothing }}
        columns={caseColumns(report)}
        idOf={({ id }) => id}
        empty={<Empty title="There is none." />}
      />
    </Panel>
  );
}
