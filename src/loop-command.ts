/**
 * `pawl loop run|status|history|pause|resume`. Where a Pawl serves, `run` asks it for a turn and looks on; where none does,
 * the turn runs here, up to where it needs users.
 */
import { setMaxListeners } from 'node:events';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import type { Agent } from './agent.ts';
import type { Artifacts } from './artifacts/artifacts.ts';
import { openArtifacts } from './artifacts/open.ts';
import { type CommonOptions, parseMoment, userName, wholeNumber, withConfigOption, withHome } from './command.ts';
import { agentOf, loadConfig } from './config.ts';
import { ConfigError } from './errors.ts';
import { readFacts } from './loop/facts.ts';
import { type Ask, nextStep, type Wait } from './loop/next-step.ts';
import { type LoopParts, runId } from './loop/parts.ts';
import { pauseLoop, resumeLoop, wantTurn, windowOf } from './loop/people.ts';
import { lockName } from './loop/runner.ts';
import { historyColumns, historyRow, nextLines, turnLines } from './loop/show.ts';
import { stageTicker } from './loop/ticker.ts';
import { type LoopTurn, type StageName, stageNames } from './loop/turn.ts';
import { advance } from './loop.ts';
import { leading } from './store/lead.ts';
import { listLoopTurns } from './store/loop-turns.ts';
import type { Store } from './store/postgres.ts';
import { postgresRunStore } from './store/runs.ts';
import { openTerminal, plain, table } from './terminal.ts';
import { mlflowTracker } from './train/mlflow.ts';
import { type Reached, withServing } from './with-serving.ts';

type Options = CommonOptions & { readonly agent?: string };
type RunOptions = Options & {
  readonly seed?: number;
  readonly resume?: boolean;
  readonly since?: Date;
  readonly until?: Date;
};

const named = (name: string, description: string): Command =>
  withConfigOption(new Command(name))
    .description(description)
    .option('--agent <name>', 'whose loop (default: the first agent of the settings)')
    .option('--json', 'as JSON');

const moment = (text: string): Date => parseMoment(text);

export function loopCommand(): Command {
  const run = named('run', 'Turn the loop now; goes on with a turn that was interrupted or failed.')
    .option('--seed <n>', 'seed of a new turn (default: loop.seed, else its number)', wholeNumber(0, 2 ** 31 - 1))
    .option(
      '--since <time>',
      'learn from what began after: 2h, 3d, or 2026-01-31 (default: the last turn’s window)',
      moment,
    )
    .option('--until <time>', 'and before (default: now)', moment)
    .option('--resume', 'also go on with a run of this turn that somebody paused')
    .addHelpText(
      'after',
      '\nExits with 0 when the turn has ended or is with the users, with 1 when it waits for a person.\n\nExample:\n  pawl loop run --agent support-desk\n',
    )
    .action(runNow);
  const status = named('status', 'What the loop does next and why, and where its turn is.').action((options: Options) =>
    withHome(options, 'existing', async ({ config, store, terminal }) => {
      const { turn, facts } = await readFacts(store, agentOf(config, options.agent), Date.now());
      const next = nextStep(turn, facts, Date.now());
      if (options.json) terminal.write(JSON.stringify({ agent: facts.agent, next, turn, spent: facts.spent }));
      else for (const line of nextLines(next)) terminal.write(plain(line));
      if (turn !== null && !options.json) for (const line of turnLines(turn)) terminal.write(plain(line));
    }),
  );
  const history = named('history', 'All turns, newest first: what each cost and gained.')
    .option('--limit <n>', 'how many, at most 1000', wholeNumber(1, 1000), 50)
    .action((options: Options & { readonly limit: number }) =>
      withHome(options, 'existing', async ({ config, store, terminal }) => {
        const { name } = agentOf(config, options.agent);
        const turns = await listLoopTurns(store, name, options.limit);
        if (options.json) for (const turn of turns) terminal.write(JSON.stringify(turn));
        else if (turns.length === 0)
          terminal.write(`No turn of ${name} has begun yet; \`pawl loop status\` says when one does.`);
        else for (const line of table(historyColumns, turns.map(historyRow), terminal)) terminal.write(line);
      }),
    );
  const saying = (name: string, description: string, say: typeof pauseLoop, done: string) =>
    named(name, description).action((options: Options) =>
      withHome(options, 'create', async ({ config, store, terminal }) => {
        const { name: agent } = agentOf(config, options.agent);
        const loop = await say(store, { agent, by: userName(), now: Date.now() });
        terminal.write(
          options.json ? JSON.stringify(loop) : `${done} \`pawl loop status --agent ${agent}\` says more.`,
        );
      }),
    );
  return new Command('loop')
    .description('Turns of the loop.')
    .addCommand(run)
    .addCommand(status)
    .addCommand(history)
    .addCommand(
      saying(
        'pause',
        'Begin nothing, go on with nothing; users stay where they are.',
        pauseLoop,
        'The loop is paused.',
      ),
    )
    .addCommand(
      saying(
        'resume',
        'Go on: after a pause, with a stage that failed, with a run that was paused.',
        resumeLoop,
        'The loop goes on.',
      ),
    );
}

