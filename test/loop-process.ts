/** The demo, turned once in a process of its own on a free port, that a test can watch, kill and start again on the same home. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { processStart } from '../src/store/lock.ts';
import { until } from './pawl.ts';

export type LoopProcess = {
  readonly child: ChildProcess;
  /** Everything it has printed. */
  output(): string;
  /** Resolves when it has printed that; rejects when it ends first. */
  printed(what: RegExp): Promise<RegExpExecArray>;
  /** Resolves with its exit code. */
  ended(): Promise<number | null>;
  /** SIGKILL of it and of the server it had started; resolves when they and the engine are gone. */
  kill(): Promise<void>;
};

/** Settings of a demo that practises for so many steps. */
export const demoConfig = (steps: number): string =>
  [
    `import agent from ${JSON.stringify(resolve('examples/support-desk/agent.ts'))};`,
    `export default { agents: [{ ...agent, train: { ...agent.train, steps: ${steps} } }] };\n`,
  ].join('\n');

export function startLoop(home: string, config: string, seed: number, conversations: number): LoopProcess {
  const options = ['--once', '--config', config, '--seed', String(seed), '--conversations', String(conversations)];
  const child = spawn(process.execPath, ['--import', 'tsx', 'examples/support-desk/demo.ts', ...options], {
    env: { ...process.env, DATABASE_URL: '', PAWL_HOME: home, PAWL_PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  const take = (chunk: string) => {
    text += chunk;
  };
  child.stdout!.setEncoding('utf8').on('data', take);
  child.stderr!.setEncoding('utf8').on('data', take);
  const exited = once(child, 'exit');
  const isOver = () => child.exitCode !== null || child.signalCode !== null;
  return {
    child,
    output: () => text,
    async printed(what) {
      const found = await until(
        () => what.exec(text),
        (match) => match !== null || isOver(),
        20,
      );
      if (found === null) throw new Error(`the demo ended without printing ${what}:\n${text}`);
      return found;
    },
    async ended() {
      await exited;
      return child.exitCode;
    },
    async kill() {
      const server = Number(/server +process (\d+)/.exec(text)?.[1]);
      const children = childrenOf(server);
      process.kill(server, 'SIGKILL');
      child.kill('SIGKILL');
      await exited;
      // Nobody tells the engine to end: it notices that its parent is gone.
      for (const pid of [server, ...children])
        await until(
          () => processStart(pid),
          (start) => start === null,
        );
    },
  };
}

/** The engine's process; the database's belongs to itself. */
const childrenOf = (pid: number): number[] =>
  execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => /^ *(\d+) +(\d+) (.*)$/.exec(line))
    .flatMap((found) =>
      found && Number(found[2]) === pid && found[3]!.includes(' engine ') ? [Number(found[1])] : [],
    );

/** Process of the database that serves this home. */
export const postgresOf = (home: string): number =>
  Number(readFileSync(join(home, 'postgres', 'data', 'postmaster.pid'), 'utf8').split('\n')[0]);
