/** Versions of the reward, and two of them over the same conversations: which change places, and why. */
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import { Command } from '../parts/command.tsx';
import { Counted } from '../parts/counted.tsx';
import { Choice } from '../parts/field.tsx';
import { Figure, Figures } from '../parts/figure.tsx';
import { Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Plain } from '../parts/table.tsx';
import { pathTo, setQuery, usePlace } from '../router.tsx';
import { count, fixed, pawl, percent } from '../words.ts';

const compare = (agent: string, a: string, b: string, signal: AbortSignal) =>
  ask('get', '/api/reward/compare', { query: { agent, a, b } }, signal);
type Swap = Awaited<ReturnType<typeof compare>>['swaps'][number];

const columns: readonly Column<Swap>[] = [
  { name: 'Conversation', grow: 2.4, cell: ({ trajectory }) => <span dir="auto">{trajectory}</span> },
  { name: 'Before', isNumber: true, cell: ({ a }) => fixed(a) },
  { name: 'After', isNumber: true, cell: ({ b }) => fixed(b) },
  {
    ...{ name: 'Place', isNumber: true, isWide: true, grow: 1.4 },
    cell: ({ placeA, placeB }) => `${count(placeA)} → ${count(placeB)}`,
  },
  { name: 'Because of', grow: 1.4, isWide: true, cell: ({ because }) => because ?? '–' },
];

export function Versions({ agent }: { readonly agent: string }) {
  const versions = useAnswer(
    `versions ${agent}`,
    (signal) => ask('get', '/api/reward/versions', { query: { agent } }, signal),
    { topics: ['scores'] },
  );
  const { query } = usePlace();
  const all = versions.value?.versions ?? [];
  const current = all.find((one) => one.current)?.version ?? all[0]?.version;
  const a = query.get('a') ?? all.find(({ version }) => version !== current)?.version;
  const b = query.get('b') ?? current;
  const both = a !== undefined && b !== undefined;
  const compared = useAnswer(both ? `compare ${agent} ${a} ${b}` : null, (signal) =>
    compare(agent, a ?? '', b ?? '', signal),
  );
  const told = compared.value ?? versions.value;
  const options = all.map(
    ({ version, scores, current: isCurrent }) =>
      [version, `${version}${isCurrent ? ' (current)' : ''}, ${count(scores)} scores`] as const,
  );
  return (
    <Panel title="Versions of the reward" note="over conversations of 30 days that have scores under both">
      <Asked of={versions} rows={3}>
        {() =>
          !both ? (
            <Empty title={all.length === 0 ? 'Nothing has a score yet.' : 'There is one version only.'}>
              Another weight or scorer is another version; its scores stand beside the old ones.
            </Empty>
          ) : (
            <>
              <div className="filters">
                <Choice label="From" value={a} set={(version) => setQuery({ a: version })} options={options} />
                <Choice label="To" value={b} set={(version) => setQuery({ b: version })} options={options} />
              </div>
              <Asked of={compared} rows={6}>
                {(found) => (
                  <>
                    <Figures>
                      <Figure
                        label="Conversations"
                        value={count(found.conversations)}
                        note="newest scored under both"
                      />
                      <Figure
                        label="Mean score"
                        value={`${found.meanA === null ? '–' : fixed(found.meanA)} → ${found.meanB === null ? '–' : fixed(found.meanB)}`}
                      />
                      <Figure
                        label="Same order"
                        value={found.spearman === null ? '–' : fixed(found.spearman, 2)}
                        note={found.reordered === null ? undefined : `${percent(found.reordered)} of pairs swapped`}
                      />
                      <Figure label="Good enough" value={`${count(found.gained)} in, ${count(found.lost)} out`} />
                      <Figure
                        label="Agreement with people"
                        value={`${found.labels.a === null ? '–' : fixed(found.labels.a, 2)} → ${found.labels.b === null ? '–' : fixed(found.labels.b, 2)}`}
                        note={`${count(found.labels.count)} labels`}
                      />
                    </Figures>
                    <Plain
                      label="Conversations that change places"
                      rows={found.swaps}
                      columns={columns}
                      idOf={({ trajectory }) => trajectory}
                      to={({ trajectory }) => pathTo('collect', trajectory)}
                      empty={<Empty title="None changes its place." />}
                    />
                  </>
                )}
              </Asked>
            </>
          )
        }
      </Asked>
      {told !== null && <Counted at={told.countedAt} />}
      <Command
        line={
          both ? pawl('reward', 'compare', a, b, ['--agent', agent]) : pawl('reward', 'versions', ['--agent', agent])
        }
      />
    </Panel>
  );
}
