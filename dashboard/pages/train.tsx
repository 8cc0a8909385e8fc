/** Training: what there is to learn from, the runs and how far each is. One can be begun here; each leads to its curves. */
import { useState } from 'react';
import { useAgent } from '../agent.tsx';
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import type { PageProps } from '../pages.ts';
import { Act } from '../parts/act.tsx';
import { Bar } from '../parts/bar.tsx';
import { Command } from '../parts/command.tsx';
import { Counted } from '../parts/counted.tsx';
import { Choice, Entry } from '../parts/field.tsx';
import { Figure, Figures, Tag } from '../parts/figure.tsx';
import { Page, Panel } from '../parts/layout.tsx';
import { Reference } from '../parts/reference.tsx';
import { Sentence } from '../parts/sentence.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Plain } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { goTo, pathTo, withAgent } from '../router.tsx';
import { statusTone } from '../verdict.ts';
import { count, duration, money, pawl, short } from '../words.ts';
import { Run } from './run.tsx';

const list = (signal: AbortSignal) => ask('get', '/api/runs', { query: { limit: 200 } }, signal);
type Listed = Awaited<ReturnType<typeof list>>['runs'][number];

export default function Train({ rest }: PageProps) {
  return rest[0] === undefined ? <List /> : <Run id={rest[0]} />;
}

