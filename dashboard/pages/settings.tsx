/** How this installation is: health, keys, who may look, and what is set. What is set is a file; here it is only read. */
import { type FormEvent, useState } from 'react';
import { useAgent, useAgents } from '../agent.tsx';
import { asProblem, useAnswer } from '../answer.ts';
import { ask, type Problem } from '../client.ts';
import { Act } from '../parts/act.tsx';
import { Command } from '../parts/command.tsx';
import { Figure, Figures, Tag } from '../parts/figure.tsx';
import { ForeignData } from '../parts/foreign.tsx';
import { Page, Panel } from '../parts/layout.tsx';
import { Asked, Empty, Failed } from '../parts/states.tsx';
import { type Column, Plain } from '../parts/table.tsx';
import { Tabs, useTab } from '../parts/tabs.tsx';
import { Time } from '../parts/time.tsx';
import { type Role, roles, useMay } from '../session.tsx';
import { bytes, count, duration, pawl } from '../words.ts';

const tabs = [
  { id: 'health', name: 'Health' },
  { id: 'keys', name: 'Keys' },
  { id: 'access', name: 'Access' },
  { id: 'set', name: 'What is set' },
];

export default function Settings() {
  const tab = useTab(tabs);
  const isAdmin = useMay('admin');
  return (
    <Page title="Settings" about="This installation: how it is, who comes in, and what is set.">
      <Tabs tabs={tabs} label="Settings" />
      {tab === 'health' ? (
        <Health />
      ) : isAdmin ? (
        tab === 'keys' ? (
          <Keys />
        ) : tab === 'access' ? (
          <Access />
        ) : (
          <Shown />
        )
      ) : (
        <Empty title="This needs the role admin.">Sign in with another token to see it.</Empty>
      )}
    </Page>
  );
}

const readStatus = (signal: AbortSignal) => ask('get', '/api/status', {}, signal);
type Process = NonNullable<Awaited<ReturnType<typeof readStatus>>['detail']>['processes'][number];

const processColumns: readonly Column<Process>[] = [
  { name: 'Process', grow: 2, cell: ({ host, pid }) => `${host}, ${pid}` },
  { name: 'State', cell: ({ alive }) => <Tag tone={alive ? 'good' : 'bad'}>{alive ? 'alive' : 'gone'}</Tag> },
  { name: 'Roles', grow: 1.5, cell: ({ roles: its }) => its.join(', ') },
  { name: 'Version', isWide: true, cell: ({ version }) => version },
  { name: 'Started', grow: 1.2, isWide: true, cell: ({ startedAt }) => <Time at={startedAt} /> },
  {
    name: 'Is at',
    grow: 2,
    isWide: true,
    cell: ({ doing }) => doing.map(({ stage, text }) => `${stage}: ${text}`).join('; ') || '–',
  },
  { name: 'Problems', grow: 3, cell: ({ problems }) => <span className="wraps">{problems.join(' ') || '–'}</span> },
];

