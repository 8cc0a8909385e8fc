/** One conversation, turn by turn: what was said and called, what each turn was worth, and what it became. */
import { useState } from 'react';
import { useAgent } from '../agent.tsx';
import { type Answer, useAnswer } from '../answer.ts';
import { ask, Problem } from '../client.ts';
import { Bar } from '../parts/bar.tsx';
import { Command } from '../parts/command.tsx';
import { Figure, Figures, Tag } from '../parts/figure.tsx';
import { Foreign, ForeignData } from '../parts/foreign.tsx';
import { Page, Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { Link } from '../router.tsx';
import { newIn, type Said, saidBy } from '../said.ts';
import { count, duration, fixed, pawl, short } from '../words.ts';

const read = (id: string, agent: string, cursor: string | undefined, signal: AbortSignal) =>
  ask('get', '/api/trajectories/:id', { param: { id }, query: { agent, limit: 50, cursor } }, signal);
export const readScores = (id: string, agent: string, signal: AbortSignal) =>
  ask('get', '/api/trajectories/:id/scores', { param: { id }, query: { agent } }, signal).catch((error: unknown) => {
    if (error instanceof Problem && error.status === 404) return { scores: [], explanations: [] };
    throw error;
  });

type Detail = Awaited<ReturnType<typeof read>>;
type Turn = Detail['turns'][number];
type Scores = Awaited<ReturnType<typeof readScores>>;

export function Trajectory({ id }: { readonly id: string }) {
  const agent = useAgent();
  const detail = useAnswer(`${agent} ${id}`, (signal) => read(id, agent, undefined, signal), {
    topics: ['trajectories'],
    id,
  });
  const scores = useAnswer(`scores ${agent} ${id}`, (signal) => readScores(id, agent, signal), { topics: ['scores'] });
  return (
    <Page title={id} about={<Link to="/collect">All conversations</Link>}>
      <Asked of={detail} rows={14}>
        {(value) => (
          <>
            <Summary {...value} />
            <div className="beside">
              <Turns first={value} scores={scores.value?.scores[0]} agent={agent} />
              <div className="stack">
                <Worth scores={scores} id={id} agent={agent} />
                <Signals {...value} />
              </div>
            </div>
            <Command line={pawl('trajectories', 'show', id, ['--agent', agent])} />
          </>
        )}
      </Asked>
    </Page>
  );
}

function Summary({ trajectory: t, keys }: Detail) {
  return (
    <Panel title="In short">
      <Figures>
        <Figure label="Began" value={<Time at={t.startedAt} />} />
        <Figure
          label="Turns"
          value={count(t.turns)}
          tone={t.errors > 0 ? 'bad' : 'plain'}
          note={t.errors > 0 ? `${t.errors} failed` : 'none failed'}
        />
        <Figure label="Time in the model" value={duration(t.latencyMs)} />
        <Figure label="Tokens" value={`${short(t.promptTokens)} → ${short(t.completionTokens)}`} note="shown → said" />
        <Figure label="Release" value={<span dir="auto">{t.release}</span>} />
        <Figure label="Consent" value={t.consent} tone={t.consent === 'given' ? 'good' : 'plain'} note={t.origin} />
        <Figure
          label="User"
          value={<code title={t.user ?? ''}>{t.user === null ? 'unknown' : t.user.slice(0, 12)}</code>}
          note={
            t.user === null ? undefined : (
              <Link to={`/collect?${new URLSearchParams({ user: t.user, hashed: 'true' })}`}>all of theirs</Link>
            )
          }
        />
        {keys.length > 0 && <Figure label="Keys" value={<span dir="auto">{keys.join(', ')}</span>} />}
      </Figures>
    </Panel>
  );
}

type TurnsProps = {
  readonly first: Detail;
  readonly scores: Scores['scores'][number] | undefined;
  readonly agent: string;
};

function Turns({ first, scores, agent }: TurnsProps) {
  const [more, setMore] = useState<readonly Detail[]>([]);
  const pages = [first, ...more];
  const turns = pages.flatMap((page) => page.turns);
  const siblings = pages.flatMap((page) => page.siblings);
  const next = pages.at(-1)!.next;
  const readOn = () => {
    if (next === null) return;
    read(first.trajectory.id, agent, next, AbortSignal.timeout(60_000)).then(
      (page) => setMore((known) => [...known, page]),
      () => {}, // the button stays
    );
  };
  return (
    <ol className="turns" aria-label="Turns">
      {turns.map((turn, at) => (
        <OneTurn
          key={turn.id}
          turn={turn}
          number={at + 1}
          before={turns[at - 1]?.request}
          worth={scores?.turns.find((one) => one.turn === turn.id)}
          siblings={siblings.filter(({ parent }) => parent === turn.id)}
        />
      ))}
      {next !== null && (
        <li>
          <button type="button" onClick={readOn}>
            Read on
          </button>
        </li>
      )}
    </ol>
  );
}

type OneTurnProps = {
  readonly turn: Turn;
  readonly number: number;
  readonly before: unknown;
  readonly worth: Scores['scores'][number]['turns'][number] | undefined;
  readonly siblings: Detail['siblings'];
};

function OneTurn({ turn, number, before, worth, siblings }: OneTurnProps) {
  const [isWhole, showWhole] = useState(false);
  const { known, fresh } = newIn(turn.request, isWhole ? undefined : before);
  const masks = Object.entries(turn.redactions);
  return (
    <li className="panel turn">
      <div className="panel-head">
        <h2>Turn {number}</h2>
        <span className="note">
          <Time at={turn.startedAt} /> · {duration(turn.latencyMs)} · {short(turn.promptTokens ?? 0)} →{' '}
          {short(turn.completionTokens ?? 0)} tokens · {turn.model}
        </span>
        {turn.status === 'error' && <Tag tone="bad">failed {turn.httpStatus}</Tag>}
        {worth?.value !== undefined && worth.value !== null && (
          <Tag tone={worth.value >= 0.7 ? 'good' : worth.value < 0.4 ? 'bad' : 'warn'}>
            reward {fixed(worth.value, 2)}
          </Tag>
        )}
        {masks.map(([kind, n]) => (
          <Tag key={kind} tone="warn">
            {n} × {kind} masked
          </Tag>
        ))}
      </div>
      {turn.contentLeftOut && <p className="note">Request and answer are larger than one answer of the API holds.</p>}
      {turn.error !== null && <Foreign className="bad" text={turn.error} />}
      {known > 0 && (
        <button type="button" className="quiet" onClick={() => showWhole(true)}>
          {known} earlier {known === 1 ? 'message' : 'messages'}
        </button>
      )}
      {fresh.map((message, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a message is its place
        <Message key={at} said={saidBy(message)} />
      ))}
      {turn.choices.map(({ index, message, finishReason }) => (
        <Message
          key={`answer ${index}`}
          said={saidBy({ role: 'assistant', ...message })}
          note={finishReason}
          isAnswer
        />
      ))}
      {worth !== undefined && Object.keys(worth.parts).length > 0 && (
        <ul className="parts" aria-label="Rewards of this turn">
          {Object.entries(worth.parts).map(([name, value]) => (
            <li key={name}>
              <span>{name}</span>
              <Bar share={value} label={`${name} ${fixed(value, 2)} of 1`} />
              <span className="number">{fixed(value, 2)}</span>
            </li>
          ))}
        </ul>
      )}
      {siblings.length > 0 && (
        <details>
          <summary>
            {siblings.length} other {siblings.length === 1 ? 'answer' : 'answers'}, shown to nobody
          </summary>
          {siblings.map((sibling) => (
            <Message
              key={sibling.id}
              said={saidBy({ role: 'assistant', ...sibling.choices[0]?.message })}
              note={`temperature ${sibling.temperature}`}
            />
          ))}
        </details>
      )}
    </li>
  );
}

function Message({
  said,
  note,
  isAnswer = false,
}: {
  readonly said: Said;
  readonly note?: string | null;
  readonly isAnswer?: boolean;
}) {
  return (
    <div className={`message ${isAnswer ? 'answer' : ''}`}>
      <div className="role">
        {said.role}
        {note && <span className="note"> {note}</span>}
      </div>
      <div className="content">
        {said.reasoning !== '' && (
          <details>
            <summary>Reasoning</summary>
            <Foreign text={said.reasoning} />
          </details>
        )}
        {said.text !== '' && <Foreign text={said.text} className={said.role === 'tool' ? 'mono' : ''} />}
        {said.calls.map(({ name, input }, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a call is its place
          <div key={at} className="call">
            <code dir="auto">{name}</code>
            <ForeignData value={input} />
          </div>
        ))}
        {said.other.map((part, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a part is its place
          <ForeignData key={at} value={part} />
        ))}
        {said.text === '' && said.calls.length === 0 && said.other.length === 0 && said.reasoning === '' && (
          <span className="note">nothing</span>
        )}
      </div>
    </div>
  );
}

export function Worth({
  scores,
  id,
  agent,
}: {
  readonly scores: Answer<Scores>;
  readonly id: string;
  readonly agent: string;
}) {
  return (
    <Panel title="Why this score">
      <Asked of={scores} rows={4}>
        {({ scores: [latest], explanations: [why] }) =>
          latest === undefined || why === undefined ? (
            <Empty title="It has no score yet.">It gets one within the hour, or by hand.</Empty>
          ) : (
            <>
              <p>{why.summary}</p>
              <ul className="parts">
                {why.parts.map(({ name, adds, most, sentence }) => (
                  <li key={name} title={sentence}>
                    <span>{name}</span>
                    <Bar
                      share={most > 0 ? (adds ?? 0) / most : 0}
                      label={sentence}
                      tone={adds !== null && adds < 0 ? 'bad' : 'plain'}
                    />
                    <span className="number">{adds === null ? '–' : fixed(adds, 3)}</span>
                    <span className="note sentence">{sentence}</span>
                  </li>
                ))}
              </ul>
            </>
          )
        }
      </Asked>
      <Command line={pawl('score', 'show', id, ['--agent', agent])} />
    </Panel>
  );
}

function Signals({ signals, signalsCut }: Detail) {
  return (
    <Panel title="What came back" note={signalsCut ? 'the latest' : undefined}>
      {signals.length === 0 ? (
        <Empty title="Nothing yet.">Votes, outcomes, what users did with answers, and labels stand here.</Empty>
      ) : (
        <ul className="signals">
          {signals.map((signal) => (
            <li key={signal.id}>
              <Tag>{signal.kind}</Tag> <strong>{signal.name}</strong> {signal.value !== null && fixed(signal.value, 2)}{' '}
              {signal.unit} <Time at={signal.at} />
              {signal.comment !== null && <Foreign text={signal.comment} />}
              {signal.correction !== null && <Foreign text={signal.correction} />}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
