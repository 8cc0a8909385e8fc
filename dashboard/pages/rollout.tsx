/** One rollout: where on the ladder it is, what is measured, what follows, and what a person can do. */
import { useAgent } from '../agent.tsx';
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import { Act } from '../parts/act.tsx';
import { Command } from '../parts/command.tsx';
import { Figure, Figures, Tag, type Tone } from '../parts/figure.tsx';
import { Page, Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Plain } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { useUnfit } from '../parts/unfit.tsx';
import { Link, pathTo } from '../router.tsx';
import { count, duration, pawl, percent } from '../words.ts';
import { type Rollout, toneOf } from './deploy.tsx';

const read = (id: string, signal: AbortSignal) => ask('get', '/api/rollouts/:id', { param: { id } }, signal);
type Detail = Awaited<ReturnType<typeof read>>;
type Check = Detail['decision']['checks'][number];

const ends: Readonly<Record<Check['end'], Tone>> = {
  pass: 'good',
  fail: 'bad',
  inconclusive: 'warn',
  unmeasured: 'plain',
};

/** The steps to everybody, and which of them it is at. */
export function Ladder({ rollout }: { readonly rollout: Rollout }) {
  const { phase, step, steps, startedAt } = rollout;
  const hasStarted = startedAt !== null;
  const rungs = [
    { name: 'waiting', isNow: phase === 'waiting', isDone: phase !== 'waiting' },
    { name: 'shadow', isNow: phase === 'shadow' || (phase === 'paused' && !hasStarted), isDone: hasStarted },
    ...steps.map((share, at) => ({
      name: percent(share, 0),
      isNow: hasStarted && step === at && (phase === 'canary' || phase === 'paused'),
      isDone: phase === 'promoted' || (hasStarted && at < step),
    })),
    phase === 'rolled-back'
      ? { name: 'rolled back', isNow: true, isDone: false }
      : { name: 'promoted', isNow: phase === 'promoted', isDone: phase === 'promoted' },
  ];
  return (
    <ol className="ladder" aria-label="Steps of the rollout">
      {rungs.map(({ name, isNow, isDone }) => (
        <li
          key={name}
          className={isNow ? `now ${phase}` : isDone ? 'done' : ''}
          aria-current={isNow ? 'step' : undefined}
        >
          {name}
          {isNow && phase === 'paused' && <span className="note"> paused</span>}
        </li>
      ))}
    </ol>
  );
}

const checkColumns: readonly Column<Check>[] = [
  { name: 'Check', grow: 1, cell: ({ name }) => name },
  { name: 'End', grow: 1, cell: ({ end }) => <Tag tone={ends[end]}>{end}</Tag> },
  { name: 'Needed', isWide: true, grow: 0.7, cell: ({ needed }) => (needed ? 'yes' : 'no') },
  { name: 'Measured', grow: 6, cell: ({ reason }) => <span className="wraps">{reason}</span> },
];

export function OneRollout({ id }: { readonly id: string }) {
  const found = useAnswer(`rollout ${id}`, (signal) => read(id, signal), { topics: ['rollouts', 'trajectories'] });
  const rollout = found.value?.rollout;
  return (
    <Page
      title={`Rollout ${id}`}
      about={<Link to="/deploy">All rollouts and releases</Link>}
      actions={rollout && rollout.endedAt === null && <Moves rollout={rollout} again={found.again} />}
    >
      <Asked of={found} rows={12}>
        {({ rollout: one, decision }) => (
          <>
            <Panel title="Where it is">
              <Ladder rollout={one} />
              <Figures>
                <Figure label="Phase" value={one.phase} tone={toneOf(one.phase)} />
                <Figure label="Users with the candidate" value={percent(one.share, 0)} />
                <Figure
                  label="Candidate"
                  value={<Link to={pathTo('deploy', 'releases', one.candidate)}>{one.candidate}</Link>}
                />
                <Figure
                  label="Baseline"
                  value={<Link to={pathTo('deploy', 'releases', one.baseline)}>{one.baseline}</Link>}
                />
                <Figure label="Begun" value={<Time at={one.createdAt} />} note={<Time at={one.createdAt} isAgo />} />
                {one.stepSince !== null && (
                  <Figure
                    label="This step since"
                    value={<Time at={one.stepSince} />}
                    note={<Time at={one.stepSince} isAgo />}
                  />
                )}
                {one.endedAt !== null && <Figure label="Ended" value={<Time at={one.endedAt} />} />}
              </Figures>
              {one.reasons.map((reason) => (
                <p key={reason}>{reason}</p>
              ))}
            </Panel>
            {one.endedAt === null && (
              <Panel title="What follows from what is measured" note={<Tag>{decision.kind}</Tag>}>
                {decision.reasons.map((reason) => (
                  <p key={reason}>{reason}</p>
                ))}
                <Plain
                  label="Checks"
                  rows={decision.checks}
                  columns={checkColumns}
                  idOf={({ name, reason }) => `${name} ${reason}`}
                  empty={
                    <Empty title="Nothing is measured yet.">
                      It is, once users or shadow traffic reach the candidate.
                    </Empty>
                  }
                />
              </Panel>
            )}
            <Shadow id={id} />
            <Command line={pawl('rollouts', 'show', id)} />
          </>
        )}
      </Asked>
    </Page>
  );
}