const columns: readonly Column<Listed>[] = [
  {
    name: 'Run',
    grow: 2,
    cell: ({ id }) => (
      <span className="wraps" dir="auto">
        {id}
      </span>
    ),
  },
  { name: 'Status', grow: 1.2, cell: ({ status }) => <Tag tone={statusTone(status)}>{status}</Tag> },
  { name: 'Recipe', isWide: true, cell: ({ recipe }) => recipe },
  {
    ...{ name: 'Learns from', grow: 1.8, isWide: true },
    cell: ({ settings }) => (
      <span className="wraps" dir="auto">
        {typeof settings.dataset === 'string' ? settings.dataset : '–'}
      </span>
    ),
  },
  {
    ...{ name: 'Progress', grow: 1.2, isWide: true },
    cell: ({ step, steps }) => <Bar share={steps === 0 ? 0 : step / steps} label={`${step} of ${steps} steps`} />,
  },
  { name: 'Steps', isNumber: true, cell: ({ step, steps }) => `${count(step)} / ${count(steps)}` },
  { name: 'Time', isNumber: true, grow: 1.4, isWide: true, cell: ({ spent }) => duration(spent.seconds * 1000) },
  { name: 'Tokens', isNumber: true, isWide: true, cell: ({ spent }) => short(spent.tokens) },
  { name: 'Cost', isNumber: true, cell: ({ spent }) => (spent.money === 0 ? '–' : money(spent.money)) },
  { name: 'Began', grow: 1.3, isWide: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
];

function List() {
  const agent = useAgent();
  const runs = useAnswer('runs', list, { topics: ['runs'] });
  return (
    <Page
      title="Train"
      about="Runs on what was curated, or in the agent’s environment."
      actions={<Begin agent={agent} />}
    >
      <Advice agent={agent} />
      <Panel title="Runs" note="newest first">
        <Asked of={runs} rows={8}>
          {({ runs: all }) => (
            <Plain
              label="Runs"
              rows={all.filter((run) => run.agent === agent)}
              columns={columns}
              idOf={({ id }) => id}
              to={({ id }) => pathTo('train', id)}
              empty={
                <Empty title="Nothing was trained yet.">
                  The loop trains when there is enough to learn from; a run can be begun by hand.
                </Empty>
              }
            />
          )}
        </Asked>
      </Panel>
      <Command line={pawl('runs', 'list')} />
    </Page>
  );
}

function Advice({ agent }: { readonly agent: string }) {
  const advice = useAnswer(
    `advice ${agent}`,
    (signal) => ask('get', '/api/train/advice', { query: { agent } }, signal),
    { topics: ['datasets'] },
  );
  return (
    <Panel title="What there is to learn from">
      <Asked of={advice} rows={4}>
        {({ stored, dataset, environment, base, recipe, reasons, next, countedAt }) => (
          <>
            <Figures>
              <Figure label="Conversations" value={count(stored.trajectories)} />
              <Figure label="With consent" value={count(stored.consenting)} />
              <Figure label="Scored" value={count(stored.scored)} note={`${count(stored.good)} good enough`} />
              <Figure label="Votes" value={count(stored.votes)} note={`${count(stored.corrections)} corrections`} />
              <Figure
                label="Newest dataset"
                value={dataset === null ? '–' : count(dataset.examples)}
                unit={dataset === null ? '' : 'examples'}
                note={
                  dataset === null
                    ? 'none yet'
                    : `${dataset.id}, ${count(Object.values(dataset.pairs).reduce<number>((sum, n) => sum + (n ?? 0), 0))} pairs`
                }
              />
              <Figure
                label="Recipe"
                value={recipe ?? '–'}
                note={environment ? 'with an environment' : 'no environment'}
              />
              <Figure label="Starts from" value={<Reference of={base} />} />
            </Figures>
            <ul className="sentences">
              {reasons.map((reason) => (
                <li key={reason}>
                  <Sentence text={reason} />
                </li>
              ))}
            </ul>
            <Counted at={countedAt} />
            <Command line={next} />
          </>
        )}
      </Asked>
    </Panel>
  );
}

const recipes = ['auto', 'sft', 'rft', 'dpo', 'grpo', 'sft-grpo', 'rft-grpo', 'sft-dpo'] as const;
type Recipe = (typeof recipes)[number];
const conditions = ['points', 'clean', 'private', 'types', 'balance', 'canaries', 'shifts'] as const;

function Begin({ agent }: { readonly agent: string }) {
  const [chosen, choose] = useState({ dataset: '', recipe: '', lora: '', hours: '' });
  const [without, setWithout] = useState<readonly (typeof conditions)[number][]>([]);
  const datasets = useAnswer(
    `datasets ${agent}`,
    (signal) => ask('get', '/api/datasets', { query: { agent, limit: 50 } }, signal),
    { topics: ['datasets'] },
  );
  const there = (datasets.value?.datasets ?? []).filter(({ gone }) => gone === null);
  const dataset = chosen.dataset || (there[0]?.id ?? '');
  const set = (name: keyof typeof chosen) => (value: string) => choose((old) => ({ ...old, [name]: value }));
  const seconds = chosen.hours === '' ? undefined : Math.round(Number(chosen.hours) * 3600);
  return (
    <Act
      name="Begin a run"
      needs="operator"
      isMain
      title="Train on a dataset"
      disabled={dataset === '' ? 'There is no dataset yet; curate one first.' : null}
      command={() =>
        pawl(
          'train',
          ['--agent', agent],
          ['--dataset', dataset],
          ['--recipe', chosen.recipe],
          ['--lora', chosen.lora],
          ['--budget-seconds', seconds === undefined ? undefined : String(seconds)],
          ['--without', without.join(',')],
        )
      }
      does={async () => {
        const { run } = await ask('post', '/api/runs', {
          json: {
            ...{ agent, dataset },
            ...(chosen.recipe === '' ? {} : { recipe: chosen.recipe as Recipe }),
            ...(chosen.lora === '' ? {} : { lora: Number(chosen.lora) }),
            ...(seconds === undefined ? {} : { budget: { seconds } }),
            ...(without.length === 0 ? {} : { without: [...without] }),
          },
        });
        goTo(withAgent(pathTo('train', run.id)));
      }}
    >
      <Choice
        label="Dataset"
        value={dataset}
        set={set('dataset')}
        options={there.map(({ id, rows, pairs }) => [id, `${id}: ${count(rows)} rows, ${count(pairs.rows)} pairs`])}
      />
      <Choice
        label="Recipe"
        value={chosen.recipe}
        set={set('recipe')}
        options={[['', 'the agent’s'], ...recipes.map((name) => [name, name] as const)]}
      />
      <Entry label="Rank of an adapter" type="number" value={chosen.lora} set={set('lora')} hint="as set" />
      <Entry label="At most so many hours" type="number" value={chosen.hours} set={set('hours')} hint="as set" />
      <fieldset>
        <legend>Go on without (stands in the audit log)</legend>
        <div className="checks">
          {conditions.map((name) => (
            <label key={name} className="check">
              <input
                type="checkbox"
                checked={without.includes(name)}
                onChange={({ target }) =>
                  setWithout((old) => (target.checked ? [...old, name] : old.filter((one) => one !== name)))
                }
              />{' '}
              {name}
            </label>
          ))}
        </div>
      </fieldset>
    </Act>
  );
}
