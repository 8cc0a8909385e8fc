/** What is learned from: the datasets and the funnel that made them, personal data, consent, and who must be forgotten by when. */
import { useState } from 'react';
import { useAgent } from '../agent.tsx';
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import type { PageProps } from '../pages.ts';
import { Act } from '../parts/act.tsx';
import { Command } from '../parts/command.tsx';
import { Counted } from '../parts/counted.tsx';
import { Entry } from '../parts/field.tsx';
import { Tag } from '../parts/figure.tsx';
import { Page, Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Plain } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { goTo, pathTo, withAgent } from '../router.tsx';
import { count, fixed, pawl } from '../words.ts';
import { Dataset, Funnel, leftAt } from './dataset.tsx';
import { Privacy } from './privacy.tsx';

const list = (agent: string, signal: AbortSignal) =>
  ask('get', '/api/datasets', { query: { agent, limit: 100 } }, signal);
type Listed = Awaited<ReturnType<typeof list>>['datasets'][number];

export default function Curate({ rest }: PageProps) {
  return rest[0] === undefined ? <List /> : <Dataset id={rest[0]} />;
}

const columns: readonly Column<Listed>[] = [
  { name: 'Dataset', grow: 2, cell: ({ id }) => <span dir="auto">{id}</span> },
  { name: 'Made', grow: 1.3, cell: ({ createdAt }) => <Time at={createdAt} /> },
  { name: 'Conversations', isNumber: true, cell: ({ rows }) => count(rows) },
  { name: 'Pairs', isNumber: true, isWide: true, cell: ({ pairs }) => count(pairs.rows) },
  { name: 'Looked at', isNumber: true, isWide: true, cell: ({ funnel }) => count(funnel[0]?.entered ?? 0) },
  {
    name: 'Kinds of task',
    isNumber: true,
    isWide: true,
    cell: ({ taskTypes }) => count(Object.keys(taskTypes).length),
  },
  {
    ...{ name: 'State', grow: 1.2 },
    cell: ({ gone, internal }) =>
      gone !== null ? (
        <span title={gone.because}>
          <Tag tone="warn">gone</Tag>
        </span>
      ) : internal ? (
        <Tag tone="warn">internal</Tag>
      ) : (
        <Tag tone="good">there</Tag>
      ),
  },
];

function List() {
  const agent = useAgent();
  const datasets = useAnswer(agent, (signal) => list(agent, signal), { topics: ['datasets'] });
  return (
    <Page
      title="Curate"
      about="What is fit to learn from, and the reasons for all that was left out."
      actions={<Make agent={agent} />}
    >
      <Asked of={datasets} rows={10}>
        {({ datasets: all }) => (
          <>
            <Held agent={agent} held={all[0] === undefined ? 0 : leftAt(all[0].funnel, 'shifts')} />
            {all[0] && (
              <Panel title="The funnel" note={`of ${all[0].id}, the newest`}>
                <Funnel steps={all[0].funnel} of="conversations" />
              </Panel>
            )}
            <Panel
              title="Datasets"
              note="newest first; one leads to its funnel, its conditions and what it has that another has not"
            >
              <Plain
                label="Datasets"
                rows={all}
                columns={columns}
                idOf={({ id }) => id}
                to={({ id }) => pathTo('curate', id)}
                empty={
                  <Empty title="There is no dataset yet.">
                    The loop makes one when there is enough; one can be made by hand.
                  </Empty>
                }
              />
              <Command line={pawl('datasets', 'list', ['--agent', agent])} />
            </Panel>
          </>
        )}
      </Asked>
      <Privacy agent={agent} />
    </Page>
  );
}

