/** A real `pawl engine` with a small model, on a fixed port, that a chaos run kills, stops and starts again. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

export type ChaosEngine = {
  readonly url: string;
  kill(): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** Starts it and resolves when it answers. */
  start(): Promise<void>;
};

export function makeEngine(port: number, model: string): ChaosEngine {
  const url = `http://127.0.0.1:${port}/v1`;
  let child: ChildProcess | null = null;
  const alive = () => child !== null && child.exitCode === null && child.signalCode === null;
  return {
    url,
    async kill() {
      if (!alive()) return;
      const exited = once(child!, 'exit');
      child!.kill('SIGKILL');
      await exited;
    },
    signal(name) {
      if (alive()) child!.kill(name);
    },
    async start() {
      const args = ['engine', '--model', 'examples/support-desk/model', '--name', model, '--port', String(port)];
      child = spawn(process.execPath, ['bin/pawl.js', ...args, '--threads', '1'], { cwd: root, stdio: 'ignore' });
      while (!(await answers(url))) {
        if (!alive())
          throw new Error(`The engine ended with ${child.exitCode ?? child.signalCode} instead of serving.`);
        await sleep(50);
      }
    },
  };
}

const answers = (url: string): Promise<boolean> =>
  fetch(`${url}/models`).then(
    (answer) => answer.ok,
    () => false,
  );