function Health() {
  const found = useAnswer('status', readStatus, { topics: ['loop', 'trajectories'] });
  return (
    <Asked of={found} rows={8}>
      {({ version, status, detail }) => (
        <>
          <Panel title="Pawl" note={version}>
            <Figures>
              <Figure label="Status" value={status} tone={status === 'ok' ? 'good' : 'bad'} />
              {detail !== null && (
                <>
                  <Figure
                    label="Database"
                    value={detail.database.reachable ? 'reachable' : 'away'}
                    note={`${detail.database.kind}, PostgreSQL ${detail.database.serverVersion}`}
                    tone={detail.database.reachable ? 'plain' : 'bad'}
                  />
                  <Figure
                    label="Size"
                    value={detail.database.sizeBytes === null ? '–' : bytes(detail.database.sizeBytes)}
                    note={`${detail.database.days.length} days`}
                  />
                </>
              )}
              {detail?.recording && (
                <>
                  <Figure label="Recorded" value={count(detail.recording.recorded)} note="since the start" />
                  <Figure
                    label="Waiting"
                    value={count(detail.recording.queueDepth)}
                    note={bytes(detail.recording.journalBytes)}
                  />
                  <Figure label="Behind" value={duration(detail.recording.sinkLagMs)} />
                  <Figure
                    label="Lost"
                    value={count(Object.values(detail.recording.dropped).reduce((sum, n) => sum + n, 0))}
                  />
                </>
              )}
            </Figures>
            {detail === null && <p className="note">More is shown to those who may see it.</p>}
          </Panel>
          {detail !== null && (
            <Panel title="Processes">
              <Plain
                label="Processes"
                rows={detail.processes}
                columns={processColumns}
                idOf={({ id, pid }) => `${id} ${pid}`}
                empty={<Empty title="No process has said that it lives." />}
              />
            </Panel>
          )}
          <Command line="pawl doctor" />
        </>
      )}
    </Asked>
  );
}

const readKeys = (signal: AbortSignal) => ask('get', '/api/keys', {}, signal);
type Key = Awaited<ReturnType<typeof readKeys>>['keys'][number];

function Keys() {
  const agent = useAgent();
  const { agents } = useAgents();
  const found = useAnswer('keys', readKeys, { topics: ['audit'] });
  const columns: readonly Column<Key>[] = [
    { name: 'Key', grow: 2, cell: ({ name }) => <span dir="auto">{name}</span> },
    { name: 'Agent', grow: 1.2, cell: ({ agent: whose }) => whose },
    { name: 'Begins', grow: 1.4, isWide: true, cell: ({ prefix }) => <code>{prefix}…</code> },
    { name: 'May', grow: 1.6, isWide: true, cell: ({ scopes }) => scopes.join(', ') },
    {
      name: 'Per minute',
      isNumber: true,
      isWide: true,
      cell: ({ rateLimit }) => (rateLimit === null ? '–' : count(rateLimit)),
    },
    { name: 'Made', grow: 1.2, isWide: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      name: 'Last used',
      grow: 1.2,
      isWide: true,
      cell: ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : <Time at={lastUsedAt} />),
    },
    {
      ...{ name: 'State', grow: 1.2 },
      cell: ({ id, name, revokedAt }) =>
        revokedAt === null ? (
          <Act
            name="Revoke"
            needs="admin"
            isDanger
            title={`Revoke the key ${name}?`}
            command={() => pawl('keys', 'revoke', id)}
            does={() => ask('delete', '/api/keys/:id', { param: { id } })}
            done={found.again}
          >
            Whoever uses it is refused from now on, for good.
          </Act>
        ) : (
          <Tag>revoked</Tag>
        ),
    },
  ];
  return (
    <Panel title="Client keys" note="what agents send their calls with">
      <Maker
        label="Make a key"
        what="What it is for"
        choice={{ label: 'Agent', options: agents, first: agent }}
        make={async (name, whose) => (await ask('post', '/api/keys', { json: { name, agent: whose } })).token}
        command={(name, whose) => pawl('keys', 'create', name === '' ? 'NAME' : name, ['--agent', whose])}
        done={found.again}
      />
      <Asked of={found} rows={4}>
        {({ keys }) => (
          <Plain
            label="Client keys"
            rows={keys}
            columns={columns}
            idOf={({ id }) => id}
            empty={<Empty title="There is no key yet." />}
          />
        )}
      </Asked>
      <Command line="pawl keys list" />
    </Panel>
  );
}

const readAccess = (signal: AbortSignal) => ask('get', '/api/access', {}, signal);
type OneAccess = Awaited<ReturnType<typeof readAccess>>['access'][number];

