/** `npm run chaos`: parses the options, runs, prints the table and, as its last line, one JSON object. */
import { parseArgs } from 'node:util';
import { faults } from './faults.ts';
import { failures, figures, table } from './print.ts';
import { runChaos } from './run.ts';
import type { DatabaseKind } from './stage.ts';

const help = `usage: npm run chaos -- [options]

Runs a real gateway, Postgres, engine and upstream under load, breaks them in random ways, and accounts for every id.
docs/chaos.md says what the figures mean. Ends with 1 when something was lost, doubled, uncounted or broken.

  --minutes <n>     how long faults go on, all databases together (default 10)
  --seed <n>        the order of faults and load (default: from the clock; printed, so that a run can be repeated)
  --rate <n>        requests a second (default 300)
  --database <d>    embedded, external, or both, one half each (default both)
  --only <names>    these faults alone, separated by commas
  --pace <n>        factor on the time that faults stay and pauses last (default 1)
  --list            print all faults and end`;

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    rate: { type: 'string', default: '300' },
    database: { type: 'string', default: 'both' },
    only: { type: 'string', default: '' },
    pace: { type: 'string', default: '1' },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

function fail(message: string): never {
  console.error(message);
  process.exit(2);
}

function positive(name: 'minutes' | 'rate' | 'pace'): number {
  const value = Number(options[name]);
  return value > 0 ? value : fail(`--${name} takes a number above 0, not ${options[name]}.`);
}

const seed = Number(options.seed);
if (!Number.isSafeInteger(seed)) fail(`--seed takes a whole number, not ${options.seed}.`);
const names = options.only === '' ? [] : options.only.split(',');
const unknown = names.filter((name) => !faults.some((fault) => fault.name === name));
if (unknown.length > 0) fail(`There is no fault ${unknown.join(', ')}; --list names all of them.`);
const chosen = names.length === 0 ? faults : faults.filter(({ name }) => names.includes(name));
const databases: DatabaseKind[] =
  options.database === 'both'
    ? ['embedded', 'external']
    : options.database === 'embedded' || options.database === 'external'
      ? [options.database]
      : fail(`--database takes embedded, external or both, not ${options.database}.`);

if (options.help) console.log(help);
else if (options.list)
  for (const { name, does, heals, costs } of chosen)
    console.log(`${name}\n  does   ${does}\n  heals  ${heals}\n  costs  ${costs}`);
else await run();

async function run(): Promise<void> {
  const [minutes, rate, pace] = [positive('minutes'), positive('rate'), positive('pace')];
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      console.log('Stopping: taking everything down.');
      stop.abort();
    });
  const began = Date.now();
  const say = (line: string) => console.log(`[${((Date.now() - began) / 1000).toFixed(0).padStart(4)} s] ${line}`);
  console.log(`Chaos for ${minutes} min at ${rate} requests/s, seed ${seed}, database ${options.database}`);
  const result = await runChaos({
    seed,
    seconds: 60 * minutes,
    rate,
    databases,
    faults: chosen,
    pace,
    say,
    signal: stop.signal,
  }).catch((error: unknown) => {
    if (stop.signal.aborted) process.exit(130);
    throw error;
  });
  console.log(`\n${table(result)}\n`);
  const failed = failures(result, rate);
  for (const failure of failed) console.log(`FAILED: ${failure}`);
  console.log(JSON.stringify(figures(result)));
  process.exitCode = failed.length === 0 ? 0 : 1;
}
