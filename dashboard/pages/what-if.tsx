/** What other weights would do: sliders, and the scores of the newest conversations counted again by Pawl. Nothing is changed. */
import { useEffect, useRef, useState } from 'react';
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import { Act } from '../parts/act.tsx';
import { Histogram } from '../parts/bar.tsx';
import { Command } from '../parts/command.tsx';
import { Entry } from '../parts/field.tsx';
import { Figure, Figures, Tag } from '../parts/figure.tsx';
import { Panel } from '../parts/layout.tsx';
import { Asked } from '../parts/states.tsx';
import { setQuery, usePlace } from '../router.tsx';
import { count, fixed, pawl } from '../words.ts';

type Part = { readonly name: string; readonly weight: number };
type Weights = Readonly<Record<string, number>>;

const written = (weights: Weights): string =>
  Object.entries(weights)
    .map(([name, weight]) => `${name}:${weight.toFixed(2)}`)
    .join(',');

/** Of the address, where it names parts that there are. */
function startOf(parts: readonly Part[], asked: string | null): Weights {
  const given = new Map((asked ?? '').split(',').map((pair) => pair.split(':') as [string, string | undefined]));
  return Object.fromEntries(
    parts.map(({ name, weight }) => {
      const set = Number(given.get(name) ?? Number.NaN);
      return [name, set >= 0 && set <= 1 ? set : weight];
    }),
  );
}

/** What a value has become once it stops changing. */
function useSettled<T>(value: T, ms: number): T {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => settle(value), ms);
    return () => window.clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

const change = (now: number, then: number): string => {
  const by = then - now;
  return by === 0 ? 'as now' : `${by < 0 ? '−' : '+'}${count(Math.abs(by))}`;
};

export function WhatIf({ agent, parts }: { readonly agent: string; readonly parts: readonly Part[] }) {
  const { query } = usePlace();
  const [weights, setWeights] = useState(() => startOf(parts, query.get('weights')));
  const settled = useSettled(written(weights), 250);
  const asSet = written(startOf(parts, null));
  useEffect(() => setQuery({ weights: settled === asSet ? '' : settled }), [settled, asSet]);
  const found = useAnswer(`what if ${agent} ${settled}`, (signal) =>
    ask('get', '/api/score/what-if', { query: { agent, weights: settled } }, signal),
  );
  // While the next answer is on its way the one before stays, so that nothing jumps under the slider.
  const shown = useRef(found);
  if (found.value !== null || found.problem !== null) shown.current = found;
  return (
    <Panel
      title="What if the weights were others"
      note="counted on the newest scores; nothing is changed"
      actions={
        <>
          <button type="button" disabled={settled === asSet} onClick={() => setWeights(startOf(parts, null))}>
            As set
          </button>
          <Propose agent={agent} take={(proposed) => setWeights((old) => ({ ...old, ...proposed }))} />
        </>
      }
    >
      <div className="columns">
        <div className="sliders">
          {parts.map(({ name, weight }) => (
            <label key={name}>
              <span>{name}</span>
              <input
                type="range"
                min="0"
                max="1"
                step="0.05"
                value={weights[name] ?? weight}
                onChange={({ target }) => setWeights((old) => ({ ...old, [name]: Number(target.value) }))}
              />
              <span className="number">{fixed(weights[name] ?? weight, 2)}</span>
              <span className="note">{fixed(weight, 2)} now</span>
            </label>
          ))}
        </div>
        <Asked of={shown.current} rows={6}>
          {({ current, proposed, kept, minScore, sample }) => (
            <div className="stack">
              <Figures>
                <Figure
                  label="Mean score"
                  value={proposed.mean === null ? '–' : fixed(proposed.mean)}
                  note={current.mean === null ? undefined : `${fixed(current.mean)} now`}
                />
                <Figure
                  label={`Good enough (${fixed(minScore, 2)})`}
                  value={count(kept.proposed)}
                  unit={`of ${count(sample)}`}
                  note={change(kept.current, kept.proposed)}
                />
                <Figure label="Change sides" value={`${count(kept.gained)} in, ${count(kept.lost)} out`} />
              </Figures>
              <div className="columns">
                <Histogram bins={current.bins} from="0" to="1, as set" label="Scores with the weights that are set" />
                <Histogram bins={proposed.bins} from="0" to="1, so weighted" label="Scores with these weights" />
              </div>
            </div>
          )}
        </Asked>
      </div>
      <Command line={pawl('reward', 'what-if', settled, ['--agent', agent])} />
      <p className="note">
        To set them, write them into the agent’s file; the same file as a second one compares both on history:
      </p>
      <Command line={pawl('reward', 'compare', 'current', 'NEXT.ts', ['--agent', agent])} />
    </Panel>
  );
}

const propose = (agent: string, outcome: string) =>
  ask('post', '/api/reward/fit', { json: { agent, ...(outcome === '' ? {} : { outcome }) } });
type Proposal = Awaited<ReturnType<typeof propose>>;

type ProposeProps = { readonly agent: string; readonly take: (weights: Weights) => void };

function Propose({ agent, take }: ProposeProps) {
  const [outcome, setOutcome] = useState('');
  const [found, setFound] = useState<Proposal | null>(null);
  return (
    <>
      {found !== null && (
        <span role="status" className="note">
          <Tag tone={found.verdict === 'better' ? 'good' : found.verdict === 'worse' ? 'bad' : 'plain'}>
            {found.verdict}
          </Tag>{' '}
          from {count(found.samples)} conversations
        </span>
      )}
      <Act
        name="Propose weights"
        needs="operator"
        title="Fit the weights?"
        command={() => pawl('reward', 'fit', ['--agent', agent], ['--outcome', outcome])}
        does={async () => {
          const proposal = await propose(agent, outcome);
          setFound(proposal);
          take(
            Object.fromEntries(
              proposal.parts.flatMap(({ name, proposed }) =>
                proposed === null ? [] : [[name, Math.min(1, Math.max(0, proposed))]],
              ),
            ),
          );
        }}
      >
        <p>The sliders take what agrees best with labels, measured on conversations that the fit has not seen.</p>
        <Entry label="Fit to this outcome instead" value={outcome} set={setOutcome} hint="resolved" />
      </Act>
    </>
  );
}