function Make({ agent }: { readonly agent: string }) {
  const [since, setSince] = useState('');
  const [preview, setPreview] = useState<string | null>(null);
  const json = { agent, ...(since === '' ? {} : { since: new Date(since).toISOString() }) };
  const look = () => {
    setPreview('Choosing …');
    ask('post', '/api/datasets', { json: { ...json, dryRun: true } }).then(
      ({ rows, pairs, funnel }) =>
        setPreview(
          `${count(rows)} of ${count(funnel[0]?.entered ?? 0)} conversations and ${count(pairs.rows)} pairs would be chosen.`,
        ),
      (error: unknown) => setPreview(error instanceof Error ? error.message : String(error)),
    );
  };
  return (
    <Act
      name="Make a dataset"
      needs="operator"
      isMain
      title="Make a dataset?"
      command={() => pawl('curate', 'run', ['--agent', agent], ['--since', since])}
      does={async () => {
        const made = await ask('post', '/api/datasets', { json });
        if ('id' in made && typeof made.id === 'string') goTo(withAgent(pathTo('curate', made.id)));
      }}
    >
      <p>What is new is scored, and what passes every gate is kept. The same selection is not made twice.</p>
      <Entry label="Began on or after (a week ago without it)" type="date" value={since} set={setSince} />
      <p>
        <button type="button" onClick={look}>
          What would be chosen?
        </button>
      </p>
      {preview !== null && <p role="status">{preview}</p>}
    </Act>
  );
}

const readShifts = (agent: string, signal: AbortSignal) => ask('get', '/api/shifts', { query: { agent } }, signal);
type Shift = Awaited<ReturnType<typeof readShifts>>['shifts'][number];

/** Comparing two weeks of scores takes a while: it is asked for when the newest dataset left something out for it, or by hand. */
function Held({ agent, held }: { readonly agent: string; readonly held: number }) {
  const [isAsked, setAsked] = useState(false);
  const isLooking = isAsked || held > 0;
  const shifts = useAnswer(isLooking ? `shifts ${agent}` : null, (signal) => readShifts(agent, signal));
  const columnsOfShifts: readonly Column<Shift>[] = [
    { name: 'Client key', grow: 2.4, cell: ({ key, name }) => <span title={key}>{name ?? key}</span> },
    { name: 'Kind of task', grow: 1.4, cell: ({ taskType }) => <span dir="auto">{taskType}</span> },
    { name: 'Score', grow: 1.4, cell: ({ before, now }) => `${fixed(before, 2)} → ${fixed(now, 2)}` },
    { name: 'Conversations', isNumber: true, isWide: true, cell: ({ conversations }) => count(conversations) },
    {
      ...{ name: 'State', grow: 1.6 },
      cell: ({ key, taskType, releasedAt }) =>
        releasedAt !== null ? (
          <Tag tone="good">released</Tag>
        ) : (
          <Act
            name="Release"
            needs="operator"
            reason="asked"
            title={`Learn from what came with this key about ${taskType}?`}
            command={(reason) => pawl('curate', 'release', key, taskType, ['--agent', agent], ['--reason', reason])}
            does={(reason) =>
              ask('post', '/api/shifts/release', {
                json: { agent, key, taskType, ...(reason === '' ? {} : { reason }) },
              })
            }
            done={shifts.again}
          >
            Its scores jumped and those of other keys did not. Release what came until now only if you know why.
          </Act>
        ),
    },
  ];
  return (
    <Panel
      title="Held for a person"
      note="scores of one key jumped, and those of others did not"
      actions={
        !isLooking && (
          <button type="button" onClick={() => setAsked(true)}>
            Look for jumps
          </button>
        )
      }
    >
      {isLooking ? (
        <Asked of={shifts} rows={2}>
          {({ shifts: all }) => (
            <Plain
              label="Held for a person"
              rows={all}
              columns={columnsOfShifts}
              idOf={({ key, taskType }) => `${key} ${taskType}`}
              empty={<Empty title="No key’s scores jumped this week." />}
            />
          )}
        </Asked>
      ) : (
        <p className="note">The newest dataset left nothing out for it.</p>
      )}
      {shifts.value !== null && <Counted at={shifts.value.countedAt} />}
    </Panel>
  );
}
