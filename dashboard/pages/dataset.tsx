/** One dataset: its funnel, what must hold before it is trained on, and what it has that another has not. */
import { useAgent } from '../agent.tsx';
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import { Bar } from '../parts/bar.tsx';
import { Command } from '../parts/command.tsx';
import { Counted } from '../parts/counted.tsx';
import { Choice } from '../parts/field.tsx';
import { Figure, Figures, Tag } from '../parts/figure.tsx';
import { Facts, Page, Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Plain } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { Link, pathTo, setQuery, usePlace } from '../router.tsx';
import { count, fixed, pawl, percent } from '../words.ts';

const read = (id: string, signal: AbortSignal) => ask('get', '/api/datasets/:id', { param: { id } }, signal);
type Found = Awaited<ReturnType<typeof read>>;
type Step = Found['funnel'][number];

export function Dataset({ id }: { readonly id: string }) {
  const found = useAnswer(id, (signal) => read(id, signal), { topics: ['datasets', 'erasures'] });
  return (
    <Page title={id} about={<Link to="/curate">All datasets</Link>}>
      <Asked of={found} rows={14}>
        {(dataset) => (
          <>
            <Short dataset={dataset} />
            <Panel title="Conversations" note="what came to each gate, what passed, and why the rest did not">
              <Funnel steps={dataset.funnel} of="conversations" />
            </Panel>
            {dataset.gone === null && <Conditions id={id} agent={dataset.agent} />}
            {(dataset.pairs.funnel[0]?.entered ?? 0) > 0 && (
              <Panel title="Pairs" note="pieces of evidence: corrections, votes, explored answers">
                <Funnel steps={dataset.pairs.funnel} of="pairs" />
              </Panel>
            )}
            <Diff dataset={dataset} />
          </>
        )}
      </Asked>
      <Command line={pawl('datasets', 'show', id)} />
    </Page>
  );
}

function Short({ dataset: { taskTypes, gone, pairs, settings, ...rest } }: { readonly dataset: Found }) {
  const types = Object.entries(taskTypes).toSorted(([, a], [, b]) => b - a);
  const came = rest.funnel[0]?.entered ?? 0;
  return (
    <Panel title="In short" note={<Time at={rest.createdAt} />}>
      {gone !== null && (
        <p className="failed">
          It is gone: {gone.because}.
          {gone.replacedBy !== null && (
            <Link to={pathTo('curate', gone.replacedBy)}>{gone.replacedBy} has the other rows</Link>
          )}
        </p>
      )}
      <Figures>
        <Figure
          label="Conversations"
          value={count(rest.rows)}
          note={came === 0 ? undefined : `${percent(rest.rows / came)} of ${count(came)}`}
        />
        <Figure
          label="Pairs"
          value={count(pairs.rows)}
          note={
            Object.entries(pairs.sources)
              .map(([source, n]) => `${count(n)} ${source}`)
              .join(', ') || undefined
          }
        />
        <Figure
          label="Crowd behind a question"
          value={settings.kAnonymity ?? 1}
          unit="people or more"
          note={`${count(leftAt(rest.funnel, 'k-anonymity'))} left out for it`}
        />
        <Figure label="Least score" value={fixed(settings.minScore, 2)} />
        <Figure
          label="Window"
          value={
            <>
              <Time at={rest.since} /> – <Time at={rest.until} />
            </>
          }
        />
        <Figure label="Leaves the house" value={rest.internal ? 'no' : 'yes'} tone={rest.internal ? 'warn' : 'plain'} />
      </Figures>
      <Facts
        of={[
          ['Kinds of task', types.map(([type, n]) => `${type} ${count(n)}`).join(' · ') || '–'],
          ['Reward', <code key="spec">{rest.spec}</code>],
          ['Hash', <code key="hash">{rest.hash}</code>],
        ]}
      />
    </Panel>
  );
}

/** How many a gate left out. */
export const leftAt = (funnel: readonly Step[], gate: string): number => {
  const step = funnel.find((one) => one.gate === gate);
  return step === undefined ? 0 : step.entered - step.passed;
};

