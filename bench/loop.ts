/**
 * What the loop costs while nothing is due. `steps_per_s`: how often `nextStep` answers, on a turn under way and on none.
 * `idle_cpu`: the share of one core that the whole of `pawl serve` uses with nobody calling, its children (database, engine)
 * included, over `--seconds` after it has settled; Linux only, from /proc. Last line: one JSON object.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Facts, nextStep } from '../src/loop/next-step.ts';
import { loopSettings } from '../src/loop/settings.ts';
import type { LoopTurn } from '../src/loop/turn.ts';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '20' }, detail: { type: 'boolean', default: false } },
});
const seconds = Number(values.seconds);
if (!(seconds >= 1)) throw new Error(`--seconds ${values.seconds} must be a number from 1 on.`);

function stepsPerSecond(): number {
  const now = Date.now();
  const facts: Facts = {
    ...{ agent: 'desk', settings: loopSettings.parse({}), since: now - 3 * 86_400_000, paused: null, wanted: null },
    ...{ missing: null, spent: { seconds: 60, tokens: 1000, money: 0 }, failures: [], run: null, rollout: null },
    evidence: { trajectories: 120, scored: 0, firstAt: now - 1000, lookedAt: null },
    canPractise: false,
  };
  const turn: LoopTurn = {
    ...{ agent: 'desk', number: 1, seed: 1, done: ['collect', 'score'], state: {}, startedAt: now, endedAt: null },
  };
  const began = performance.now();
  let steps = 0;
  for (; performance.now() - began < 1000; steps += 1000)
    for (let i = 0; i < 500; i++) {
      nextStep(null, facts, now + i);
      nextStep(turn, facts, now + i);
    }
  return Math.round(steps / ((performance.now() - began) / 1000));
}

/** Ticks of a process and of everything it started, by process. */
function ticksOf(root: number): Map<string, number> {
  const found = new Map<number, { parent: number; name: string; ticks: number }>();
  for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const title = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').slice(0, 60);
      found.set(Number(name), {
        parent: Number(fields[1]),
        name: title,
        ticks: Number(fields[11]) + Number(fields[12]),
      });
    } catch {
      // it ended meanwhile
    }
  }
  const isOurs = (pid: number): boolean => pid === root || (found.has(pid) && isOurs(found.get(pid)!.parent));
  return new Map([...found].filter(([pid]) => isOurs(pid)).map(([pid, { name, ticks }]) => [`${pid} ${name}`, ticks]));
}

/** As an installation with one agent and the engine up would be, in the middle of a week. */
async function idleCpu(): Promise<number> {
  const home = mkdtempSync(join(tmpdir(), 'pawl-bench-loop-'));
  const config = join(home, 'pawl.config.ts');
  const base = resolve('examples/support-desk/model');
  const desk = { name: 'desk', train: { base }, evaluate: { golden: resolve('examples/support-desk/golden.jsonl') } };
  writeFileSync(config, `export default ${JSON.stringify({ agents: [desk] })};\n`);
  const child = spawn(process.execPath, ['bin/pawl.js', 'serve', '--config', config], {
    env: { ...process.env, DATABASE_URL: '', PAWL_HOME: join(home, 'home'), PAWL_PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    await new Promise<void>((done, failed) => {
      child.stdout.on('data', (text: Buffer) => /gateway +http/.test(text.toString()) && done());
      child.once('exit', (code) => failed(new Error(`pawl serve ended with ${code}.`)));
    });
    await sleep(40_000); // the engine loads, the first looks are made, and what only the start needed is collected
    const before = ticksOf(child.pid!);
    const began = performance.now();
    await sleep(seconds * 1000);
    const after = ticksOf(child.pid!);
    const elapsed = (performance.now() - began) / 1000;
    const perSecond = 100; // USER_HZ, the same on every Linux that Node runs on
    const share = (ticks: number) => ticks / perSecond / elapsed;
    const used = [...after].map(([name, ticks]) => [name, share(ticks - (before.get(name) ?? 0))] as const);
    if (values.detail) for (const [name, of] of used) if (of > 0) console.error(`${of.toFixed(4)}  ${name}`);
    return Number(used.reduce((sum, [, of]) => sum + of, 0).toFixed(4));
  } finally {
    child.kill('SIGTERM');
    await new Promise((done) => (child.exitCode === null ? child.once('exit', done) : done(null)));
    rmSync(home, { recursive: true, force: true });
  }
}

const steps = stepsPerSecond();
console.log(`nextStep: ${steps} a second`);
const idle = await idleCpu();
console.log(JSON.stringify({ steps_per_s: steps, idle_cpu: idle }));
