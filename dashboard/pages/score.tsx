/** Scores: what the reward is made of, how each part is spread, whether people agree with it, whether it moves, and what judging costs. */
import { useState } from 'react';
import { useAgent } from '../agent.tsx';
import { type Answer, useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import { Act } from '../parts/act.tsx';
import { Histogram, Sparkline } from '../parts/bar.tsx';
import { Command } from '../parts/command.tsx';
import { Counted } from '../parts/counted.tsx';
import { Entry } from '../parts/field.tsx';
import { Figure, Figures, Tag, type Tone } from '../parts/figure.tsx';
import { Page, Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Plain } from '../parts/table.tsx';
import { setQuery, usePlace } from '../router.tsx';
import { count, fixed, money, pawl, percent } from '../words.ts';
import { Judging } from './judging.tsx';
import { Worth } from './trajectory.tsx';
import { readScores } from './turns.tsx';
import { Versions } from './versions.tsx';
import { WhatIf } from './what-if.tsx';

const readSpread = (agent: string, signal: AbortSignal) =>
  ask('get', '/api/score/distribution', { query: { agent } }, signal);
const readTrust = (agent: string, signal: AbortSignal) => ask('get', '/api/reward', { query: { agent } }, signal);
export type Spread = Awaited<ReturnType<typeof readSpread>>;
type Trust = Awaited<ReturnType<typeof readTrust>>;
type Agreement = Trust['total'];
type Drift = Trust['drift'][number];

export default function Score() {
  const agent = useAgent();
  const on = { topics: ['scores'] as const };
  const spread = useAnswer(`spread ${agent}`, (signal) => readSpread(agent, signal), on);
  const trust = useAnswer(`trust ${agent}`, (signal) => readTrust(agent, signal), { topics: ['reviews'] });
  return (
    <Page
      title="Score"
      about="What a conversation is worth, part by part, and whether that can be trusted."
      actions={<ScoreNow agent={agent} done={spread.again} />}
    >
      <Parts spread={spread} trust={trust} agent={agent} />
      <Asked of={spread} rows={8}>
        {(value) => value.sample > 0 && <WhatIf key={`${agent} ${value.spec}`} agent={agent} parts={value.parts} />}
      </Asked>
      <Why agent={agent} />
      <Judging agent={agent} />
      <Versions agent={agent} />
    </Page>
  );
}

const agreementTone = (state: Agreement['state']): Tone =>
  state === 'ok' ? 'good' : state === 'alarm' ? 'bad' : 'plain';

const agreed = (one: Agreement | undefined) =>
  one === undefined || one.spearman === null ? (
    <span className="note" title={one && `${one.labels} labels are too few.`}>
      –
    </span>
  ) : (
    <Tag tone={agreementTone(one.state)}>
      <span
        title={
          one.low === null || one.high === null
            ? `${one.labels} labels`
            : `${one.labels} labels, 95% interval ${fixed(one.low, 2)} to ${fixed(one.high, 2)}`
        }
      >
        {fixed(one.spearman, 2)}
      </span>
    </Tag>
  );

const signed = (n: number): string => `${n < 0 ? '−' : '+'}${Math.abs(n).toFixed(3)}`;

function moved(one: Drift | undefined) {
  const means = (one?.means ?? []).filter((mean) => mean !== null).toReversed();
  if (one === undefined || means.length === 0) return <span className="note">–</span>;
  const change = one.change === null ? 'not measured' : signed(one.change);
  return (
    <span className="moved">
      <Sparkline
        values={means}
        width={70}
        label={`Means of ${means.length} weeks: ${means.map((m) => fixed(m, 2)).join(', ')}`}
      />
      <Tag tone={one.state === 'moved' ? 'warn' : 'plain'}>{one.state === 'unmeasured' ? '–' : change}</Tag>
    </span>
  );
}

type Row = Spread['parts'][number] & {
  readonly sample: number;
  readonly agreement: Agreement | undefined;
  readonly drift: Drift | undefined;
};

const columns: readonly Column<Row>[] = [
  {
    ...{ name: 'Part', grow: 1.6 },
    cell: ({ name, penalty }) => (
      <>
        {name} {penalty && <Tag tone="warn">penalty</Tag>}
      </>
    ),
  },
  { name: 'Weight', isNumber: true, cell: ({ weight }) => fixed(weight, 2) },
  { name: 'Mean', isNumber: true, cell: ({ mean }) => (mean === null ? '–' : fixed(mean)) },
  {
    ...{ name: 'Measured', isNumber: true, isWide: true },
    cell: ({ measured, sample }) => (sample === 0 ? '–' : percent(measured / sample, 0)),
  },
  {
    ...{ name: 'Spread, 0 to 1', grow: 1.6, isWide: true },
    cell: ({ name, bins, measured }) => (
      <div className="tiny">
        <Histogram bins={bins} label={`How ${count(measured)} values of ${name} are spread from 0 to 1`} />
      </div>
    ),
  },
  { name: 'With people', grow: 1.1, cell: ({ agreement }) => agreed(agreement) },
  { name: 'Week by week', grow: 1.7, isWide: true, cell: ({ drift }) => moved(drift) },
];

type PartsProps = { readonly spread: Answer<Spread>; readonly trust: Answer<Trust>; readonly agent: string };

function Parts({ spread, trust, agent }: PartsProps) {
  const told = trust.value;
  const of = <T extends { part: string | null }>(all: readonly T[] | undefined, name: string) =>
    all?.find(({ part }) => part === name);
  return (
    <Panel title="Parts of the reward" note={told === null ? undefined : `version ${told.spec}`}>
      <Asked of={spread} rows={8}>
        {({ total, parts, sample }) =>
          sample === 0 ? (
            <Empty title="Nothing has a score this week.">What comes in is scored within the hour, or by hand.</Empty>
          ) : (
            <>
              <div className="columns">
                <Figures>
                  <Figure
                    label="Mean score"
                    value={total.mean === null ? '–' : fixed(total.mean)}
                    note={`newest ${count(sample)} of 7 days`}
                  />
                  <Figure
                    label="Agreement with people"
                    value={told?.total.spearman == null ? '–' : fixed(told.total.spearman, 2)}
                    interval={
                      told?.total.low == null || told.total.high === null
                        ? null
                        : [fixed(told.total.low, 2), fixed(told.total.high, 2)]
                    }
                    tone={told === null ? 'plain' : agreementTone(told.total.state)}
                    note={told === null ? 'Spearman' : `Spearman, ${count(told.total.labels)} labels; alarm below 0.7`}
                  />
                  <Figure
                    label="Parts that moved"
                    value={told === null ? '–' : told.drift.filter(({ state }) => state === 'moved').length}
                    note="in four weeks"
                  />
                </Figures>
                <Histogram
                  bins={total.bins}
                  from="0"
                  to="1"
                  label={`How the scores of ${count(sample)} conversations are spread from 0 to 1`}
                />
              </div>
              {trust.problem && <p className="failed">{trust.problem.message}</p>}
              <Plain
                label="Parts of the reward"
                rows={parts.map((part) => ({
                  ...{ ...part, sample, agreement: of(told?.parts, part.name), drift: of(told?.drift, part.name) },
                }))}
                columns={columns}
                idOf={({ name }) => name}
                empty={<Empty title="The reward has no parts." />}
              />
            </>
          )
        }
      </Asked>
      {told !== null && <Counted at={told.countedAt} />}
      <Command line={pawl('reward', 'status', ['--agent', agent])} />
    </Panel>
  );
}

function ScoreNow({ agent, done }: { readonly agent: string; readonly done: () => void }) {
  const [since, setSince] = useState('');
  const [plan, setPlan] = useState<string | null>(null);
  const json = { agent, ...(since === '' ? {} : { since: new Date(since).toISOString() }) };
  const look = () => {
    setPlan('Counting …');
    ask('post', '/api/score/plans', { json }).then(
      ({ trajectories, pending, calls, money: cost }) =>
        setPlan(
          `${count(pending)} of ${count(trajectories)} conversations have no score of today’s evidence: ${count(calls)} calls to a judge, ${money(cost)}.`,
        ),
      (error: unknown) => setPlan(error instanceof Error ? error.message : String(error)),
    );
  };
  return (
    <Act
      name="Score now"
      needs="operator"
      title="Score what is new?"
      command={() => pawl('score', 'run', ['--agent', agent], ['--since', since])}
      does={() => ask('post', '/api/score/runs', { json })}
      done={done}
    >
      <p>Conversations whose evidence has not changed are left alone.</p>
      <Entry label="Began on or after (a week ago without it)" type="date" value={since} set={setSince} />
      <p>
        <button type="button" onClick={look}>
          What would it take?
        </button>
      </p>
      {plan !== null && <p role="status">{plan}</p>}
    </Act>
  );
}

/** Of the conversation whose id stands in the address, else of the newest that has a score. */
function Why({ agent }: { readonly agent: string }) {
  const asked = usePlace().query.get('why');
  const newest = useAnswer(
    `scored ${agent}`,
    (signal) => ask('get', '/api/trajectories', { query: { agent, minScore: 0, limit: 12 } }, signal),
    { topics: ['scores'] },
  );
  const rows = newest.value?.trajectories ?? [];
  const id = asked ?? rows[0]?.id ?? null;
  const scores = useAnswer(id === null ? null : `why ${agent} ${id}`, (signal) => readScores(id ?? '', agent, signal));
  return (
    <div className="columns">
      <Panel title="Newest with a score">
        <Asked of={newest} rows={6}>
          {({ trajectories }) => (
            <Plain
              label="Newest with a score"
              rows={trajectories}
              columns={[
                {
                  ...{ name: 'Conversation', grow: 3 },
                  cell: (row) => (
                    <button
                      type="button"
                      className="quiet cut"
                      aria-pressed={row.id === id}
                      onClick={() => setQuery({ why: row.id })}
                    >
                      <span dir="auto">{row.id}</span>
                    </button>
                  ),
                },
                {
                  name: 'Kind',
                  grow: 1.4,
                  isWide: true,
                  cell: ({ taskType }) => <span dir="auto">{taskType ?? '–'}</span>,
                },
                { name: 'Score', isNumber: true, cell: ({ score }) => (score === null ? '–' : fixed(score)) },
              ]}
              idOf={(row) => `${row.id} ${row.startedAt}`}
              empty={<Empty title="None has." />}
            />
          )}
        </Asked>
      </Panel>
      {id !== null && <Worth scores={scores} id={id} agent={agent} />}
    </div>
  );
}
