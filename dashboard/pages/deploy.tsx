/** What answers users, what is on its way to them, and everything that could. */
import { useState } from 'react';
import { useAgent } from '../agent.tsx';
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import type { PageProps } from '../pages.ts';
import { Act } from '../parts/act.tsx';
import { Command } from '../parts/command.tsx';
import { Entry } from '../parts/field.tsx';
import { Tag, type Tone } from '../parts/figure.tsx';
import { Page, Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Plain } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { goTo, pathTo, withAgent } from '../router.tsx';
import { pawl, percent } from '../words.ts';
import { OneRelease } from './release.tsx';
import { Ladder, OneRollout } from './rollout.tsx';

const readReleases = (agent: string, signal: AbortSignal) =>
  ask('get', '/api/releases', { query: { agent, limit: 200 } }, signal);
const readRollouts = (agent: string, signal: AbortSignal) =>
  ask('get', '/api/rollouts', { query: { agent, limit: 200 } }, signal);
const readServing = (agent: string, signal: AbortSignal) => ask('get', '/api/serving', { query: { agent } }, signal);
type Serving = Awaited<ReturnType<typeof readServing>>;
type Release = Awaited<ReturnType<typeof readReleases>>['releases'][number];
export type Rollout = Awaited<ReturnType<typeof readRollouts>>['rollouts'][number];

export const toneOf = (phase: Rollout['phase']): Tone =>
  phase === 'promoted'
    ? 'good'
    : phase === 'rolled-back'
      ? 'bad'
      : phase === 'waiting' || phase === 'paused'
        ? 'warn'
        : 'plain';

const rolloutColumns: readonly Column<Rollout>[] = [
  { name: 'Rollout', grow: 2.4, cell: ({ id }) => <span className="wraps">{id}</span> },
  { name: 'Phase', grow: 1.5, cell: ({ phase }) => <Tag tone={toneOf(phase)}>{phase}</Tag> },
  { name: 'Users', isNumber: true, cell: ({ share }) => percent(share, 0) },
  { name: 'Candidate', isWide: true, grow: 1.8, cell: ({ candidate }) => <span className="wraps">{candidate}</span> },
  { name: 'Baseline', isWide: true, grow: 1.8, cell: ({ baseline }) => <span className="wraps">{baseline}</span> },
  { name: 'Began', grow: 1.4, cell: ({ createdAt }) => <Time at={createdAt} /> },
  { name: 'Ended', isWide: true, grow: 1.4, cell: ({ endedAt }) => (endedAt === null ? '–' : <Time at={endedAt} />) },
  {
    name: 'Why',
    isWide: true,
    grow: 3.4,
    cell: ({ reasons }) => <span title={reasons.join(' ')}>{reasons[0] ?? '–'}</span>,
  },
];
const releaseColumns: readonly Column<Release>[] = [
  { name: 'Release', grow: 2, cell: ({ name }) => <span className="wraps">{name}</span> },
  { name: 'State', grow: 1.2, cell: ({ serving }) => (serving ? <Tag tone="good">serves</Tag> : '–') },
  { name: 'Model', grow: 2, cell: ({ model }) => <span className="wraps">{model}</span> },
  { name: 'Upstream', isWide: true, grow: 1.2, cell: ({ upstream }) => upstream },
  { name: 'Run', isWide: true, grow: 2, cell: ({ run }) => <span className="wraps">{run ?? '–'}</span> },
  { name: 'Report', isWide: true, grow: 1.6, cell: ({ report }) => <span className="wraps">{report ?? '–'}</span> },
  { name: 'Made', grow: 1.4, cell: ({ createdAt }) => <Time at={createdAt} /> },
];

export default function Deploy({ rest: [kind, id] }: PageProps) {
  if (kind === 'rollouts' && id !== undefined) return <OneRollout id={id} />;
  if (kind === 'releases' && id !== undefined) return <OneRelease name={id} />;
  return <Everything />;
}

function Everything() {
  const agent = useAgent();
  const releases = useAnswer(`releases ${agent}`, (signal) => readReleases(agent, signal), {
    topics: ['releases', 'rollouts'],
  });
  const rollouts = useAnswer(`rollouts ${agent}`, (signal) => readRollouts(agent, signal), { topics: ['rollouts'] });
  const serving = useAnswer(`serving ${agent}`, (signal) => readServing(agent, signal), {
    topics: ['releases', 'rollouts', 'audit'],
  });
  const open = rollouts.value?.rollouts.find(({ endedAt }) => endedAt === null);
  return (
    <Page
      title="Deploy"
      about="Which release answers, and what is on its way to users."
      actions={serving.value && <KillSwitch serving={serving.value} again={serving.again} />}
    >
      {serving.value?.killed && <Killed {...serving.value.killed} agent={agent} />}
      {open && (
        <Panel title={`${open.candidate} is on its way`} note={`${percent(open.share, 0)} of the users get it`}>
          <Ladder rollout={open} />
        </Panel>
      )}
      <Panel title="Rollouts">
        <Asked of={rollouts} rows={3}>
          {(value) => (
            <Plain
              label="Rollouts"
              rows={value.rollouts}
              columns={rolloutColumns}
              idOf={(one) => one.id}
              to={(one) => pathTo('deploy', 'rollouts', one.id)}
              empty={
                <Empty title="Nothing was ever rolled out.">
                  The loop begins a rollout when an evaluation passes; a release’s page begins one by hand.
                </Empty>
              }
            />
          )}
        </Asked>
        <Command line={pawl('rollouts', 'list', ['--agent', agent])} />
      </Panel>
      <Panel title="Releases" actions={<NewRelease agent={agent} />}>
        <Asked of={releases} rows={3}>
          {(value) => (
            <Plain
              label="Releases"
              rows={value.releases}
              columns={releaseColumns}
              idOf={(one) => one.name}
              to={(one) => pathTo('deploy', 'releases', one.name)}
              empty={
                <Empty title="There is no release yet.">
                  A release is a model at an upstream, or a checkpoint of a run.
                </Empty>
              }
            />
          )}
        </Asked>
        <Command line={pawl('releases', 'list', ['--agent', agent])} />
      </Panel>
      <Panel title="Pins" note="client keys and users who get one release, whatever is rolled out">
        <Asked of={serving} rows={2}>
          {({ pins }) => <Pins agent={agent} pins={pins} again={serving.again} />}
        </Asked>
        <Command line={pawl('releases', 'pins', ['--agent', agent])} />
      </Panel>
    </Page>
  );
}

