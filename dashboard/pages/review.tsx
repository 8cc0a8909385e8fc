/** What waits for a person. Conversations are read and labelled with the keyboard; rollouts and reports lead to where they are decided. */
import { type FormEvent, useCallback, useEffect, useRef, useState } from 'react';
import { useAgent } from '../agent.tsx';
import { asProblem, useAnswer } from '../answer.ts';
import { ask, type Problem } from '../client.ts';
import type { PageProps } from '../pages.ts';
import { Act } from '../parts/act.tsx';
import { Command } from '../parts/command.tsx';
import { Figure, Figures, Tag } from '../parts/figure.tsx';
import { Page, Panel } from '../parts/layout.tsx';
import { Asked, Empty, Failed } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { useUnfit } from '../parts/unfit.tsx';
import { goTo, Link, pathTo, withAgent } from '../router.tsx';
import { useMay, useSession } from '../session.tsx';
import { fixed, pawl } from '../words.ts';
import { readScores, readTrajectory, Turns } from './turns.tsx';

const readQueue = (agent: string, reviewer: string, signal: AbortSignal) =>
  ask('get', '/api/review', { query: { agent, reviewer, limit: 200 } }, signal);
type Queue = Awaited<ReturnType<typeof readQueue>>;

const scale = [
  [0, 'useless'],
  [0.25, 'poor'],
  [0.5, 'half'],
  [0.75, 'good'],
  [1, 'as it should be'],
] as const;
const keys = [
  ['j k', 'next, previous conversation'],
  ['1 … 5', 'choose what it was worth'],
  ['a', 'it is as it should be: label it 1 at once'],
  ['c', 'write the answer that should have been given'],
  ['Enter', 'label it, and on to the next'],
  ['?', 'show these keys, or hide them'],
] as const;

/** Keys that somebody types are theirs. */
const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest('input, textarea, select, dialog, [contenteditable]') !== null;

export default function Review({ rest: [asked] }: PageProps) {
  const agent = useAgent();
  const reviewer = useSession().session.name ?? 'admin';
  const queue = useAnswer(`review ${agent}`, (signal) => readQueue(agent, reviewer, signal), { topics: ['reviews'] });
  return (
    <Page
      title="Review"
      about="Conversations to label, and what cannot go on without a person."
      actions={
        <Act
          name="Pick more"
          needs="reviewer"
          title="Pick conversations of the last week?"
          command={() => pawl('review', 'pick', ['--agent', agent])}
          does={() => ask('post', '/api/review/pick', { json: { agent } })}
          done={queue.again}
        >
          Half of them by chance, half where the reward and the user’s feedback differ most. Once a week it happens by
          itself.
        </Act>
      }
    >
      <Asked of={queue} rows={12}>
        {(value) => (
          <>
            <Waiting queue={value} again={queue.again} />
            <Labelling queue={value} asked={asked} reviewer={reviewer} again={queue.again} />
          </>
        )}
      </Asked>
    </Page>
  );
}

type WaitingProps = { readonly queue: Queue; readonly again: () => void };

function Waiting({ queue: { waiting, agreement, conversations }, again }: WaitingProps) {
  const unfit = useUnfit();
  return (
    <Panel title="Waiting">
      <Figures>
        <Figure label="Conversations" value={conversations.length} />
        <Figure label="Rollouts and reports" value={waiting.length} tone={waiting.length > 0 ? 'warn' : 'plain'} />
        <Figure label="Labelled by two" value={agreement.both} />
        <Figure
          label="They agree"
          value={agreement.kappa === null ? '–' : fixed(agreement.kappa, 2)}
          note="Cohen’s κ; under 0.4 hardly"
        />
      </Figures>
      {waiting.map(({ kind, id, reasons, since, command }) => (
        <div key={`${kind} ${id}`} className="waiting">
          <p>
            <Tag tone="warn">{kind}</Tag>{' '}
            <Link to={kind === 'rollout' ? pathTo('deploy', 'rollouts', id) : pathTo('evaluate', id)}>{id}</Link> since{' '}
            <Time at={since} />
          </p>
          {reasons.map((reason) => (
            <p key={reason}>{reason}</p>
          ))}
          <Act
            name="Approve"
            needs="operator"
            title={`Let ${id} go on?`}
            reason="asked"
            command={(reason) => pawl('rollouts', 'approve', id, ['--reason', reason], unfit.argument)}
            does={(reason) =>
              ask('post', '/api/rollouts/:id/:move', {
                param: { id, move: 'approve' },
                json: { ...(reason === '' ? {} : { reason }), ...unfit.json },
              })
            }
            done={again}
          >
            <p>
              {kind === 'report'
                ? 'A rollout of the candidate begins: users get it step by step.'
                : 'The rollout goes on from where it is.'}
            </p>
            {unfit.entry}
          </Act>
          <Command line={command} />
        </div>
      ))}
    </Panel>
  );
}

type LabellingProps = {
  readonly queue: Queue;
  readonly asked: string | undefined;
  readonly reviewer: string;
  readonly again: () => void;
};

