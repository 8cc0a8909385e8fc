/** `pawl start --once` in a process of its own, on a free port, that a test can watch, kill and start again on the same home. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
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
  /** SIGKILL; resolves when it and the engine it had started are gone. */
  kill(): Promise<void>;
};

export function startLoop(home: string, config: string, seed?: number): LoopProcess {
  const args = ['start', '--once', '--config', config, ...(seed === undefined ? [] : ['--seed', String(seed)])];
  const child = spawn(process.execPath, ['bin/pawl.js', ...args], {
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
      if (found === null) throw new Error(`pawl start ended without printing ${what}:\n${text}`);
      return found;
    },
    async ended() {
      await exited;
      return child.exitCode;
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
      const engine = Number(/engine +process (\d+)/.exec(text)?.[1]);
      // Nobody tells the engine to end: it notices that its parent is gone.
      await until(
        () => processStart(engine),
        (start) => start === null,
      );
    },
  };
}

/** Process of the database that serves this home. */
export const postgresOf = (home: string): number =>
  Number(readFileSync(join(home, 'postgres', 'data', 'postmaster.pid'), 'utf8').split('\n')[0]);