const columns: readonly Column<Step & { readonly first: number }>[] = [
  { name: 'Gate', grow: 1.4, cell: ({ gate }) => gate },
  {
    ...{ name: 'Of all', grow: 2, isWide: true },
    cell: ({ gate, passed, first }) => (
      <Bar share={first === 0 ? 0 : passed / first} label={`${count(passed)} of ${count(first)} after ${gate}`} />
    ),
  },
  { name: 'Came', isNumber: true, isWide: true, cell: ({ entered }) => count(entered) },
  { name: 'Passed', isNumber: true, cell: ({ passed }) => count(passed) },
  {
    ...{ name: 'Left out', isNumber: true },
    cell: ({ entered, passed }) => (entered === passed ? '–' : count(entered - passed)),
  },
  {
    ...{ name: 'Why', grow: 3.4, isWide: true },
    cell: ({ left }) => {
      const reasons = Object.entries(left)
        .map(([reason, n]) => `${count(n)} ${reason}`)
        .join(' · ');
      return (
        <span dir="auto" title={reasons}>
          {reasons}
        </span>
      );
    },
  },
];

export function Funnel({ steps, of }: { readonly steps: readonly Step[]; readonly of: string }) {
  const first = steps[0]?.entered ?? 0;
  return (
    <Plain
      label={`Funnel of ${of}`}
      rows={steps.map((step) => ({ ...step, first }))}
      columns={columns}
      idOf={({ gate }) => gate}
      empty={<Empty title="There is no funnel." />}
    />
  );
}

const check = (id: string, signal: AbortSignal) => ask('get', '/api/datasets/:id/check', { param: { id } }, signal);
type Condition = Awaited<ReturnType<typeof check>>['conditions'][number] & { readonly isWaived: boolean };

const conditionColumns: readonly Column<Condition>[] = [
  { name: 'Condition', cell: ({ name }) => name },
  {
    ...{ name: 'Holds', grow: 0.9 },
    cell: ({ met, isWaived }) => (
      <Tag tone={met ? 'good' : isWaived ? 'warn' : 'bad'}>{met ? 'yes' : isWaived ? 'gone without' : 'no'}</Tag>
    ),
  },
  { name: 'Found', grow: 3, cell: ({ found }) => <span title={found}>{found}</span> },
  { name: 'Needed', grow: 1.6, isWide: true, cell: ({ needed }) => <span title={needed}>{needed}</span> },
  { name: 'What to do', grow: 3, isWide: true, cell: ({ way }) => <span title={way}>{way}</span> },
];

function Conditions({ id, agent }: { readonly id: string; readonly agent: string }) {
  const checked = useAnswer(`check ${id}`, (signal) => check(id, signal));
  return (
    <Panel
      title="Before it is trained on"
      note={checked.value === null ? undefined : checked.value.ready ? 'it may be' : 'it may not be yet'}
    >
      <Asked of={checked} rows={7}>
        {({ conditions, without }) => (
          <Plain
            label="Conditions"
            rows={conditions.map((one) => ({ ...one, isWaived: without.includes(one.name) }))}
            columns={conditionColumns}
            idOf={({ name }) => name}
            empty={<Empty title="There are none." />}
          />
        )}
      </Asked>
      {checked.value !== null && <Counted at={checked.value.countedAt} />}
      <Command line={pawl('curate', 'check', ['--agent', agent], ['--dataset', id])} />
    </Panel>
  );
}

const readDiff = (id: string, other: string, signal: AbortSignal) =>
  ask('get', '/api/datasets/:id/diff', { param: { id: other }, query: { with: id } }, signal);
type Differs = Awaited<ReturnType<typeof readDiff>>;

