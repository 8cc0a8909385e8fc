/** Conversations as they come in: search, filter, watch; each leads to itself, turn by turn. */
import { useState } from 'react';
import { useAgent } from '../agent.tsx';
import { ask } from '../client.ts';
import type { PageProps } from '../pages.ts';
import { Command } from '../parts/command.tsx';
import { Tag } from '../parts/figure.tsx';
import { type Filter, FilterBar, useFilters } from '../parts/filter.tsx';
import { Page } from '../parts/layout.tsx';
import { Empty } from '../parts/states.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { pathTo } from '../router.tsx';
import { useRows } from '../rows.ts';
import { count, duration, fixed, pawl, short } from '../words.ts';
import { Trajectory } from './trajectory.tsx';

type Listed = Awaited<ReturnType<typeof asking>>['trajectories'][number];

const filters: readonly Filter[] = [
  { kind: 'text', name: 'text', label: 'Said', hint: 'in question or answer' },
  { kind: 'day', name: 'since', label: 'From' },
  { kind: 'day', name: 'until', label: 'Before' },
  {
    ...{ kind: 'choice', name: 'vote', label: 'Vote' },
    options: [
      ['up', 'up'],
      ['down', 'down'],
      ['none', 'nobody voted'],
    ],
  },
  { kind: 'choice', name: 'errors', label: 'Errors', options: [['true', 'with a failed turn']] },
  { kind: 'text', name: 'user', label: 'User', hint: 'id as the agent sends it', isMore: true },
  { kind: 'choice', name: 'hashed', label: 'User is', options: [['true', 'a hash']], isMore: true },
  { kind: 'text', name: 'release', label: 'Release', isMore: true },
  { kind: 'text', name: 'taskType', label: 'Task type', isMore: true },
  { kind: 'text', name: 'minScore', label: 'Score from', hint: '0', isMore: true },
  { kind: 'text', name: 'maxScore', label: 'Score to', hint: '1', isMore: true },
  {
    ...{ kind: 'choice', name: 'origin', label: 'Origin', isMore: true },
    options: ['production', 'exploration', 'shadow', 'simulation', 'evaluation', 'judge'].map((one) => [one, one]),
  },
  {
    ...{ kind: 'choice', name: 'consent', label: 'Consent', isMore: true },
    options: ['given', 'withdrawn', 'unknown'].map((one) => [one, one]),
  },
];

const asking = (
  agent: string,
  chosen: Readonly<Record<string, string>>,
  cursor: string | undefined,
  signal: AbortSignal,
) => ask('get', '/api/trajectories', { query: { agent, ...chosen, limit: 100, cursor } }, signal);

const columns: readonly Column<Listed>[] = [
  { name: 'Conversation', grow: 2.6, cell: ({ id }) => <span dir="auto">{id}</span> },
  { name: 'Began', grow: 1.5, cell: ({ startedAt }) => <Time at={startedAt} /> },
  { name: 'Turns', isNumber: true, cell: ({ turns }) => count(turns) },
  { name: 'Task', isWide: true, grow: 1.4, cell: ({ taskType }) => taskType ?? '–' },
  { name: 'Score', isNumber: true, cell: ({ score }) => (score === null ? '–' : fixed(score, 2)) },
  {
    ...{ name: 'Vote', isWide: true, grow: 1.2 },
    cell: ({ vote }) =>
      vote === null ? '–' : <Tag tone={vote > 0.5 ? 'good' : 'bad'}>{vote > 0.5 ? 'up' : 'down'}</Tag>,
  },
  {
    name: 'Errors',
    isNumber: true,
    isWide: true,
    cell: ({ errors }) => (errors === 0 ? '–' : <Tag tone="bad">{errors}</Tag>),
  },
  {
    ...{ name: 'Tokens', isNumber: true, isWide: true, grow: 1.7 },
    cell: ({ promptTokens, completionTokens }) => `${short(promptTokens)} → ${short(completionTokens)}`,
  },
  { name: 'Time', isNumber: true, isWide: true, grow: 1.2, cell: ({ latencyMs }) => duration(latencyMs) },
  { name: 'Release', isWide: true, grow: 2, cell: ({ release }) => <span dir="auto">{release}</span> },
  { name: 'Origin', isWide: true, grow: 1.5, cell: ({ origin }) => origin },
  {
    name: 'Consent',
    isWide: true,
    grow: 1.7,
    cell: ({ consent }) => <Tag tone={consent === 'given' ? 'good' : 'plain'}>{consent}</Tag>,
  },
];
const idOf = ({ id, startedAt }: Listed): string => `${id} ${startedAt}`;

export default function Collect({ rest }: PageProps) {
  return rest[0] === undefined ? <List /> : <Trajectory id={rest[0]} />;
}

function List() {
  const agent = useAgent();
  const chosen = useFilters(filters);
  const [isFollowing, follow] = useState(true);
  const rows = useRows(
    JSON.stringify([agent, chosen]),
    async (cursor, signal) => {
      const { trajectories, next } = await asking(agent, chosen, cursor, signal);
      return { rows: trajectories, next };
    },
    idOf,
    { topics: isFollowing ? ['trajectories'] : [] },
  );
  const options = [
    ...(['user', 'release', 'origin', 'consent', 'vote', 'text', 'since', 'until'] as const).map(
      (name) => [`--${name}`, chosen[name]] as const,
    ),
    ['--task-type', chosen.taskType] as const,
    ['--min-score', chosen.minScore] as const,
    ['--max-score', chosen.maxScore] as const,
  ];
  return (
    <Page
      title="Collect"
      about="Every conversation that came through the gateway or was imported, newest first."
      actions={
        <label className="check">
          <input type="checkbox" checked={isFollowing} onChange={(event) => follow(event.target.checked)} /> Follow what
          comes in
        </label>
      }
    >
      <FilterBar filters={filters} />
      <Table
        label="Conversations"
        rows={rows}
        columns={columns}
        idOf={idOf}
        to={({ id }) => pathTo('collect', id)}
        empty={
          <Empty title="No conversation is here.">
            Send your agent’s calls through the gateway, or <code>pawl trajectories import FILE</code>.
          </Empty>
        }
      />
      <Command
        line={pawl(
          'trajectories',
          'list',
          ['--agent', agent],
          ...options,
          chosen.errors ? '--errors' : undefined,
          chosen.hashed ? '--hashed' : undefined,
        )}
      />
    </Page>
  );
}