const readShadows = (id: string, cursor: string | undefined, signal: AbortSignal) =>
  ask('get', '/api/rollouts/:id/shadows', { param: { id }, query: { limit: 50, cursor } }, signal);
type Compared = Awaited<ReturnType<typeof readShadows>>['shadows'][number];
const shadowColumns: readonly Column<Compared>[] = [
  { name: 'When', grow: 1.4, cell: ({ at }) => <Time at={at} /> },
  {
    ...{ name: 'Candidate', grow: 1.4 },
    cell: ({ failed, agreed }) =>
      failed ? (
        <Tag tone="bad">failed</Tag>
      ) : (
        <Tag tone={agreed ? 'good' : 'warn'}>{agreed ? 'did the same' : 'did something else'}</Tag>
      ),
  },
  {
    name: 'Words in common',
    isNumber: true,
    cell: ({ similarity }) => (similarity === null ? '–' : percent(similarity, 0)),
  },
  { name: 'Baseline', isNumber: true, isWide: true, cell: ({ baselineMs }) => duration(baselineMs) },
  { name: 'Candidate took', isNumber: true, isWide: true, cell: ({ candidateMs }) => duration(candidateMs) },
  {
    ...{ name: 'Conversation', grow: 2, isWide: true },
    cell: ({ trajectory }) =>
      trajectory === null ? '–' : <Link to={pathTo('collect', trajectory)}>{trajectory}</Link>,
  },
];

function Shadow({ id }: { readonly id: string }) {
  const found = useAnswer(`shadows ${id}`, (signal) => readShadows(id, undefined, signal), { topics: ['rollouts'] });
  return (
    <Panel title="Shadow" note="asked beside the baseline, shown to nobody">
      <Asked of={found} rows={4}>
        {({ compared, failed, agreed, similarity, slow, shadows }) => (
          <>
            <Figures>
              <Figure label="Compared" value={count(compared)} />
              <Figure label="Failed" value={count(failed)} tone={failed > 0 ? 'warn' : 'plain'} />
              <Figure label="Too slow" value={count(slow)} tone={slow > 0 ? 'warn' : 'plain'} />
              <Figure label="Did the same" value={compared === failed ? '–' : percent(agreed / (compared - failed))} />
              <Figure label="Words in common" value={similarity === null ? '–' : percent(similarity)} />
            </Figures>
            <Plain
              label="The latest comparisons"
              rows={shadows}
              columns={shadowColumns}
              idOf={(one) => one.id}
              empty={
                <Empty title="Nothing was compared.">
                  A share of conversations is, before users get the candidate.
                </Empty>
              }
            />
          </>
        )}
      </Asked>
    </Panel>
  );
}

function Moves({ rollout, again }: { readonly rollout: Rollout; readonly again: () => void }) {
  const { id, phase } = rollout;
  const agent = useAgent();
  const unfit = useUnfit();
  const move = (name: 'approve' | 'hold' | 'promote' | 'abort') => {
    const begins = phase === 'waiting' && (name === 'approve' || name === 'promote');
    const more = begins ? unfit.json : {};
    return {
      needs: 'operator' as const,
      command: (reason: string) =>
        pawl('rollouts', name, id, ['--reason', reason], begins ? unfit.argument : undefined),
      does: (reason: string) =>
        ask('post', '/api/rollouts/:id/:move', {
          param: { id, move: name },
          json: { ...(reason === '' ? {} : { reason }), ...more },
        }),
      done: again,
    };
  };
  const mayApprove = phase === 'waiting' || phase === 'paused';
  return (
    <>
      <Act
        {...move('approve')}
        name="Approve"
        isMain
        reason="asked"
        title={`Let ${id} go on?`}
        disabled={mayApprove ? null : 'It waits for nobody.'}
      >
        <p>
          {phase === 'waiting'
            ? `It begins: ${agent}’s users get the candidate step by step.`
            : 'It goes on from where it is.'}
        </p>
        {phase === 'waiting' && unfit.entry}
      </Act>
      <Act
        {...move('hold')}
        name="Hold"
        reason="asked"
        title={`Keep ${id} where it is?`}
        disabled={phase === 'canary' || phase === 'shadow' ? null : 'It does not move.'}
      >
        The share stays until somebody approves; a check that fails still takes it back.
      </Act>
      <Act {...move('promote')} name="Promote" reason="needed" title={`Give ${rollout.candidate} to everybody now?`}>
        <p>It ends at once with the candidate for everybody, whatever is measured.</p>
        {phase === 'waiting' && unfit.entry}
      </Act>
      <Act {...move('abort')} name="Abort" isDanger reason="asked" title={`Take ${rollout.candidate} back?`}>
        It ends at once with {rollout.baseline} for everybody.
      </Act>
    </>
  );
}
