/** One run: how far it is and what it cost, its curves as they grow, where the time of its steps goes, and what a person may ask of it. */
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import { Act } from '../parts/act.tsx';
import { Bar, Shares } from '../parts/bar.tsx';
import { Chart, type Line } from '../parts/chart.tsx';
import { Command } from '../parts/command.tsx';
import { Figure, Figures, Tag } from '../parts/figure.tsx';
import { ForeignData } from '../parts/foreign.tsx';
import { Page, Panel } from '../parts/layout.tsx';
import { Reference } from '../parts/reference.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Plain } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { Link, pathTo } from '../router.tsx';
import { statusTone } from '../verdict.ts';
import { count, duration, fixed, money, pawl, percent, short } from '../words.ts';
import { Episodes } from './episodes.tsx';

const read = (id: string, signal: AbortSignal) =>
  ask('get', '/api/runs/:id', { param: { id }, query: { last: 1 } }, signal);
const readCurves = (id: string, signal: AbortSignal) =>
  ask('get', '/api/runs/:id/curves', { param: { id }, query: { points: 500 } }, signal);
type Detail = Awaited<ReturnType<typeof read>>;
type RunRecord = Detail['run'];
type Curves = Awaited<ReturnType<typeof readCurves>>;

export function Run({ id }: { readonly id: string }) {
  const on = { topics: ['runs'] as const, id };
  const detail = useAnswer(id, (signal) => read(id, signal), on);
  const curves = useAnswer(`curves ${id}`, (signal) => readCurves(id, signal), on);
  return (
    <Page
      title={id}
      about={<Link to="/train">All runs</Link>}
      actions={detail.value && <Asks run={detail.value.run} done={detail.again} />}
    >
      <Asked of={detail} rows={6}>
        {(value) => <Short {...value} />}
      </Asked>
      <Asked of={curves} rows={12}>
        {(value) =>
          value.steps.length === 0 ? (
            <Panel title="Curves">
              <Empty title="No step is finished yet." />
            </Panel>
          ) : (
            <>
              <div className="columns">
                {drawings.map(({ title, note, lines, format }) => (
                  <Drawn key={title} title={title} note={note} curves={value} lines={lines} format={format} />
                ))}
              </div>
              <Spent curves={value} />
            </>
          )
        }
      </Asked>
      <Episodes id={id} />
      {detail.value && <More {...detail.value} />}
      <Command line={pawl('runs', 'show', id)} />
    </Page>
  );
}

function Asks({ run: { id, status, request }, done }: { readonly run: RunRecord; readonly done: () => void }) {
  const isRunning = status === 'running';
  const asked = request === null ? null : `It was asked to ${request}.`;
  const given = { param: { id } };
  return (
    <>
      <Act
        name="Pause"
        needs="operator"
        title={`Pause ${id}?`}
        disabled={isRunning ? asked : `It is ${status}.`}
        command={() => pawl('runs', 'pause', id)}
        does={() => ask('post', '/api/runs/:id/pause', given)}
        done={done}
      >
        It finishes the step it is in and keeps a checkpoint. Resuming goes on along the same curve.
      </Act>
      <Act
        name="Stop"
        needs="operator"
        isDanger
        title={`Stop ${id}?`}
        disabled={isRunning || status === 'paused' ? (request === 'stop' ? asked : null) : `It is ${status}.`}
        command={() => pawl('runs', 'stop', id)}
        does={() => ask('post', '/api/runs/:id/stop', given)}
        done={done}
      >
        It ends after the step it is in. Its checkpoints stay, and it can be resumed.
      </Act>
      <Act
        name="Resume"
        needs="operator"
        isMain={!isRunning && status !== 'finished'}
        title={`Go on with ${id}?`}
        disabled={status === 'finished' ? 'It is finished.' : null}
        command={() => pawl('runs', 'resume', id)}
        does={() => ask('post', '/api/runs/:id/resume', given)}
        done={done}
      >
        It goes on from its newest checkpoint, in the process that serves.
      </Act>
    </>
  );
}