/** A Pawl that serves begins a turn within moments. */
const patienceMs = 60_000;

async function runNow(options: RunOptions): Promise<void> {
  const config = await loadConfig(options);
  const agent = agentOf(config, options.agent);
  const stop = new AbortController();
  const { signal } = stop;
  setMaxListeners(0, signal); // every call under way listens to it
  const interrupted = () => {
    if (signal.aborted) process.exit(130);
    console.error('\nStopping. The turn goes on from here when it is run again. Ctrl-C again stops at once.');
    stop.abort(new Error('Stopped.'));
  };
  process.on('SIGINT', interrupted).on('SIGTERM', interrupted);
  const said = { agent: agent.name, by: userName(), now: Date.now() };
  const ask = async (store: Store) => {
    if (options.resume) await resumeLoop(store, said);
    await wantTurn(store, {
      ...said,
      seed: options.seed,
      window: windowOf(options.since?.getTime(), options.until?.getTime(), said.now),
    });
  };
  const { mlflow } = config;
  const tracker = mlflow && mlflowTracker(mlflow, (sentence) => console.error(plain(sentence)));
  try {
    const ended = await withServing(config, signal, async ({ store, url, engine, trainer }) => {
      if (engine !== null && trainer !== null)
        return runHere({ store, url, engine, trainer, tracker }, openArtifacts(config), agent, ask, options, signal);
      await ask(store);
      return watchTurn(store, agent, said.now, options, signal);
    });
    tellEnd(ended, options);
  } catch (error) {
    if (!signal.aborted) throw error;
    process.exitCode = 130;
  } finally {
    process.removeListener('SIGINT', interrupted).removeListener('SIGTERM', interrupted);
  }
}

type Ended = { readonly turn: LoopTurn | null; readonly next: Wait | Ask };

async function runHere(
  { url, ...parts }: Reached & Pick<LoopParts, 'engine' | 'trainer' | 'tracker'>,
  artifacts: Artifacts,
  agent: Agent,
  ask: (store: Store) => Promise<void>,
  options: RunOptions,
  signal: AbortSignal,
): Promise<Ended> {
  const say = options.json ? silent : stageTicker(openTerminal().paint);
  const recorded = async () => {}; // nobody else calls, so nothing is on its way
  const { store } = parts;
  const held = await leading(store, lockName(agent.name), `${hostname()}:${process.pid}:loop run`, async (lead) => {
    await ask(store);
    return advance(
      { ...parts, artifacts, agent, gatewayUrl: async () => url, recorded, say, signal, lead },
      { once: true },
    );
  });
  if (held === null) throw new ConfigError(`Another Pawl turns the loop of ${agent.name} on this database right now.`);
  return held.done;
}

/** Looks on while a Pawl that serves runs the turn. Stopping this stops nothing there. */
async function watchTurn(
  store: Store,
  agent: Agent,
  since: number,
  options: RunOptions,
  signal: AbortSignal,
): Promise<Ended> {
  const ticker = options.json ? silent : stageTicker(openTerminal().paint);
  const told = new Set<StageName>();
  for (let first = true; ; first = false) {
    signal.throwIfAborted();
    const now = Date.now();
    const { turn, facts } = await readFacts(store, agent, now);
    const next = nextStep(turn, facts, now);
    const isBegun = turn !== null && (turn.endedAt === null || turn.startedAt >= since);
    if (first && isBegun) for (const stage of turn.done) told.add(stage);
    if (isBegun)
      for (const stage of turn.done) {
        if (told.has(stage)) continue;
        told.add(stage);
        ticker.done(stage, turn.state);
      }
    if (isBegun && turn.endedAt !== null)
      return { turn, next: { kind: 'wait', until: null, reason: 'The turn has ended.' } };
    if (isBegun && (next.kind === 'ask' || (next.kind === 'wait' && turn.done.includes('evaluate'))))
      return { turn, next };
    if (!isBegun && next.kind === 'wait') return { turn, next };
    if (!isBegun && now - since > patienceMs)
      throw new ConfigError(
        `The turn was asked for and has not begun. Is \`pawl serve\` running with agent ${agent.name} in its settings?`,
      );
    if (isBegun && stageNames[turn.done.length] === 'train') {
      const run = await postgresRunStore(store).get(runId(turn));
      if (run) ticker.progress('train', run.step / run.steps, `step ${run.step} of ${run.steps}`);
    }
    await sleep(1_000, undefined, { signal });
  }
}

function tellEnd({ turn, next }: Ended, { json }: RunOptions): void {
  const isOver = turn !== null && turn.endedAt !== null;
  if (next.kind === 'ask') process.exitCode = 1;
  if (json) {
    console.log(JSON.stringify({ turn, next }));
    return;
  }
  if (process.stdout.isTTY) process.stdout.write('\r\x1b[K');
  if (turn !== null) for (const line of turnLines(turn)) console.log(plain(line));
  if (!isOver) for (const line of nextLines(next)) console.log(plain(line));
}

const silent: LoopParts['say'] = { progress: () => {}, done: () => {} };
