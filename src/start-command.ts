/** `pawl start`: the whole loop in one command. `pawl loop run|status|history` and `pawl demo reset` beside it. */
import { setMaxListeners } from 'node:events';
import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { exposure } from './api/guard.ts';
import { wholeNumber, withConfigOption, withHome } from './command.ts';
import { agentOf, loadConfig } from './config.ts';
import type { UserFigures } from './deploy/users.ts';
import { engineUpstream } from './engine/open.ts';
import { ConfigError } from './errors.ts';
import { openLog } from './log.ts';
import { type LoopState, type LoopTurn, type StageName, stageNames, summaryOf } from './loop-turn.ts';
import { showSecret, stopSignal } from './serve-command.ts';
import { homeOwner } from './store/lock.ts';
import { listLoopTurns } from './store/loop-turns.ts';
import { openTerminal, table } from './terminal.ts';
import { progressBar } from './train/view.ts';
import { version } from './version.ts';

type Options = { config?: string; once?: boolean; seed?: number; resume?: boolean };

export function startCommand(): Command {
  return withConfigOption(new Command('start'))
    .description('Start everything and turn the loop once: simulated customers, training, evaluation, canary.')
    .option('--once', 'exit after the turn; writes summary.json in the home folder')
    .option('--seed <n>', 'seed of a new turn (default: its number)', wholeNumber(0, 2 ** 31 - 1))
    .option('--resume', 'go on with a run of this turn that somebody paused')
    .addHelpText('after', '\nExample:\n  npm start -- --once --seed 1\n')
    .action(run);
}

export function loopCommand(): Command {
  const loop = new Command('loop').description('Turns of the loop.');
  loop.addCommand(
    withConfigOption(new Command('run'))
      .description('Turn the loop once and exit; goes on with a turn that was interrupted.')
      .option('--seed <n>', 'seed of a new turn (default: its number)', wholeNumber(0, 2 ** 31 - 1))
      .option('--resume', 'go on with a run of this turn that somebody paused')
      .action((options: Options) => run({ ...options, once: true })),
  );
  loop.addCommand(
    withConfigOption(new Command('status'))
      .description('Where the present turn is.')
      .option('--json', 'as JSON')
      .action((options: { config?: string; json?: boolean }) =>
        withHome(options, 'existing', async ({ store, config }) => {
          const [turn] = await listLoopTurns(store, agentOf(config).name, 1);
          if (options.json) console.log(JSON.stringify(turn ?? null));
          else if (turn === undefined)
            console.log('No turn has begun yet; `pawl start` or `pawl loop run` begins one.');
          else for (const line of turnLines(turn)) console.log(line);
        }),
      ),
  );
  loop.addCommand(
    withConfigOption(new Command('history'))
      .description('All turns, newest first.')
      .option('--json', 'one JSON object per line')
      .action((options: { config?: string; json?: boolean }) =>
        withHome(options, 'existing', async ({ store, config, terminal }) => {
          const turns = await listLoopTurns(store, agentOf(config).name);
          if (options.json) for (const turn of turns) console.log(JSON.stringify(turn));
          else if (turns.length === 0)
            console.log('No turn has begun yet; `pawl start` or `pawl loop run` begins one.');
          else
            for (const line of table(
              [
                { title: 'turn', right: true },
                { title: 'started' },
                { title: 'before', right: true },
                { title: 'after', right: true },
                { title: 'ended' },
              ],
              turns.map(historyRow),
              terminal,
            ))
              console.log(line);
        }),
      ),
  );
  return loop;
}

export function demoCommand(): Command {
  const demo = new Command('demo').description('The demo that comes with Pawl.');
  demo.addCommand(
    withConfigOption(new Command('reset'))
      .description('Forget everything in the home folder: traffic, datasets, models, database.')
      .option('--yes', 'do it without this question being asked')
      .action(async (options: { config?: string; yes?: boolean }) => {
        const { home } = await loadConfig(options);
        const owner = homeOwner(home);
        if (owner !== null) throw new ConfigError(`A Pawl (process ${owner}) is running in ${home}; stop it first.`);
        if (!existsSync(home)) console.log(`There is nothing at ${home}.`);
        else if (!options.yes) console.log(`This deletes ${home} for good. Say \`pawl demo reset --yes\` to do it.`);
        else {
          deleteHome(home);
          console.log(`Deleted ${home}.`);
        }
      }),
  );
  return demo;
}

const deleted = /^\.deleted-\d+$/;

/**
 * Everything is moved aside, which takes a moment, and then deleted, which may not: killed in the middle, it leaves no half
 * of a home for a Pawl to start on. Inside the folder, because the folder may be a mount or a link.
 */
