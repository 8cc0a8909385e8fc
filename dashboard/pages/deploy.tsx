/** What answers users, what is on its way to them, and everything that could. */
import { useAgent } from '../agent.tsx';
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import type { PageProps } from '../pages.ts';
import { Act } from '../parts/act.tsx';
import { Command } from '../parts/command.tsx';
import { Tag, type Tone } from '../parts/figure.tsx';
import { Page, Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Plain } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { pathTo } from '../router.tsx';
import { pawl, percent } from '../words.ts';
import { OneRelease } from './release.tsx';
import { Ladder, OneRollout } from './rollout.tsx';

const readReleases = (agent: string, signal: AbortSignal) =>
  ask('get', '/api/releases', { query: { agent, limit: 200 } }, signal);
const readRollouts = (agent: string, signal: AbortSignal) =>
  ask('get', '/api/rollouts', { query: { agent, limit: 200 } }, signal);
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
  { name: 'Rollout', grow: 2, cell: ({ id }) => id },
  { name: 'Phase', grow: 1.2, cell: ({ phase }) => <Tag tone={toneOf(phase)}>{phase}</Tag> },
  { name: 'Users', isNumber: true, cell: ({ share }) => percent(share, 0) },
  { name: 'Candidate', isWide: true, grow: 1.5, cell: ({ candidate }) => candidate },
  { name: 'Baseline', isWide: true, grow: 1.5, cell: ({ baseline }) => baseline },
  { name: 'Began', grow: 1.4, cell: ({ createdAt }) => <Time at={createdAt} /> },
  { name: 'Ended', isWide: true, grow: 1.4, cell: ({ endedAt }) => (endedAt === null ? '–' : <Time at={endedAt} />) },
  {
    name: 'Why',
    isWide: true,
    grow: 5,
    cell: ({ reasons }) => <span title={reasons.join(' ')}>{reasons[0] ?? '–'}</span>,
  },
];
const releaseColumns: readonly Column<Release>[] = [
  { name: 'Release', grow: 2, cell: ({ name }) => name },
  { name: 'State', grow: 1.2, cell: ({ serving }) => (serving ? <Tag tone="good">serves</Tag> : '–') },
  { name: 'Model', grow: 2, cell: ({ model }) => model },
  { name: 'Upstream', isWide: true, grow: 1.2, cell: ({ upstream }) => upstream },
  { name: 'Run', isWide: true, grow: 1.6, cell: ({ run }) => run ?? '–' },
  { name: 'Report', isWide: true, grow: 1.6, cell: ({ report }) => report ?? '–' },
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
  const open = rollouts.value?.rollouts.find(({ endedAt }) => endedAt === null);
  return (
    <Page
      title="Deploy"
      about="Which release answers, and what is on its way to users."
      actions={<KillSwitch agent={agent} releases={releases.value?.releases ?? []} />}
    >
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
      <Panel title="Releases">
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
    </Page>
  );
}

function KillSwitch({ agent, releases }: { readonly agent: string; readonly releases: readonly Release[] }) {
  const serving = releases.find((one) => one.serving);
  return (
    <>
      <Act
        name="Release the kill switch"
        needs="operator"
        title={`Let rollouts of ${agent} begin again?`}
        reason="asked"
        command={(reason) => pawl('kill', agent, '--undo', ['--reason', reason])}
        does={(reason) => ask('post', '/api/kill/undo', { json: { agent, ...(reason === '' ? {} : { reason }) } })}
      >
        What answers now stays until a rollout or a person changes it.
      </Act>
      <Act
        name="Kill switch"
        needs="operator"
        isDanger
        disabled={serving === undefined ? 'No release serves.' : null}
        title={`Send all of ${agent}’s traffic back?`}
        reason="needed"
        command={(reason) => pawl('kill', agent, ['--reason', reason])}
        does={(reason) => ask('post', '/api/kill', { json: { agent, reason } })}
      >
        The baseline of the rollout under way answers everybody at once, or what served before {serving?.name}. The
        rollout is aborted, and none begins until the switch is released.
      </Act>
    </>
  );
}
