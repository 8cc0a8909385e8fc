/** What a run's model really did: attempts at one task of a step side by side, the best first, and what each turn earned. */
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import { Command } from '../parts/command.tsx';
import { Choice } from '../parts/field.tsx';
import { Tag } from '../parts/figure.tsx';
import { Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { setQuery, usePlace } from '../router.tsx';
import { count, fixed, pawl } from '../words.ts';
import { Message } from './turns.tsx';

const read = (id: string, step: number | undefined, signal: AbortSignal) =>
  ask('get', '/api/runs/:id/episodes', { param: { id }, query: { step } }, signal);
type Kept = Awaited<ReturnType<typeof read>>;
type Episode = Kept['episodes'][number];

/** Steps are counted from 1 where people read them. */
const asked = (text: string | null): number | undefined => {
  const step = Number(text);
  return Number.isInteger(step) && step > 0 ? step - 1 : undefined;
};

export function Episodes({ id }: { readonly id: string }) {
  const step = asked(usePlace().query.get('step'));
  const found = useAnswer(`episodes ${id} ${step ?? ''}`, (signal) => read(id, step, signal), { topics: ['runs'], id });
  return (
    <Panel title="Episodes" note="attempts at one task of a step, the best and the worst">
      <Asked of={found} rows={10}>
        {(value) => <Read {...value} />}
      </Asked>
    </Panel>
  );
}

function Read({ run, steps, step, episodes }: Kept) {
  if (steps.length === 0)
    return (
      <Empty title="No episode is kept.">
        Recipes that practise in an environment (RFT, GRPO) keep some of each step; others play none.
      </Empty>
    );
  const at = steps.findIndex((one) => one.step === step);
  const go = (place: number) => setQuery({ step: String(steps[place]!.step + 1) });
  const [first] = episodes;
  return (
    <>
      <div className="picker">
        <Choice
          label="Step"
          value={String(step)}
          set={(value) => setQuery({ step: String(Number(value) + 1) })}
          options={[
            ...(at < 0 ? [[String(step), `${count((step ?? 0) + 1)}: none is kept`] as const] : []),
            ...steps.map(
              (one) => [String(one.step), `${count(one.step + 1)}: ${one.taskType}, ${rewardsOf(one)}`] as const,
            ),
          ]}
        />
        <button type="button" disabled={at === 0} onClick={() => go(at < 0 ? 0 : at - 1)}>
          Earlier
        </button>
        <button type="button" disabled={at === steps.length - 1} onClick={() => go(at < 0 ? steps.length - 1 : at + 1)}>
          Later
        </button>
        {first !== undefined && (
          <span className="note" dir="auto">
            task {first.task}
          </span>
        )}
      </div>
      <ol className="episodes" aria-label="Episodes, side by side">
        {episodes.map((one) => (
          <OneEpisode key={one.attempt} episode={one} />
        ))}
      </ol>
      <Command line={pawl('runs', 'episodes', run, ['--step', String((step ?? 0) + 1)])} />
    </>
  );
}

const rewardsOf = ({ rewards }: Kept['steps'][number]): string => {
  const [best, worst] = [rewards[0] ?? 0, rewards.at(-1) ?? 0];
  return best === worst ? `all ${fixed(best, 2)}` : `${fixed(best, 2)} to ${fixed(worst, 2)}`;
};

function OneEpisode({ episode }: { readonly episode: Episode }) {
  const { attempt, reward, success, outcome, reasons, messages, leftOut } = episode;
  return (
    <li className="episode">
      <div className="panel-head">
        <h3>Attempt {attempt + 1}</h3>
        <Tag tone={success ? 'good' : 'bad'}>{success ? 'solved' : 'not solved'}</Tag>
        <span className="note">
          reward {fixed(reward, 2)}
          {outcome !== 'done' && `, ${outcome}`}
        </span>
      </div>
      {reasons.length > 0 && (
        <p className="note" dir="auto">
          {reasons.join(' · ')}
        </p>
      )}
      {messages.map(({ role, text, reasoning = '', calls = [], reward: earned, reasons: why = [] }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a message is its place
        <div key={at}>
          <Message said={{ role, text, reasoning, calls, other: [] }} isAnswer={role === 'assistant'} />
          {earned !== undefined && (earned !== 0 || why.length > 0) && (
            <p className="note earned" dir="auto">
              earned {fixed(earned, 2)}
              {why.length > 0 && `: ${why.join(' · ')}`}
            </p>
          )}
        </div>
      ))}
      {leftOut > 0 && <p className="note">{count(leftOut)} more messages are not kept.</p>}
    </li>
  );
}