export function deleteHome(home: string): void {
  const aside = join(home, `.deleted-${process.pid}`);
  mkdirSync(aside, { recursive: true });
  for (const name of readdirSync(home)) if (!deleted.test(name)) renameSync(join(home, name), join(aside, name));
  for (const name of readdirSync(home)) if (deleted.test(name)) rmSync(join(home, name), { recursive: true });
  // The folder itself, where it is ours to remove; empty it is as good as gone.
  try {
    rmdirSync(home);
  } catch {}
}

async function run(options: Options): Promise<void> {
  const config = await loadConfig(options);
  const { log, linesLost } = openLog(process.env.PAWL_LOG ?? 'error');
  const { startAll, lastTurn, nextTurn, writeSummary, demoSettings, recordedBy } = await import('./start.ts');
  const { runTurn } = await import('./loop.ts');
  const terminal = openTerminal();
  const { paint } = terminal;
  console.log(`Pawl ${version}, agent ${agentOf(config).name}`);
  const started = await startAll(config, log, {
    show: showSecret,
    say: console.log,
    linesLost,
  });
  const { serving, engine, world } = started;
  const line = (name: string, value: string) => console.log(`  ${name.padEnd(12)}${value}`);
  line('gateway', `${serving.url}/v1`);
  const warning = exposure(config.host);
  if (warning !== null) line('warning', warning);
  line('database', `${serving.store.kind} PostgreSQL ${serving.store.serverVersion}`);
  line('engine', `process ${engine.pid}`);

  const abort = new AbortController();
  setMaxListeners(0, abort.signal); // every call under way listens to it
  const stopped = stopSignal().then(() => {
    console.log('\nStopping. The turn goes on from here at the next start.');
    abort.abort();
  });
  const before = await lastTurn(serving.store, agentOf(config).name);
  if (before) writeSummary(config.home, before);
  const turn = await nextTurn(serving.store, agentOf(config).name, options.seed);
  const begun = turn.done.length > 0 ? `, going on after ${turn.done.at(-1)}` : '';
  console.log(
    `\nTurn ${turn.number} of the loop, seed ${turn.seed}${begun}. Windows are shortened: a week in minutes.`,
  );
  let failed = false;
  try {
    const ended = await runTurn(
      {
        store: serving.store,
        home: config.home,
        engine: engine.engine,
        upstream: engineUpstream,
        world,
        resume: options.resume ?? false,
        settings: demoSettings(agentOf(config)),
        recorded: () => recordedBy(serving.recorder),
        signal: abort.signal,
        say: {
          progress: (stage, share, text) => {
            if (!process.stdout.isTTY) return;
            process.stdout.write(`\r\x1b[K  ${stage.padEnd(10)}${progressBar(share, 20)}  ${paint.dim(text)}`);
          },
          done: (stage, state) => {
            if (process.stdout.isTTY) process.stdout.write('\r\x1b[K');
            const seconds = `${state.seconds![stage]!.toFixed(0)} s`;
            for (const [i, text] of stageLines(stage, state).entries())
              console.log(`  ${(i === 0 ? stage : '').padEnd(10)}${text}${i === 0 ? paint.dim(`  ${seconds}`) : ''}`);
          },
        },
      },
      turn,
    );
    writeSummary(config.home, ended);
    const summary = summaryOf(ended);
    if (summary === null) {
      if (process.stdout.isTTY) process.stdout.write('\r\x1b[K');
      console.log(
        `\nThe turn ${ended.endedAt === null ? 'waits' : 'has ended'}. ${ended.state.waits ?? ended.state.ended}`,
      );
      failed = true;
    } else {
      const [low, high] = summary.ci.map((bound) => signed(bound));
      console.log(
        `\n${paint.bold(`${percent(summary.before)} → ${percent(summary.after)}`)} on ${world.golden().length} golden cases ` +
          `(${low} to ${high} points, 95%), ${summary.promoted ? `${ended.state.deploy!.release} serves now` : ended.state.deploy!.phase}, ${summary.seconds.toFixed(0)} s.`,
      );
    }
    if (!options.once) {
      console.log(`\nTraffic goes on at ${serving.url}/v1 (model ${agentOf(config).name}). Ctrl-C stops.`);
      await keepTalking(started, abort.signal);
    }
  } catch (error) {
    if (!abort.signal.aborted) throw error;
  } finally {
    await started.close();
  }
  if (abort.signal.aborted) await stopped;
  process.exit(failed ? 1 : 0);
}