function Short({ run }: Detail) {
  const { spent, budget, settings } = run;
  const left = run.step === 0 ? null : (spent.seconds / run.step) * (run.steps - run.step);
  const dataset = typeof settings.dataset === 'string' ? settings.dataset : null;
  return (
    <Panel title={run.recipe} note={<Time at={run.createdAt} />}>
      <Figures>
        <Figure
          label="Status"
          value={run.status}
          tone={statusTone(run.status)}
          note={run.reason ?? (run.status === 'running' ? <Heard at={run.heartbeatAt} /> : undefined)}
        />
        <Figure
          label="Steps"
          value={`${count(run.step)} of ${count(run.steps)}`}
          note={<Bar share={run.steps === 0 ? 0 : run.step / run.steps} label={`${run.step} of ${run.steps} steps`} />}
        />
        <Figure
          label="Time"
          value={duration(spent.seconds * 1000)}
          note={
            run.status === 'running' && left !== null
              ? `about ${duration(left * 1000)} to go`
              : budget.seconds === undefined
                ? undefined
                : `of ${duration(budget.seconds * 1000)}`
          }
        />
        <Figure
          label="Tokens"
          value={short(spent.tokens)}
          note={budget.tokens === undefined ? undefined : `of ${short(budget.tokens)}`}
        />
        <Figure
          label="Cost"
          value={spent.money === 0 ? '–' : money(spent.money)}
          note={
            budget.money === undefined
              ? spent.money === 0
                ? 'train.moneyPerHour is not set'
                : undefined
              : `of ${money(budget.money)}`
          }
        />
        <Figure
          label="Learns from"
          value={dataset === null ? '–' : <Link to={pathTo('curate', dataset)}>{dataset}</Link>}
        />
        <Figure label="Starts from" value={<Reference of={run.base} />} note={`seed ${run.seed}`} />
      </Figures>
    </Panel>
  );
}

const Heard = ({ at }: { readonly at: string }) => (
  <>
    heard of <Time at={at} isAgo />
  </>
);

const three = (value: number): string => fixed(value, 3);
const share = (value: number): string => percent(value, 0);

type Drawing = {
  readonly title: string;
  readonly note: string;
  readonly lines: readonly (readonly [name: string, said: string, colour: NonNullable<Line['colour']>])[];
  readonly format: (value: number) => string;
};

/** What belongs on one scale is drawn together; what was not measured is not drawn. */
const drawings: readonly Drawing[] = [
  {
    ...{ title: 'Reward', note: 'mean of the attempts of a step', format: three },
    lines: [['reward_mean', 'reward', 'accent']],
  },
  {
    ...{ title: 'Success', note: 'share of attempts that solve their task', format: share },
    lines: [
      ['success', 'practice', 'accent'],
      ['validation_success', 'held out', 'good'],
    ],
  },
  {
    ...{ title: 'KL', note: 'from the reference, nats a token', format: three },
    lines: [['kl', 'KL', 'accent']],
  },
  {
    ...{ title: 'Entropy', note: 'of the next token, nats', format: three },
    lines: [['entropy', 'entropy', 'accent']],
  },
  { ...{ title: 'Loss', note: 'what was minimised', format: three }, lines: [['loss', 'loss', 'accent']] },
  {
    ...{ title: 'Pairs', note: 'share whose better side is preferred', format: share },
    lines: [['accuracy', 'accuracy', 'accent']],
  },
  {
    ...{ title: 'Groups without news', note: 'all attempts earned the same', format: share },
    lines: [
      ['zero_variance_fraction', 'same reward', 'warn'],
      ['clip_fraction', 'clipped tokens', 'muted'],
    ],
  },
  {
    ...{ title: 'Sampler and policy', note: 'mean gap of logprobs; above 0.05 they are not the same', format: three },
    lines: [
      ['sampler_gap', 'gap', 'accent'],
      ['lag_gap', 'a step later', 'muted'],
    ],
  },
  {
    ...{ title: 'Length', note: 'tokens an attempt or example', format: (value) => fixed(value, 0) },
    lines: [['length', 'tokens', 'accent']],
  },
  {
    ...{ title: 'Gradient', note: 'norm before clipping', format: three },
    lines: [['grad_norm', 'norm', 'accent']],
  },
  {
    ...{ title: 'Speed', note: 'tokens a second, sampled and learned from', format: short },
    lines: [['tokens_per_second', 'tokens/s', 'accent']],
  },
];