type KillProps = { readonly serving: Serving; readonly again: () => void };

/** Half of it is shown at a time: it is pulled, or it is not. */
function KillSwitch({ serving: { agent, release, killed }, again }: KillProps) {
  if (killed !== null)
    return (
      <Act
        name="Release the kill switch"
        needs="operator"
        title={`Let rollouts of ${agent} begin again?`}
        reason="asked"
        command={(reason) => pawl('kill', agent, '--undo', ['--reason', reason])}
        does={(reason) => ask('post', '/api/kill/undo', { json: { agent, ...(reason === '' ? {} : { reason }) } })}
        done={again}
      >
        What answers now stays until a rollout or a person changes it.
      </Act>
    );
  return (
    <Act
      name="Kill switch"
      needs="operator"
      isDanger
      disabled={release === null ? 'No release serves.' : null}
      title={`Send all of ${agent}’s traffic back?`}
      reason="needed"
      command={(reason) => pawl('kill', agent, ['--reason', reason])}
      does={(reason) => ask('post', '/api/kill', { json: { agent, reason } })}
      done={again}
    >
      The baseline of the rollout under way answers everybody at once, or what served before {release}. The rollout is
      aborted, and none begins until the switch is released.
    </Act>
  );
}

type KilledProps = NonNullable<Serving['killed']> & { readonly agent: string };

function Killed({ by, reason, at, agent }: KilledProps) {
  return (
    <div className="failed" role="status">
      <p dir="auto">
        {by} pulled the kill switch <Time at={at} isAgo />: {reason} No rollout of {agent} begins until it is released.
      </p>
    </div>
  );
}

type Pin = Serving['pins'][number];
type PinsProps = { readonly agent: string; readonly pins: readonly Pin[]; readonly again: () => void };

function Pins({ agent, pins, again }: PinsProps) {
  const columns: readonly Column<Pin>[] = [
    { name: 'Who', grow: 3, cell: ({ kind, value }) => <span title={value}>{`${kind} ${value}`}</span> },
    { name: 'Gets', grow: 2, cell: ({ release }) => release },
    { name: 'By', isWide: true, grow: 1.2, cell: ({ by }) => <span dir="auto">{by}</span> },
    { name: 'Since', isWide: true, grow: 1.4, cell: ({ at }) => <Time at={at} /> },
    {
      ...{ name: 'Change', grow: 1.2 },
      cell: ({ kind, value, release }) => (
        <Act
          name="Let go"
          needs="operator"
          title={`Let this ${kind} go?`}
          command={() =>
            pawl(
              'releases',
              'unpin',
              ['--agent', agent],
              [`--${kind}`, value],
              kind === 'user' ? '--hashed' : undefined,
            )
          }
          does={() =>
            ask('post', '/api/releases/:name/unpin', {
              param: { name: release },
              json: { agent, ...(kind === 'key' ? { key: value } : { user: value, hashed: true }) },
            })
          }
          done={again}
        >
          From the next conversation on it gets what everybody gets.
        </Act>
      ),
    },
  ];
  return (
    <Plain
      label="Pins"
      rows={pins}
      columns={columns}
      idOf={({ kind, value }) => `${kind} ${value}`}
      empty={<Empty title="Nobody is pinned.">A release’s page pins a client key or a user to it.</Empty>}
    />
  );
}

const nothing = { name: '', upstream: '', model: '', checkpoint: '', run: '' };

function NewRelease({ agent }: { readonly agent: string }) {
  const [given, set] = useState(nothing);
  const of = (name: keyof typeof nothing) => ({
    ...{ value: given[name], set: (value: string) => set((old) => ({ ...old, [name]: value })) },
  });
  const isServed = given.upstream !== '' && (given.model !== '' || given.run !== '');
  const isWhole = given.name !== '' && (given.checkpoint !== '' || isServed);
  const said = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''));
  return (
    <Act
      name="New release"
      needs="operator"
      title={`Register a release of ${agent}`}
      isIncomplete={!isWhole}
      command={() =>
        pawl(
          ...['releases', 'create', given.name || undefined],
          ['--agent', agent],
          ['--upstream', given.upstream],
          ['--model', given.model],
          ['--checkpoint', given.checkpoint],
          ['--run', given.run],
        )
      }
      does={async () => {
        const { name } = await ask('post', '/api/releases', { json: { ...said, agent, name: given.name } });
        goTo(withAgent(pathTo('deploy', 'releases', name)));
      }}
    >
      <p>It answers nobody until it is rolled out, pinned or served.</p>
      <Entry label="Name" {...of('name')} hint="v2" />
      <Entry label="Upstream of the settings" {...of('upstream')} hint="a model server" />
      <Entry label="Model’s name there" {...of('model')} hint="for a model at an upstream" />
      <Entry
        label="Checkpoint, where Pawl’s own engine serves"
        {...of('checkpoint')}
        hint="a reference, or a whole path"
      />
      <Entry label="Run that it came from" {...of('run')} hint="with an upstream alone, its adapter answers" />
    </Act>
  );
}