function Diff({ dataset }: { readonly dataset: Found }) {
  const agent = useAgent();
  const others = useAnswer(`others ${agent}`, (signal) =>
    ask('get', '/api/datasets', { query: { agent, limit: 100 } }, signal),
  );
  const known = (others.value?.datasets ?? []).filter(({ id, gone }) => id !== dataset.id && gone === null);
  const asked = usePlace().query.get('with');
  const other = asked ?? known.find(({ version }) => version < dataset.version)?.id ?? known[0]?.id ?? null;
  const isThere = dataset.gone === null && other !== null;
  const diff = useAnswer(isThere ? `diff ${other} ${dataset.id}` : null, (signal) =>
    readDiff(dataset.id, other ?? '', signal),
  );
  return (
    <Panel title="Beside another">
      <Asked of={others} rows={4}>
        {() =>
          !isThere ? (
            <Empty title="There is no other to compare with." />
          ) : (
            <>
              <div className="filters">
                <Choice
                  label="Compared with"
                  value={other}
                  set={(id) => setQuery({ with: id })}
                  options={known.map(({ id, rows }) => [id, `${id}: ${count(rows)} conversations`])}
                />
              </div>
              <Asked of={diff} rows={4}>
                {(found) => <Different diff={found} />}
              </Asked>
              <Command line={pawl('datasets', 'diff', other, dataset.id)} />
            </>
          )
        }
      </Asked>
    </Panel>
  );
}

type Setting = { readonly name: string; readonly values: readonly (string | number | null)[] };
type OfType = { readonly type: string; readonly onlyFirst: number; readonly onlySecond: number; readonly both: number };

function Different({ diff: { datasets, rows, pairs, taskTypes, settings } }: { readonly diff: Differs }) {
  const [first, second] = datasets as [string, string];
  const named = (names: readonly string[]) => names.slice(0, 50);
  return (
    <>
      <Figures>
        <Figure
          label={`Only in ${first}`}
          value={count(rows.onlyFirst.length)}
          note={`${count(pairs.onlyFirst)} pairs`}
        />
        <Figure
          label={`Only in ${second}`}
          value={count(rows.onlySecond.length)}
          note={`${count(pairs.onlySecond)} pairs`}
        />
        <Figure label="The same in both" value={count(rows.same)} note={`${count(pairs.same)} pairs`} />
        <Figure label="Changed" value={count(rows.changed.length)} />
      </Figures>
      <div className="columns">
        <Plain<OfType>
          label="By kind of task"
          rows={Object.entries(taskTypes).map(([type, n]) => ({ type, ...n }))}
          columns={[
            { name: 'Kind of task', grow: 2, cell: ({ type }) => <span dir="auto">{type}</span> },
            {
              name: `Only ${first}`,
              isNumber: true,
              isLong: true,
              grow: 1.4,
              cell: ({ onlyFirst }) => count(onlyFirst),
            },
            {
              name: `Only ${second}`,
              isNumber: true,
              isLong: true,
              grow: 1.4,
              cell: ({ onlySecond }) => count(onlySecond),
            },
            { name: 'Both', isNumber: true, cell: ({ both }) => count(both) },
          ]}
          idOf={({ type }) => type}
          empty={<Empty title="Neither has conversations." />}
        />
        <Plain<Setting>
          label="Settings that differ"
          rows={Object.entries(settings).map(([name, values]) => ({ name, values }))}
          columns={[
            { name: 'Setting', grow: 1.4, cell: ({ name }) => <span className="wraps">{name}</span> },
            {
              name: first,
              isLong: true,
              grow: 2,
              cell: ({ values }) => <span className="wraps">{String(values[0] ?? '–')}</span>,
            },
            {
              name: second,
              isLong: true,
              grow: 2,
              cell: ({ values }) => <span className="wraps">{String(values[1] ?? '–')}</span>,
            },
          ]}
          idOf={({ name }) => name}
          empty={<Empty title="Nothing was set differently." />}
        />
      </div>
      {[
        [`Only in ${first}`, rows.onlyFirst] as const,
        [`Only in ${second}`, rows.onlySecond] as const,
        ['Changed', rows.changed] as const,
      ].map(
        ([title, all]) =>
          all.length > 0 && (
            <details key={title}>
              <summary>
                {title}: {count(all.length)}
                {all.length > 50 && ', the first 50'}
              </summary>
              <ul className="names">
                {named(all).map((one) => {
                  const [, id = one] = /^\S+ (.*)$/s.exec(one) ?? [];
                  return (
                    <li key={one}>
                      <Link to={pathTo('collect', id)}>
                        <span dir="auto">{id}</span>
                      </Link>
                    </li>
                  );
                })}
              </ul>
            </details>
          ),
      )}
    </>
  );
}