function Access() {
  const found = useAnswer('access', readAccess, { topics: ['audit'] });
  const columns: readonly Column<OneAccess>[] = [
    { name: 'Who', grow: 2, cell: ({ name }) => <span dir="auto">{name}</span> },
    { name: 'Role', grow: 1.2, cell: ({ role }) => role },
    { name: 'Begins', grow: 1.6, isWide: true, cell: ({ prefix }) => <code>{prefix}…</code> },
    { name: 'Made', grow: 1.2, isWide: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      name: 'Last seen',
      grow: 1.2,
      isWide: true,
      cell: ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : <Time at={lastUsedAt} />),
    },
    {
      ...{ name: 'State', grow: 1.2 },
      cell: ({ id, name, revokedAt }) =>
        revokedAt === null ? (
          <Act
            name="Revoke"
            needs="admin"
            isDanger
            title={`Take ${name}’s access away?`}
            command={() => pawl('access', 'revoke', id)}
            does={() => ask('delete', '/api/access/:id', { param: { id } })}
            done={found.again}
          >
            Their sessions end with it.
          </Act>
        ) : (
          <Tag>revoked</Tag>
        ),
    },
  ];
  return (
    <Panel title="Who may look" note="besides the holder of the admin token">
      <Maker
        label="Give access"
        what="Whose it is"
        choice={{ label: 'Role', options: roles, first: 'viewer' }}
        make={async (name, role) => (await ask('post', '/api/access', { json: { name, role: role as Role } })).token}
        command={(name, role) => pawl('access', 'create', name === '' ? 'NAME' : name, ['--role', role])}
        done={found.again}
      />
      <Asked of={found} rows={4}>
        {({ access }) => (
          <Plain
            label="Access"
            rows={access}
            columns={columns}
            idOf={({ id }) => id}
            empty={<Empty title="Nobody else has access." />}
          />
        )}
      </Asked>
      <Command line="pawl access list" />
    </Panel>
  );
}

type MakerProps = {
  readonly label: string;
  readonly what: string;
  readonly choice: { readonly label: string; readonly options: readonly string[]; readonly first: string };
  /** Gives the token, which is shown this once. */
  readonly make: (name: string, chosen: string) => Promise<string>;
  readonly command: (name: string, chosen: string) => string;
  readonly done: () => void;
};

function Maker({ label, what, choice, make, command, done }: MakerProps) {
  const [name, setName] = useState('');
  const [chosen, choose] = useState(choice.first);
  const [token, setToken] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setProblem(null);
    make(name.trim(), chosen).then(
      (made) => {
        setToken(made);
        setName('');
        done();
      },
      (error: unknown) => setProblem(asProblem(error)),
    );
  };
  return (
    <>
      <form className="filters" onSubmit={submit} aria-label={label}>
        <label>
          <span>{what}</span>
          <input value={name} onChange={(event) => setName(event.target.value)} maxLength={100} required />
        </label>
        <label>
          <span>{choice.label}</span>
          <select value={chosen} onChange={(event) => choose(event.target.value)}>
            {choice.options.map((option) => (
              <option key={option}>{option}</option>
            ))}
          </select>
        </label>
        <button type="submit" className="main" disabled={name.trim() === ''}>
          {label}
        </button>
      </form>
      <Command line={command(name.trim(), chosen)} />
      {problem && <Failed problem={problem} />}
      {token !== null && (
        <div className="made" role="status">
          <p>This token is shown this once; only its hash is stored.</p>
          <Command line={token} />
        </div>
      )}
    </>
  );
}

function Shown() {
  const found = useAnswer('settings', (signal) => ask('get', '/api/settings', {}, signal));
  return (
    <Asked of={found} rows={12}>
      {({ settings }) => (
        <>
          {Object.entries(settings).map(([name, value]) => (
            <Panel key={name} title={name}>
              {value === null || value === undefined ? <p className="note">not set</p> : <ForeignData value={value} />}
            </Panel>
          ))}
          <p className="note">
            Settings are files: pawl.config.ts, and one for each agent. A change is read at the next start.
          </p>
        </>
      )}
    </Asked>
  );
}
