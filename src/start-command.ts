/** `pawl start`: the whole loop in one command. `pawl demo reset` beside it. */
import { setMaxListeners } from 'node:events';
import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { exposure } from './api/guard.ts';
import { recordedBy } from './collect/recorded.ts';
import { wholeNumber, withConfigOption } from './command.ts';
import { agentOf, loadConfig } from './config.ts';
import { weightOf } from './deploy/rollout.ts';
import { ConfigError } from './errors.ts';
import { openLog } from './log.ts';
import type { LoopParts } from './loop/parts.ts';
import { percent, signed } from './loop/show.ts';
import { stageTicker } from './loop/ticker.ts';
import { type LoopTurn, summaryOf } from './loop/turn.ts';
import type { Advanced } from './loop.ts';
import { showSecret, stopSignal } from './serve-command.ts';
import type { World } from './start.ts';
import { homeOwner } from './store/lock.ts';
import { openTerminal } from './terminal.ts';
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
  const agent = agentOf(config);
  const { log, linesLost } = openLog(process.env.PAWL_LOG ?? 'error');
  const { startAll, lastTurn, writeSummary, conversations, wave } = await import('./start.ts');
  const { advance } = await import('./loop.ts');
  const { wantTurn, resumeLoop } = await import('./loop/people.ts');
  const { lockName } = await import('./loop/runner.ts');
  const { exclusively } = await import('./store/exclusive.ts');
  const { reconcile } = await import('./deploy/reconcile.ts');
  const terminal = openTerminal();
  const { paint } = terminal;
  console.log(`Pawl ${version}, agent ${agent.name}`);
  const started = await startAll(config, log, { show: showSecret, say: console.log, linesLost });
  const { serving, engine, world } = started;
  const { customers } = world;
  const { store } = serving;
  const line = (name: string, value: string) => console.log(`  ${name.padEnd(12)}${value}`);
  line('gateway', `${serving.url}/v1`);
  const warning = exposure(config.host);
  if (warning !== null) line('warning', warning);
  line('database', `${store.kind} PostgreSQL ${store.serverVersion}`);
  line('engine', `process ${engine.pid}`);

  const abort = new AbortController();
  const { signal } = abort;
  setMaxListeners(0, signal); // every call under way listens to it
  const stopped = stopSignal().then(() => {
    console.log('\nStopping. The turn goes on from here at the next start.');
    abort.abort();
  });
  const announce = ({ number, seed, done }: LoopTurn) => {
    const begun = done.length > 0 ? `, going on after ${done.at(-1)}` : '';
    console.log(`\nTurn ${number} of the loop, seed ${seed}${begun}. Windows are shortened: a week in minutes.`);
  };
  const recorded = () => recordedBy(serving.recorder);
  const shown = stageTicker(paint);
  const parts: LoopParts = {
    ...{ store, home: config.home, agent, gatewayUrl: serving.url, recorded, signal },
    engine: async () => engine.engine,
    say: { ...shown, begun: announce },
    // A window that was cut off by a crash is not continued but begun anew: half a conversation is nobody's example.
    window: async ({ number, seed }, until) => {
      const since = Date.now();
      const onVisit = (done: number) => shown.progress('collect', done / conversations, `${done} conversations`);
      const prefix = `turn-${number}-${since.toString(36)}`;
      const { resolved } = await customers({ prefix, seed, count: conversations, signal: until, onVisit });
      return { since, until: Date.now() + 1, resolved };
    },
  };
  /** Customers come while a rollout is watched, until the turn has ended or a person is asked. */
  const turnOnce = async (): Promise<Advanced> => {
    for (let n = 0; ; n++) {
      const advanced = await advance(parts, { once: true });
      const { turn, next } = advanced;
      if (turn === null || turn.endedAt !== null || next.kind === 'ask' || !turn.done.includes('evaluate'))
        return advanced;
      const prefix = `turn-${turn.number}-wave-${n}-${Date.now().toString(36)}`;
      await customers({ prefix, seed: turn.seed * 1000 + n + 1, count: wave, signal });
      await recorded();
      for (const { rollout } of await reconcile(store, { now: Date.now(), agent: agent.name }))
        shown.progress(
          'deploy',
          weightOf(rollout),
          `${Math.round(weightOf(rollout) * 100)}% of users on the candidate`,
        );
    }
  };
  let failed = false;
  try {
    const before = await lastTurn(store, agent.name);
    if (before) writeSummary(config.home, before);
    const said = { agent: agent.name, by: 'pawl start', now: Date.now() };
    const held = await exclusively(store, lockName(agent.name), async () => {
      if (options.resume) await resumeLoop(store, said);
      await wantTurn(store, { ...said, seed: options.seed });
      if (before && before.endedAt === null) announce(before);
      return turnOnce();
    });
    if (held === null) throw new ConfigError(`Another Pawl turns the loop of ${agent.name} on this database.`);
    const { turn: ended, next } = held.done;
    if (process.stdout.isTTY) process.stdout.write('\r\x1b[K');
    const summary = ended && summaryOf(ended);
    if (ended) writeSummary(config.home, ended);
    if (!ended || !summary) {
      const isOver = ended !== null && ended.endedAt !== null;
      console.log(`\nThe turn ${isOver ? 'has ended' : 'waits'}. ${isOver ? ended.state.ended : next.reason}`);
      failed = true;
    } else {
      const [low, high] = summary.ci.map((bound) => signed(bound));
      console.log(
        `\n${paint.bold(`${percent(summary.before)} → ${percent(summary.after)}`)} on ${world.golden().length} golden cases ` +
          `(${low} to ${high} points, 95%), ${summary.promoted ? `${ended.state.deploy!.release} serves now` : ended.state.deploy!.phase}, ${summary.seconds.toFixed(0)} s.`,
      );
    }
    if (!options.once) {
      console.log(`\nTraffic goes on at ${serving.url}/v1 (model ${agent.name}). Ctrl-C stops.`);
      await keepTalking(customers, signal);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await started.close();
  }
  if (signal.aborted) await stopped;
  process.exit(failed ? 1 : 0);
}

/** A few customers every few seconds, so that there is something to look at. */
async function keepTalking(customers: World['customers'], signal: AbortSignal) {
  for (let n = 0; !signal.aborted; n++) {
    const prefix = `after-${Date.now().toString(36)}`;
    await customers({ prefix, seed: 1_000_000 + n, count: 8, signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    await new Promise((resolve) => setTimeout(resolve, 5_000));
  }
}
