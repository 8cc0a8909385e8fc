/** Who did what, and when: the log in which every line seals the one before it. */
import { useState } from 'react';
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import { Command } from '../parts/command.tsx';
import { Tag } from '../parts/figure.tsx';
import { type Filter, FilterBar, useFilters } from '../parts/filter.tsx';
import { Page, Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { useRows } from '../rows.ts';
import { count, pawl } from '../words.ts';

const filters: readonly Filter[] = [
  { kind: 'text', name: 'who', label: 'Who', hint: 'pawl: by itself' },
  { kind: 'text', name: 'type', label: 'What', hint: 'rollout- for all that begin so' },
  { kind: 'text', name: 'subject', label: 'About' },
  { kind: 'day', name: 'since', label: 'From' },
  { kind: 'day', name: 'until', label: 'Before' },
];

const asking = (chosen: Readonly<Record<string, string>>, cursor: string | undefined, signal: AbortSignal) =>
  ask('get', '/api/audit', { query: { ...chosen, limit: 100, cursor } }, signal);
type Row = Awaited<ReturnType<typeof asking>>['rows'][number];

const columns: readonly Column<Row>[] = [
  { name: '#', grow: 0.6, isNumber: true, isWide: true, cell: ({ n }) => n },
  { name: 'When', grow: 1.3, cell: ({ at }) => <Time at={at} /> },
  { name: 'Who', grow: 1.2, cell: ({ actor }) => <span dir="auto">{actor}</span> },
  { name: 'What', grow: 1.8, cell: ({ event }) => event },
  { name: 'About', grow: 2, isWide: true, cell: ({ subject }) => <span title={subject}>{subject}</span> },
  { name: 'Agent', grow: 1, isWide: true, cell: ({ agent }) => agent },
  {
    ...{ name: 'Details', grow: 4, isWide: true },
    cell: ({ details }) => (
      <code dir="auto" title={JSON.stringify(details)}>
        {JSON.stringify(details)}
      </code>
    ),
  },
  { name: 'Seal', grow: 0.9, isWide: true, cell: ({ hash }) => <code title={hash}>{hash.slice(0, 10)}</code> },
];
const idOf = ({ n }: Row): string => String(n);

export default function Audit() {
  const chosen = useFilters(filters);
  const rows = useRows(
    JSON.stringify(chosen),
    async (cursor, signal) => {
      const page = await asking(chosen, cursor, signal);
      return { rows: page.rows, next: page.next === null ? null : String(page.next) };
    },
    idOf,
    { topics: ['audit'] },
  );
  const { who, type, subject, since, until } = chosen;
  return (
    <Page
      title="Audit"
      about="Everything that people and Pawl itself changed, newest first. No line can be altered without breaking the seals after it."
    >
      <FilterBar filters={filters} />
      <Table
        label="Audit log"
        rows={rows}
        columns={columns}
        idOf={idOf}
        empty={<Empty title="Nothing is written down that fits." />}
      />
      <Command
        line={pawl(
          'audit',
          'list',
          ['--who', who],
          ['--type', type],
          ['--subject', subject],
          ['--since', since],
          ['--until', until],
        )}
      />
      <Seals />
    </Page>
  );
}

/** Reads the whole log, so only when somebody asks. */
function Seals() {
  const [round, setRound] = useState(0);
  const found = useAnswer(round === 0 ? null : `seals ${round}`, (signal) =>
    ask('get', '/api/audit/verify', {}, signal),
  );
  return (
    <Panel
      title="Whether it is whole"
      actions={
        <button type="button" onClick={() => setRound(round + 1)}>
          Check every seal
        </button>
      }
    >
      {round > 0 && (
        <Asked of={found} rows={1}>
          {({ rows, head, problem }) => (
            <p>
              <Tag tone={problem === null ? 'good' : 'bad'}>{problem === null ? 'whole' : 'broken'}</Tag> {count(rows)}{' '}
              lines; the last seal is <code>{head.slice(0, 16)}</code>.{' '}
              {problem !== null && `Line ${problem.n}: ${problem.problem}`}
            </p>
          )}
        </Asked>
      )}
      <Command line="pawl audit verify" />
    </Panel>
  );
}
