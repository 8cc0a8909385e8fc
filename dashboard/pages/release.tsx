/** One release: what it is, its card, and what can be done with it. */
import { useState } from 'react';
import { useAgent } from '../agent.tsx';
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import { Act } from '../parts/act.tsx';
import { Command } from '../parts/command.tsx';
import { Choice, Entry } from '../parts/field.tsx';
import { Tag } from '../parts/figure.tsx';
import { Foreign } from '../parts/foreign.tsx';
import { Facts, Page, Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Plain } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { useUnfit } from '../parts/unfit.tsx';
import { goTo, Link, pathTo, withAgent } from '../router.tsx';
import { toneOf } from '../verdict.ts';
import { pawl } from '../words.ts';

export function OneRelease({ name }: { readonly name: string }) {
  const agent = useAgent();
  const found = useAnswer(
    `release ${agent} ${name}`,
    (signal) => ask('get', '/api/releases/:name', { param: { name }, query: { agent } }, signal),
    { topics: ['releases', 'rollouts'] },
  );
  return (
    <Page
      title={`Release ${name}`}
      about={<Link to="/deploy">All rollouts and releases</Link>}
      actions={<Acts agent={agent} name={name} isServing={found.value?.release.serving ?? true} again={found.again} />}
    >
      <Asked of={found} rows={12}>
        {({ release, parentName, compatibility, adapter, card }) => (
          <>
            <Panel title="What it is" note={release.serving ? <Tag tone="good">serves</Tag> : undefined}>
              <Facts
                of={[
                  ['Model', release.model],
                  ['Upstream', release.upstream],
                  ['Made', <Time key="made" at={release.createdAt} />],
                  [
                    'Parent',
                    parentName === null ? (
                      '–'
                    ) : (
                      <Link key="parent" to={pathTo('deploy', 'releases', parentName)}>
                        {parentName}
                      </Link>
                    ),
                  ],
                  ['Run', release.run ?? '–'],
                  ['Report', release.report ?? '–'],
                  ['Dataset', release.dataset ?? '–'],
                  ['Checkpoint', <code key="checkpoint">{release.checkpoint ?? '–'}</code>],
                  ['Sampling', <code key="sampling">{JSON.stringify(release.sampling)}</code>],
                ]}
              />
              {adapter && <p>{adapter.sentence}</p>}
            </Panel>
            <Panel
              title="Does it fit its server"
              note={compatibility && <Tag tone={toneOf(compatibility.verdict)}>{compatibility.verdict}</Tag>}
            >
              {compatibility === null ? (
                <Empty title="Nobody has checked yet.">It is checked before any user gets it.</Empty>
              ) : (
                <>
                  <Plain
                    label="Checks of what its server can do"
                    rows={compatibility.checks}
                    columns={checkColumns}
                    idOf={(check) => check.name}
                    empty={<Empty title="Nothing was asked." />}
                  />
                  <p>
                    Checked <Time at={new Date(compatibility.at).toISOString()} isAgo />
                    {compatibility.server === undefined ? '.' : ` at ${compatibility.server}.`}
                  </p>
                </>
              )}
              <Command line={pawl('evaluate', 'compat', name, ['--agent', agent])} />
            </Panel>
            <Panel title="Model card">
              <Foreign className="mono" text={card} />
            </Panel>
            <Command line={pawl('releases', 'show', name, ['--agent', agent])} />
          </>
        )}
      </Asked>
    </Page>
  );
}

type ActsProps = {
  readonly agent: string;
  readonly name: string;
  readonly isServing: boolean;
  readonly again: () => void;
};

type Check = { readonly name: string; readonly verdict: Parameters<typeof toneOf>[0]; readonly reason: string };
const checkColumns: readonly Column<Check>[] = [
  { name: 'Check', cell: ({ name }) => name },
  { name: 'Verdict', cell: ({ verdict }) => <Tag tone={toneOf(verdict)}>{verdict}</Tag> },
  { name: 'Found', grow: 6, cell: ({ reason }) => <span className="wraps">{reason}</span> },
];

function Acts({ agent, name, isServing, again }: ActsProps) {
  const unfit = useUnfit();
  const serves = isServing ? 'It serves already.' : null;
  return (
    <>
      <Act
        name="Roll out"
        isMain
        needs="operator"
        disabled={serves}
        title={`Bring ${name} to users step by step?`}
        command={() => pawl('rollouts', 'start', ['--agent', agent], ['--candidate', name], unfit.argument)}
        does={async () => {
          const { id } = await ask('post', '/api/rollouts', { json: { agent, candidate: name, ...unfit.json } });
          goTo(withAgent(pathTo('deploy', 'rollouts', id)));
        }}
      >
        <p>
          An evaluation that passed begins it; one that could not decide makes it wait for approval; one that failed
          refuses it.
        </p>
        {unfit.entry}
      </Act>
      <Act
        name="Force"
        needs="operator"
        isDanger
        disabled={serves}
        reason="needed"
        title={`Roll ${name} out whatever its evaluation says?`}
        command={(reason) =>
          pawl(
            'rollouts',
            'start',
            ['--agent', agent],
            ['--candidate', name],
            '--force',
            ['--reason', reason],
            unfit.argument,
          )
        }
        does={async (reason) => {
          const { id } = await ask('post', '/api/rollouts', {
            json: { agent, candidate: name, forced: reason, ...unfit.json },
          });
          goTo(withAgent(pathTo('deploy', 'rollouts', id)));
        }}
      >
        <p>The checks of the rollout still watch it, and take it back where users are worse off.</p>
        {unfit.entry}
      </Act>
      <Act
        name="Serve at once"
        needs="operator"
        isDanger
        disabled={serves}
        reason="needed"
        title={`Let ${name} answer everybody now?`}
        command={(reason) => pawl('releases', 'serve', name, ['--agent', agent], ['--reason', reason], unfit.argument)}
        does={(reason) =>
          ask('post', '/api/releases/:name/serve', { param: { name }, json: { agent, reason, ...unfit.json } })
        }
        done={again}
      >
        <p>No step is held and nothing is measured first. It is also the way back after a promotion.</p>
        {unfit.entry}
      </Act>
      <Pin agent={agent} name={name} />
    </>
  );
}

function Pin({ agent, name }: { readonly agent: string; readonly name: string }) {
  const [kind, setKind] = useState('user');
  const [value, setValue] = useState('');
  const unfit = useUnfit();
  return (
    <Act
      name="Pin"
      needs="operator"
      title={`Give ${name} to somebody whatever is rolled out?`}
      isIncomplete={value.trim() === ''}
      command={() => pawl('releases', 'pin', name, ['--agent', agent], [`--${kind}`, value.trim()], unfit.argument)}
      does={async () => {
        const who = kind === 'key' ? { key: value.trim() } : { user: value.trim() };
        await ask('post', '/api/releases/:name/pin', { param: { name }, json: { agent, ...who, ...unfit.json } });
        goTo(withAgent('/deploy'));
      }}
    >
      <p>The kill switch counts more than a pin. No rollout counts who is pinned.</p>
      <Choice
        label="Who"
        value={kind}
        set={setKind}
        options={[
          ['user', 'a user, by the id that the agent sends'],
          ['key', 'a client key, by its id'],
        ]}
      />
      <Entry label="Id" value={value} set={setValue} />
      {unfit.entry}
    </Act>
  );
}
