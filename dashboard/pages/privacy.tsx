/** How privacy stands: personal data by kind and place, consent by purpose, and the clock of what must be forgotten. */
import { useState } from 'react';
import { type Answer, useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import { Bar } from '../parts/bar.tsx';
import { Command } from '../parts/command.tsx';
import { Figure, Figures, Tag } from '../parts/figure.tsx';
import { Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Plain } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { ago, count, pawl, percent } from '../words.ts';

const read = (agent: string, signal: AbortSignal) => ask('get', '/api/privacy', { query: { agent } }, signal);
type Standing = Awaited<ReturnType<typeof read>>;

export function Privacy({ agent }: { readonly agent: string }) {
  const privacy = useAnswer(`privacy ${agent}`, (signal) => read(agent, signal), { topics: ['erasures'] });
  return (
    <>
      <div className="columns">
        <Personal agent={agent} of={privacy} />
        <Consent agent={agent} of={privacy} />
      </div>
      <Erasures />
    </>
  );
}

type OfAgent = { readonly agent: string; readonly of: Answer<Standing> };
type Masked = { readonly type: string; readonly count: number };
type Placed = { readonly kind: string; readonly count: number; readonly in: number; readonly where: string };

const maskedColumns: readonly Column<Masked>[] = [
  { name: 'Kind', grow: 2, cell: ({ type }) => type },
  { name: 'Masked', isNumber: true, cell: ({ count: n }) => count(n) },
];
const placedColumns: readonly Column<Placed>[] = [
  { name: 'Kind', grow: 1.4, cell: ({ kind }) => kind },
  { name: 'Masked', isNumber: true, cell: ({ count: n }) => count(n) },
  { name: 'Conversations', isNumber: true, isWide: true, grow: 1.2, cell: ({ in: n }) => count(n) },
  { name: 'In whose words', grow: 3, cell: ({ where }) => <span title={where}>{where || '–'}</span> },
];

/** By kind from a sample, at once; by place from every turn of the week, when somebody asks. */
function Personal({ agent, of }: OfAgent) {
  const [isWhole, setWhole] = useState(false);
  const survey = useAnswer(isWhole ? `pii ${agent}` : null, (signal) =>
    ask('get', '/api/pii', { query: { agent } }, signal),
  );
  const none = <Empty title="None was found." />;
  return (
    <Panel
      title="Personal data"
      note="masked before it was stored, of seven days; values are kept nowhere"
      actions={
        !isWhole && (
          <button type="button" onClick={() => setWhole(true)}>
            In whose words?
          </button>
        )
      }
    >
      {isWhole ? (
        <Asked of={survey} rows={6}>
          {({ conversations, turns, masked, unread }) => (
            <>
              <p className="note">
                {count(conversations)} conversations, {count(turns)} turns looked at
                {unread > 0 && `, ${count(unread)} too large to be`}.
              </p>
              <Plain
                label="Personal data"
                rows={Object.entries(masked)
                  .map(([kind, { count: n, in: conversationsWith, where }]) => ({
                    ...{ kind, count: n, in: conversationsWith },
                    where: Object.entries(where)
                      .toSorted(([, a], [, b]) => b - a)
                      .map(([whose, times]) => `${whose} ${count(times)}`)
                      .join(' · '),
                  }))
                  .toSorted((a, b) => b.count - a.count)}
                columns={placedColumns}
                idOf={({ kind }) => kind}
                empty={none}
              />
            </>
          )}
        </Asked>
      ) : (
        <Asked of={of} rows={6}>
          {({ masked, turns }) => (
            <>
              <p className="note">{count(turns)} turns looked at.</p>
              <Plain
                label="Personal data"
                rows={masked}
                columns={maskedColumns}
                idOf={({ type }) => type}
                empty={none}
              />
            </>
          )}
        </Asked>
      )}
      <Command line={pawl('pii', 'report', ['--agent', agent])} />
    </Panel>
  );
}

const purposes = [
  ['learn', 'to learn from them'],
  ['transfer', 'to cross a region'],
  ['tenants', 'to serve other tenants'],
] as const;
type Purpose = { readonly name: string; readonly given: number; readonly withdrawn: number };

const consentColumns: readonly Column<Purpose>[] = [
  { name: 'Users agreed', grow: 2, cell: ({ name }) => name },
  { name: 'Given', isNumber: true, cell: ({ given }) => count(given) },
  { name: 'Withdrawn', isNumber: true, cell: ({ withdrawn }) => count(withdrawn) },
  {
    ...{ name: 'Share', grow: 1.4 },
    cell: ({ name, given, withdrawn }) =>
      given + withdrawn === 0 ? (
        '–'
      ) : (
        <Bar
          share={given / (given + withdrawn)}
          label={`${percent(given / (given + withdrawn))} of those who said something agreed ${name}`}
          tone="good"
        />
      ),
  },
];

function Consent({ agent, of }: OfAgent) {
  return (
    <Panel title="Consent" note="who said nothing has not agreed">
      <Asked of={of} rows={5}>
        {({ consent, erasures, holds }) => (
          <>
            <Plain
              label="Consent by purpose"
              rows={purposes.map(([purpose, name]) => ({ name, ...consent[purpose] }))}
              columns={consentColumns}
              idOf={({ name }) => name}
              empty={null}
            />
            <Figures>
              <Figure
                label="To be forgotten"
                value={count(erasures.open)}
                note={erasures.next === null ? undefined : due(erasures.next)}
              />
              <Figure
                label="Overdue"
                value={count(erasures.overdue)}
                tone={erasures.overdue > 0 ? 'bad' : 'good'}
                note="seven days are allowed"
              />
              <Figure label="Legal holds" value={count(holds)} tone={holds > 0 ? 'warn' : 'plain'} />
            </Figures>
          </>
        )}
      </Asked>
      <Command line={pawl('consent', 'list', ['--agent', agent])} />
    </Panel>
  );
}

const due = (at: string): string => `due ${ago(new Date(at), new Date())}`;

const readErasures = (signal: AbortSignal) => ask('get', '/api/erasures', { query: { limit: 50 } }, signal);
type Erasure = Awaited<ReturnType<typeof readErasures>>['erasures'][number];

const erasureColumns: readonly Column<Erasure>[] = [
  { name: 'User', grow: 1.6, cell: ({ user }) => <code title={user}>{user.slice(0, 12)}</code> },
  { name: 'Asked', grow: 1.3, cell: ({ at }) => <Time at={at} /> },
  {
    ...{ name: 'State', grow: 1.6 },
    cell: ({ status, dueAt, problem }) =>
      status === 'done' ? (
        <Tag tone="good">forgotten</Tag>
      ) : (
        <span title={problem ?? undefined}>
          <Tag tone={new Date(dueAt) < new Date() ? 'bad' : 'warn'}>{due(dueAt)}</Tag>
        </span>
      ),
  },
  { name: 'Conversations', isNumber: true, cell: ({ counts }) => count(counts.conversations) },
  { name: 'Datasets', isNumber: true, isWide: true, cell: ({ datasets }) => count(datasets.length) },
  {
    ...{ name: 'Models that learned from them', grow: 2.4, isWide: true },
    cell: ({ datasets }) => (
      <span dir="auto">{[...new Set(datasets.flatMap(({ learned }) => learned.releases))].join(', ') || '–'}</span>
    ),
  },
  { name: 'By', isWide: true, cell: ({ actor }) => <span dir="auto">{actor}</span> },
];

function Erasures() {
  const erasures = useAnswer('erasures', readErasures, { topics: ['erasures'] });
  return (
    <Panel title="The erasure clock" note="everything of a user goes within seven days; weights cannot forget">
      <Asked of={erasures} rows={4}>
        {({ erasures: all }) => (
          <Plain
            label="Erasures"
            rows={all}
            columns={erasureColumns}
            idOf={({ id }) => id}
            empty={<Empty title="Nobody asked to be forgotten." />}
          />
        )}
      </Asked>
      <Command line={pawl('erase', '--list')} />
    </Panel>
  );
}
