/** The turns of a conversation as people read them: what was said, called and thought, and what each was worth. */
import { useState } from 'react';
import { ask } from '../client.ts';
import { Bar } from '../parts/bar.tsx';
import { Tag } from '../parts/figure.tsx';
import { Foreign, ForeignData } from '../parts/foreign.tsx';
import { Time } from '../parts/time.tsx';
import { newIn, type Said, saidBy } from '../said.ts';
import { duration, fixed, short } from '../words.ts';

export const readTrajectory = (id: string, agent: string, cursor: string | undefined, signal: AbortSignal) =>
  ask('get', '/api/trajectories/:id', { param: { id }, query: { agent, limit: 50, cursor } }, signal);
export const readScores = (id: string, agent: string, signal: AbortSignal) =>
  ask('get', '/api/trajectories/:id/scores', { param: { id }, query: { agent } }, signal);

export type Detail = Awaited<ReturnType<typeof readTrajectory>>;
type Turn = Detail['turns'][number];
export type Scores = Awaited<ReturnType<typeof readScores>>;

type TurnsProps = {
  readonly first: Detail;
  readonly scores: Scores['scores'][number] | undefined;
  readonly agent: string;
};

export function Turns({ first, scores, agent }: TurnsProps) {
  const [more, setMore] = useState<readonly Detail[]>([]);
  const pages = [first, ...more];
  const turns = pages.flatMap((page) => page.turns);
  const siblings = pages.flatMap((page) => page.siblings);
  const next = pages.at(-1)!.next;
  const readOn = () => {
    if (next === null) return;
    readTrajectory(first.trajectory.id, agent, next, AbortSignal.timeout(60_000)).then(
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
          before={turns[at - 1] ?? null}
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
  readonly before: Turn | null;
  readonly worth: Scores['scores'][number]['turns'][number] | undefined;
  readonly siblings: Detail['siblings'];
};

function OneTurn({ turn, number, before, worth, siblings }: OneTurnProps) {
  const [isWhole, showWhole] = useState(false);
  const { known, fresh } = newIn(
    turn.request,
    isWhole || before === null ? null : { request: before.request, answer: before.choices[0]?.message },
  );
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

export function Message({
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
