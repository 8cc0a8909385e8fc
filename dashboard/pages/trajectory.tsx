/** One conversation, turn by turn: what was said and called, what each turn was worth, and what it became. */
import { useAgent } from '../agent.tsx';
import { type Answer, useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import { Bar } from '../parts/bar.tsx';
import { Command } from '../parts/command.tsx';
import { Figure, Figures, Tag } from '../parts/figure.tsx';
import { Foreign } from '../parts/foreign.tsx';
import { Page, Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { Link, pathTo } from '../router.tsx';
import { count, duration, fixed, pawl, short } from '../words.ts';
import { type Detail, readScores, readTrajectory, type Scores, Turns } from './turns.tsx';

export function Trajectory({ id }: { readonly id: string }) {
  const agent = useAgent();
  const detail = useAnswer(`${agent} ${id}`, (signal) => readTrajectory(id, agent, undefined, signal), {
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
                <Lineage id={id} agent={agent} />
              </div>
            </div>
            <Command line={pawl('trajectories', 'show', id, ['--agent', agent])} />
          </>
        )}
      </Asked>
    </Page>
  );
}

function Summary({ trajectory: t, keys, money: spent }: Detail) {
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
        {spent !== null && <Figure label="Cost" value={fixed(spent, 4)} note="by today’s prices" />}
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

/** What learned from it. */
function Lineage({ id, agent }: { readonly id: string; readonly agent: string }) {
  const found = useAnswer(
    `lineage ${agent} ${id}`,
    (signal) => ask('get', '/api/trajectories/:id/lineage', { param: { id }, query: { agent } }, signal),
    { topics: ['datasets', 'runs', 'releases'] },
  );
  return (
    <Panel title="What learned from it">
      <Asked of={found} rows={2}>
        {({ datasets, runs, releases }) =>
          datasets.length === 0 ? (
            <Empty title="Nothing has.">It is in no dataset.</Empty>
          ) : (
            <ul className="signals">
              {datasets.map((one) => (
                <li key={one.id}>
                  <Tag>dataset</Tag> <Link to={pathTo('curate', one.id)}>{one.id}</Link>{' '}
                  <span className="note">
                    row {one.position}, score {fixed(one.score, 2)}
                  </span>
                </li>
              ))}
              {runs.map((one) => (
                <li key={one.id}>
                  <Tag>run</Tag> <Link to={pathTo('train', one.id)}>{one.id}</Link>{' '}
                  <span className="note">{one.status}</span>
                </li>
              ))}
              {releases.map((one) => (
                <li key={one.name}>
                  <Tag>release</Tag> <Link to={pathTo('deploy', 'releases', one.name)}>{one.name}</Link>{' '}
                  <span className="note">{one.serving ? 'serves' : ''}</span>
                </li>
              ))}
            </ul>
          )
        }
      </Asked>
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