type DrawnProps = Drawing & { readonly curves: Curves };

function Drawn({ title, note, lines: asked, curves: { steps, values }, format }: DrawnProps) {
  const lines = asked.flatMap(([name, said, colour]) => {
    const known = values[name];
    return known?.some((value) => value !== null) ? [{ name: said, values: known, colour }] : [];
  });
  if (lines.length === 0) return null;
  const last = lines.map(({ name, values: all }) => {
    const value = all.findLast((one) => one !== null);
    return `${name} ${value === undefined || value === null ? '–' : format(value)}`;
  });
  return (
    <Panel title={title} note={note}>
      <Chart
        x={steps}
        lines={lines}
        label={`${title} over ${steps.length} steps; now ${last.join(', ')}`}
        format={format}
      />
    </Panel>
  );
}

const clocks = [
  ['sampling_seconds', 'sampling', 'accent'],
  ['environment_seconds', 'environment', 'warn'],
  ['training_seconds', 'training', 'good'],
  ['waiting_seconds', 'weights and waiting', 'muted'],
  ['pawl_seconds', 'Pawl itself', 'bad'],
] as const;

function Spent({ curves: { values } }: { readonly curves: Curves }) {
  const shares = clocks.map(([name, said, colour]) => ({
    ...{ name: said, colour },
    value: (values[name] ?? []).reduce<number>((sum, value) => sum + (value ?? 0), 0),
  }));
  const all = shares.reduce((sum, { value }) => sum + value, 0);
  if (all === 0) return null;
  return (
    <Panel title="Where the time goes" note="of the steps that are drawn">
      <Shares of={shares} said={(value) => `${duration(value * 1000)}, ${percent(value / all, 0)}`} />
    </Panel>
  );
}

type Checkpoint = Detail['checkpoints'][number];
const checkpointColumns: readonly Column<Checkpoint>[] = [
  { name: 'After step', isNumber: true, grow: 1.5, cell: ({ step }) => count(step) },
  { name: 'Kind', cell: ({ kind }) => <Tag>{kind}</Tag> },
  {
    ...{ name: 'Held out', isNumber: true },
    cell: ({ validation }) => (validation === null ? '–' : percent(validation)),
  },
  { name: 'Where', grow: 4, cell: ({ folder }) => <code title={folder}>{folder}</code> },
];

type TypeFigures = {
  readonly type: string;
  readonly reward: number;
  readonly success: number;
  readonly attempts: number;
};
const typeColumns: readonly Column<TypeFigures>[] = [
  { name: 'Kind of task', grow: 2, cell: ({ type }) => <span dir="auto">{type}</span> },
  { name: 'Attempts', isNumber: true, cell: ({ attempts }) => count(attempts) },
  { name: 'Reward', isNumber: true, cell: ({ reward }) => fixed(reward) },
  { name: 'Solved', isNumber: true, cell: ({ success }) => percent(success) },
];

function More({ run, checkpoints, model, metrics }: Detail) {
  const types = Object.entries(metrics.at(-1)?.taskTypes ?? {}).map(([type, figures]) => ({ type, ...figures }));
  return (
    <div className="columns">
      {types.length > 0 && (
        <Panel title="By kind of task" note="of the newest step">
          <Plain label="By kind of task" rows={types} columns={typeColumns} idOf={({ type }) => type} empty={null} />
        </Panel>
      )}
      <Panel title="Checkpoints" note={model === null ? undefined : `model in ${model}`}>
        <Plain
          label="Checkpoints"
          rows={checkpoints}
          columns={checkpointColumns}
          idOf={({ folder }) => folder}
          empty={<Empty title="There is none yet." />}
        />
      </Panel>
      <Panel title="Settings">
        <details>
          <summary>{Object.keys(run.settings).length} settings, as they were when it began</summary>
          <ForeignData value={run.settings} />
        </details>
      </Panel>
    </div>
  );
}