function Labelling({ queue: { conversations }, asked, reviewer, again }: LabellingProps) {
  const agent = useAgent();
  const at = Math.max(
    0,
    conversations.findIndex(({ trajectory }) => trajectory === asked),
  );
  const current = conversations[at];
  const [areKeysShown, showKeys] = useState(false);
  const open = useCallback((to: string | undefined) => {
    if (to !== undefined) goTo(withAgent(pathTo('review', to)), 'replace');
  }, []);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyping(event.target) || event.metaKey || event.ctrlKey || event.altKey) return;
      if (event.key === 'j') open(conversations[at + 1]?.trajectory);
      else if (event.key === 'k') open(conversations[at - 1]?.trajectory);
      else if (event.key === '?') showKeys((shown) => !shown);
      else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [conversations, at, open]);
  if (current === undefined)
    return (
      <>
        <Empty title="No conversation waits.">Two of a hundred are picked every week; “Pick more” does it now.</Empty>
        <Command line={pawl('review', 'list', ['--agent', agent])} />
      </>
    );
  return (
    <div className="queue">
      <Panel title="Queue" note="what was picked, the longest waiting first">
        <ol>
          {conversations.map(({ trajectory, why, reward, feedback }) => (
            <li key={trajectory}>
              <Link
                to={pathTo('review', trajectory)}
                aria-current={trajectory === current.trajectory ? 'true' : undefined}
              >
                <span dir="auto">{trajectory}</span>
                <span className="note">
                  {why === 'disagreement'
                    ? `reward ${reward === null ? '–' : fixed(reward, 2)}, user ${feedback === null ? '–' : fixed(feedback, 2)}`
                    : 'by chance'}
                </span>
              </Link>
            </li>
          ))}
        </ol>
        <button type="button" className="quiet" aria-expanded={areKeysShown} onClick={() => showKeys(!areKeysShown)}>
          Keys (?)
        </button>
        {areKeysShown && (
          <dl className="keys">
            {keys.map(([key, does]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
        )}
      </Panel>
      <Conversation
        key={current.trajectory}
        agent={agent}
        id={current.trajectory}
        reviewer={reviewer}
        done={() => {
          open(conversations[at + 1]?.trajectory ?? conversations[at - 1]?.trajectory);
          again();
        }}
      />
    </div>
  );
}

type ConversationProps = {
  readonly agent: string;
  readonly id: string;
  readonly reviewer: string;
  readonly done: () => void;
};

function Conversation({ agent, id, reviewer, done }: ConversationProps) {
  const detail = useAnswer(`${agent} ${id}`, (signal) => readTrajectory(id, agent, undefined, signal));
  const scores = useAnswer(`scores ${agent} ${id}`, (signal) => readScores(id, agent, signal));
  return (
    <div className="stack">
      <LabelForm agent={agent} id={id} reviewer={reviewer} done={done} />
      <Asked of={detail} rows={10}>
        {(value) => <Turns first={value} scores={scores.value?.scores[0]} agent={agent} />}
      </Asked>
    </div>
  );
}

function LabelForm({ agent, id, reviewer, done }: ConversationProps) {
  const may = useMay('reviewer');
  const [score, setScore] = useState<number | null>(null);
  const [comment, setComment] = useState('');
  const [correction, setCorrection] = useState('');
  const [problem, setProblem] = useState<Problem | null>(null);
  const isBusy = useRef(false);
  const corrected = useRef<HTMLTextAreaElement>(null);
  const label = useCallback(
    (worth: number) => {
      if (isBusy.current || !may) return;
      isBusy.current = true;
      const said = {
        ...(comment.trim() === '' ? {} : { comment }),
        ...(correction.trim() === '' ? {} : { correction }),
      };
      ask('post', '/api/review', { json: { agent, trajectory: id, reviewer, score: worth, ...said } })
        .then(done, (error: unknown) => setProblem(asProblem(error)))
        .finally(() => {
          isBusy.current = false;
        });
    },
    [agent, id, reviewer, comment, correction, may, done],
  );
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyping(event.target) || event.metaKey || event.ctrlKey || event.altKey) return;
      const chosen = scale[Number(event.key) - 1];
      if (chosen !== undefined) setScore(chosen[0]);
      else if (event.key === 'a') label(1);
      else if (event.key === 'c') corrected.current?.focus();
      else if (
        event.key === 'Enter' &&
        score !== null &&
        !(event.target instanceof HTMLElement && event.target.closest('a, button'))
      )
        label(score);
      else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [label, score]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (score !== null) label(score);
  };
  return (
    <Panel title={id} note={<Link to={pathTo('collect', id)}>all that is known of it</Link>}>
      <form className="labelling" onSubmit={submit}>
        <fieldset disabled={!may} title={may ? undefined : 'Needs the role reviewer.'}>
          <legend className="label">What it was worth</legend>
          <div className="scale">
            {scale.map(([worth, name], n) => (
              <label key={worth} className={worth === score ? 'chosen' : ''}>
                <input
                  type="radio"
                  name="score"
                  value={worth}
                  checked={worth === score}
                  onChange={() => setScore(worth)}
                />
                <kbd>{n + 1}</kbd> {name}
              </label>
            ))}
          </div>
          <label className="field">
            <span>Comment</span>
            <input value={comment} maxLength={10_000} onChange={(event) => setComment(event.target.value)} dir="auto" />
          </label>
          <label className="field">
            <span>The answer that should have been given: a demonstration, and the better one of a pair</span>
            <textarea
              ref={corrected}
              rows={2}
              value={correction}
              maxLength={100_000}
              onChange={(event) => setCorrection(event.target.value)}
              dir="auto"
            />
          </label>
        </fieldset>
        {problem && <Failed problem={problem} />}
        <div className="actions">
          <button type="submit" className="main" disabled={!may || score === null}>
            Label
          </button>
          <button type="button" disabled={!may} onClick={() => label(1)}>
            Approve
          </button>
        </div>
      </form>
      <Command
        line={pawl(
          'review',
          'label',
          id,
          ['--agent', agent],
          ['--reviewer', reviewer],
          ['--score', score === null ? 'SCORE' : String(score)],
          ['--comment', comment],
          ['--correction', correction],
        )}
      />
    </Panel>
  );
}