/** A few customers every few seconds, so that there is something to look at. */
async function keepTalking(
  { world }: { world: { customers: (visits: never) => Promise<unknown> } },
  signal: AbortSignal,
) {
  for (let wave = 0; !signal.aborted; wave++) {
    const visits = { prefix: `after-${Date.now().toString(36)}`, seed: 1_000_000 + wave, count: 8, signal };
    await world.customers(visits as never).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    await new Promise((resolve) => setTimeout(resolve, 5_000));
  }
}

const percent = (share: number) => `${(share * 100).toFixed(1)}%`;
const signed = (share: number) => `${share < 0 ? '−' : '+'}${Math.abs(share * 100).toFixed(1)}`;

/** What a stage did, in plain numbers. */
export function stageLines(stage: StageName, state: LoopState): string[] {
  switch (stage) {
    case 'collect': {
      const { conversations, resolved } = state.collect!;
      return [
        `${conversations} conversations through the gateway, ${percent(resolved / Math.max(1, conversations))} resolved`,
      ];
    }
    case 'score': {
      const { trajectories, scored } = state.score!;
      return [`${scored} of ${trajectories} trajectories scored: outcome, tool use, feedback`];
    }
    case 'curate': {
      const { dataset, rows, funnel } = state.curate!;
      const left = funnel.filter(({ entered, passed }) => entered > passed);
      return [
        `${rows} examples in dataset ${dataset}`,
        ...(left.length === 0
          ? []
          : [`left out: ${left.map(({ gate, entered, passed }) => `${gate} ${entered - passed}`).join(', ')}`]),
      ];
    }
    case 'train': {
      const { run: id, steps, tokens } = state.train!;
      return [`run ${id}, ${steps} steps, ${Math.round(tokens / 1000)}k tokens`];
    }
    case 'evaluate': {
      const { before, after, verdict, p } = state.evaluate!;
      return [`golden ${percent(before)} → ${percent(after)}, p ${p < 0.001 ? '< 0.001' : p.toFixed(3)}: ${verdict}`];
    }
    case 'deploy': {
      const { release, phase, reasons } = state.deploy!;
      return [`${release}: ${phase}`, ...(phase === 'promoted' ? [] : reasons), ...usersLines(state)];
    }
    default:
      return stage satisfies never;
  }
}

/** Golden cases and users side by side: before, beside the candidate, and with it, each with its 95% interval. */
export function usersLines({ evaluate, users }: LoopState): string[] {
  if (!users) return [];
  const golden =
    evaluate === undefined
      ? []
      : [
          [
            'golden cases',
            percent(evaluate.before),
            '',
            `${percent(evaluate.after)} (${evaluate.interval.map(signed).join(' to ')})`,
          ],
        ];
  const cells = ({ before, baseline, after }: UserFigures) => [before, baseline, after].map(userFigure);
  const rows = [
    ...golden,
    ['all users', ...cells(users.all)],
    ...users.slices.map(({ slice, ...figures }) => [`  ${slice}`, ...cells(figures)]),
  ];
  const titles = [users.outcome, 'before', 'beside the candidate', 'with the candidate'];
  const widths = titles.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]!.length)));
  return [titles, ...rows].map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i]!))
      .join('  ')
      .trimEnd(),
  );
}

const userFigure = (figure: UserFigures['before']): string =>
  figure === null
    ? 'nobody'
    : `${percent(figure.success)} (${figure.interval.map((bound) => Math.round(bound * 100)).join('–')}) of ${figure.n}`;

function turnLines({ number, seed, done, state, endedAt }: LoopTurn): string[] {
  const next = stageNames.find((stage) => !done.includes(stage));
  return [
    `Turn ${number}, seed ${seed}: ${endedAt === null ? `at ${next}` : 'ended'}`,
    ...[state.waits, state.ended].flatMap((why) => (why === undefined ? [] : [`  ${why}`])),
    ...done.flatMap((stage) =>
      stageLines(stage, state).map((text, i) => `  ${(i === 0 ? stage : '').padEnd(10)}${text}`),
    ),
  ];
}

function historyRow(turn: LoopTurn): string[] {
  const { evaluate, deploy } = turn.state;
  return [
    String(turn.number),
    new Date(turn.startedAt).toISOString().slice(0, 16).replace('T', ' '),
    evaluate === undefined ? '' : percent(evaluate.before),
    evaluate === undefined ? '' : percent(evaluate.after),
    turn.endedAt === null
      ? `at ${stageNames.find((stage) => !turn.done.includes(stage))}`
      : (deploy?.phase ?? turn.state.ended ?? ''),
  ];
}
