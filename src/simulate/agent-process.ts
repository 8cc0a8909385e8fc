/**
 * Starts the user's own agent as a process, in a process group of its own, and takes what it prints as its answer. When the
 * agent has ended or is told to stop, its whole group is killed; should this process itself be killed, a shell beside the agent
 * sees its pipe close and does the same. Nothing is left behind but what left the group on purpose.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentEnd, OwnAgent, Start } from './agent-episode.ts';

export type ProcessOptions = {
  /** A line for the shell, or a program and its arguments. */
  readonly command: string | readonly string[];
  readonly cwd?: string; // where Pawl was started
  /** Added to the environment that Pawl was started with. */
  readonly env?: Readonly<Record<string, string>>;
};

/** The agent in the background and a watcher of the pipe at 3, which only Pawl holds open; the shell ends as the agent does. */
const guard = `"$@" </dev/null 3<&- & agent=$!
(read -r _ <&3; kill -9 0) >/dev/null 2>&1 &
exec 3<&-
wait $agent`;

/** Of one variable; Linux takes 128 KiB. */
const taskBytes = 100_000;
const errorCharacters = 2000;
/** Exit statuses of a shell that could not run the command at all. */
const notStarted = [126, 127];

export function processRunner({ command, cwd, env }: ProcessOptions): OwnAgent<never>['run'] {
  const words = typeof command === 'string' ? ['/bin/sh', '-c', command] : command;
  return async (start, { characters }, signal) => {
    const child = spawn('/bin/sh', ['-c', guard, 'agent', ...words], {
      ...(cwd === undefined ? {} : { cwd }),
      env: { ...surroundings(start), ...env },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    const out = tailOf(child.stdout!, characters);
    const errors = tailOf(child.stderr!, errorCharacters);
    child.stdio[3]?.on('error', () => {}); // the watcher is killed before it has read anything
    const kill = (): void => killGroup(child);
    signal.addEventListener('abort', kill, { once: true });
    if (signal.aborted) kill();
    const closed = new Promise<void>((resolve) => child.once('close', resolve));
    const ended = await new Promise<number | Error>((resolve) => {
      child.once('error', resolve);
      child.once('exit', (code) => resolve(code ?? 137));
    });
    signal.removeEventListener('abort', kill);
    kill();
    if (ended instanceof Error) {
      return { kind: 'unreachable', detail: `The agent cannot be started in ${cwd ?? '.'}: ${ended.message}` };
    }
    // What left the group may hold the pipes open for ever.
    await Promise.race([closed, sleep(2000, undefined, { ref: false })]);
    for (const pipe of [child.stdout!, child.stderr!, child.stdio[3]!]) pipe.destroy();
    return endOf(ended, signal.aborted, out().trim(), errors().trim(), words);
  };
}

function endOf(status: number, isStopped: boolean, answer: string, errors: string, words: readonly string[]): AgentEnd {
  if (isStopped) return { kind: 'stopped', answer };
  if (status === 0) return { kind: 'done', answer };
  const why = errors === '' ? '' : `: ${errors}`;
  if (notStarted.includes(status)) {
    return { kind: 'unreachable', detail: `The agent's command ${JSON.stringify(words)} cannot be run${why}` };
  }
  return { kind: 'died', answer, detail: `the agent ended with status ${status}${why}` };
}

function surroundings(start: Start): NodeJS.ProcessEnv {
  const task = JSON.stringify(start.task);
  if (Buffer.byteLength(task) > taskBytes) {
    throw new Error(
      `task ${start.task.id} is over ${taskBytes} bytes as JSON, too much for an environment variable; let \`input\` give less, such as a file's name`,
    );
  }
  // Pawl's own settings, tokens among them, are none of the agent's business.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('PAWL_'));
  // A proxy for the outside world would be asked for a server on this machine.
  const direct = [process.env.NO_PROXY ?? process.env.no_proxy, new URL(start.baseUrl).hostname].filter(Boolean).join();
  return {
    ...Object.fromEntries(inherited),
    NO_PROXY: direct,
    no_proxy: direct,
    OPENAI_BASE_URL: start.baseUrl,
    OPENAI_API_KEY: start.key,
    PAWL_TASK: task,
    PAWL_EPISODE: start.episode,
    PAWL_SEED: String(start.seed),
  };
}

/** The last so many characters of what comes through a pipe. */
function tailOf(pipe: NodeJS.ReadableStream, characters: number): () => string {
  let text = '';
  pipe.setEncoding('utf8');
  pipe.on('data', (more: string) => {
    text += more;
    if (text.length > 2 * characters + 65_536) text = text.slice(-characters);
  });
  return () => text.slice(-characters);
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
