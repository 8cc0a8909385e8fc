/** `pawl erase USER`: removes everything that is stored of a user, and keeps it from coming back. */

import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { typedUser } from '../collect/person.ts';
import { clock } from '../collect/timeline-print.ts';
import { type CommonOptions, type Opened, withHome } from '../command.ts';
import { acting } from '../deploy/command-parts.ts';
import { ConfigError, NotFoundError, StoreError } from '../errors.ts';
import { listErasures, readErasure, surveyUser } from '../store/erasures.ts';
import { scanning } from '../store/limits.ts';
import type { Store } from '../store/postgres.ts';
import { counted, plain, sayProgress, type Terminal, table } from '../terminal.ts';
import { cleanHome } from './clean-home.ts';
import { askErasure, carryOutErasures } from './erase.ts';
import { daysLeft, type ErasedDataset, type Erasure, isUnknown, type Survey } from './erasure.ts';
import { type ErasureProof, verifyErasure } from './verify-erasure.ts';

type Options = CommonOptions & {
  readonly agent?: string;
  readonly by: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly anyway?: boolean;
  readonly hashed?: boolean;
  readonly list?: boolean;
  readonly verify?: boolean;
};

/** What goes, or went, in lines. */
export function erasedLines({
  counts,
  datasets,
  rewardModels,
}: Pick<Survey, 'counts' | 'rewardModels'> & {
  readonly datasets: readonly (Omit<ErasedDataset, 'replacedBy'> & Partial<ErasedDataset>)[];
}): string[] {
  const { conversations, shared, turns, siblings, signals, keys, scores } = counts;
  const others = shared === 0 ? '' : `, ${shared.toLocaleString('en-US')} of them with other people in it`;
  const learned = {
    runs: [...new Set(datasets.flatMap((one) => one.learned.runs))],
    releases: [...new Set(datasets.flatMap((one) => one.learned.releases))],
  };
  const names = [
    ...learned.runs.map((id) => `run ${id}`),
    ...learned.releases.map((id) => `release ${id}`),
    ...rewardModels,
  ];
  return [
    `  ${counted(conversations, 'conversation')} (${counted(turns, 'turn')}, ${counted(siblings, 'explored answer')})${others}`,
    `  ${counted(signals, 'signal')}, ${counted(keys, 'business key')}, ${counted(scores, 'score')}`,
    ...datasets.map(({ id, rows, replacedBy }) =>
      replacedBy === undefined
        ? `  ${counted(rows, 'row')} of dataset ${id}, which gets a new version without them`
        : `  ${counted(rows, 'row')} of dataset ${id}, which is ${replacedBy === null ? 'gone' : `${replacedBy} now`}`,
    ),
    ...(names.length === 0
      ? []
      : [`  What has learned from them stays: ${names.join(', ')}. Weights cannot forget; train again without them.`]),
  ];
}

const scope = ({ user, agent }: Pick<Survey, 'user' | 'agent'>): string =>
  `user ${user} (${agent === null ? 'every agent' : `agent ${plain(agent)}`})`;

async function confirm(survey: Survey, terminal: Terminal): Promise<boolean> {
  if (!process.stdin.isTTY)
    throw new ConfigError(
      'Erasing cannot be undone, and nobody is here to ask. Look with --dry-run, then say it with --yes.',
    );
  terminal.write(`This removes of ${scope(survey)}, for good:`);
  for (const line of erasedLines(survey)) terminal.write(line);
  const asking = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/i.test((await asking.question('Erase? [y/N] ')).trim());
  } finally {
    asking.close();
  }
}

/** Until it is no longer being erased, by this process or by another that was faster. */
async function follow(store: Store, id: string, { artifacts, onInterrupt }: Opened): Promise<Erasure> {
  const stop = new AbortController();
  onInterrupt(async () => {
    console.error(
      'Stopping after this step. The request stands: a serving Pawl, or `pawl retention run`, goes on with it.',
    );
    stop.abort();
  });
  const progress = sayProgress();
  const onProgress = (what: string) => progress(() => `Erasing: ${what} …`);
  for (;;) {
    const mine = await carryOutErasures(store, { artifacts, onProgress, signal: stop.signal });
    const now = await readErasure(store, id);
    if (now === null) throw new NotFoundError(`There is no erasure ${id}.`);
    if (now.status !== 'erasing') return now;
    if (now.problem !== null)
      throw new StoreError(
        `Erasure ${id} is not finished: ${now.problem} It stands and is gone on with by a serving Pawl, or by \`pawl retention run\`.`,
        { retryable: true },
      );
    if (!mine) await sleep(500, undefined, { signal: stop.signal });
  }
}

function printErasure(erasure: Erasure, terminal: Terminal): void {
  const { id, status } = erasure;
  terminal.write(`Erased ${scope(erasure)}, ${id}:`);
  for (const line of erasedLines(erasure)) terminal.write(line);
  terminal.write('  Anything of theirs from before now that a gateway still delivers is dropped.');
  if (status === 'sweeping')
    terminal.write(
      '  Messages that only they had said go within about ten minutes, by a serving Pawl or `pawl retention run`.',
    );
}

async function list({ store, terminal }: Opened, json: boolean | undefined): Promise<void> {
  const erasures = await listErasures(store, { limit: 100 });
  if (json) {
    for (const one of erasures) terminal.write(JSON.stringify({ ...one, daysLeft: daysLeft(one, Date.now()) }));
    return;
  }
  if (erasures.length === 0) {
    terminal.write('Nobody was erased.');
    return;
  }
  const columns = [
    { title: 'ERASURE', shrinkTo: 12 },
    { title: 'USER', shrinkTo: 10 },
    { title: 'AGENT' },
    { title: 'ASKED' },
    { title: 'STATUS' },
    { title: 'DAYS LEFT', right: true },
    { title: 'CONVERSATIONS', right: true },
    { title: 'DROPPED LATE', right: true },
  ];
  const rows = erasures.map(({ id, user, agent, at, status, counts, late }) => [
    id,
    user,
    agent ?? 'every',
    clock(new Date(at)),
    status,
    String(daysLeft({ at, status }, Date.now()) ?? '–'),
    String(counts.conversations),
    String(late),
  ]);
  for (const line of table(columns, rows, terminal)) terminal.write(line);
  for (const { id, problem } of erasures) if (problem !== null) terminal.write(`${id} waits: ${plain(problem)}`);
}

/** Shows the proof; ends with 1 where there is none. */
async function verify(typed: string, options: Options, { store, secret, terminal }: Opened): Promise<void> {
  const patient = store.within(scanning, 3);
  try {
    const proof = await verifyErasure(patient, typedUser(typed, secret, options.hashed));
    if (!proof.verified) process.exitCode = 1;
    if (options.json) terminal.write(JSON.stringify(proof));
    else for (const line of proofLines(proof)) terminal.write(line);
  } finally {
    await patient.close();
  }
}

export function proofLines({ user, erasures, chain, stored, datasets, verified }: ErasureProof): string[] {
  return [
    `User ${user}: ${verified ? 'forgotten' : erasures.length === 0 ? 'nobody asked to forget them' : 'not proven'}.`,
    ...erasures.flatMap((one) => [
      `  ${one.id}, ${one.status}, asked ${clock(new Date(one.at))} by ${plain(one.actor)}${one.finishedAt === null ? '' : `, done ${clock(new Date(one.finishedAt))}`}`,
      ...one.audit.map(({ n, event, hash }) => `    audit ${n} ${event} ${hash}`),
      ...erasedLines(one).map((line) => `  ${line}`),
    ]),
    `  The audit log’s chain of ${chain.rows} rows ${chain.problem === null ? `is whole, head ${chain.head}` : `is broken: ${chain.problem}`}.`,
    Object.values(stored).every((n) => n === 0) && datasets.length === 0
      ? '  Nothing is stored of them now, in any table or dataset.'
      : `  Stored now, of before or since: ${counted(stored.conversations, 'conversation')}, ${counted(stored.signals, 'signal')}, ${counted(datasets.length, 'dataset')}.`,
  ];
}

async function erase(typed: string, options: Options, opened: Opened): Promise<void> {
  const { config, store, secret, terminal } = opened;
  const user = typedUser(typed, secret, options.hashed);
  const agent = options.agent ?? null;
  const patient = store.within(scanning, 3);
  try {
    const survey = await surveyUser(patient, user, agent);
    if (isUnknown(survey) && !options.anyway)
      throw new NotFoundError(
        `Nothing is stored of ${scope(survey)}. Check the id: it is the one the agent sends, letter by letter, or the hash that a list shows together with --hashed. If it is right and a gateway may still hold something of theirs, say --anyway.`,
      );
    if (options.dryRun) {
      if (options.json) terminal.write(JSON.stringify(survey));
      else {
        terminal.write(`Erasing ${scope(survey)} would remove:`);
        for (const line of erasedLines(survey)) terminal.write(line);
      }
      return;
    }
    if (!options.yes && !(await confirm(survey, terminal))) {
      terminal.write('Nothing was erased.');
      return;
    }
    const asked = await askErasure(patient, { user, agent, actor: options.by });
    const erased = await follow(patient, asked.id, opened);
    const { days } = config.retention;
    await cleanHome(patient, opened.artifacts, days === null ? 0 : Date.now() - days * 86_400_000);
    if (options.json) terminal.write(JSON.stringify(erased));
    else printErasure(erased, terminal);
  } finally {
    await patient.close();
  }
}

export const eraseCommand = (): Command =>
  acting('erase', 'Remove everything that is stored of a user, and keep it from coming back.')
    .argument('[user]', 'user id as the agent sends it')
    .option('--agent <name>', 'only what is this agent’s (default: every agent’s)')
    .option('--hashed', 'the user is given by the hash that a list shows')
    .option('--dry-run', 'say what would go; nothing is changed')
    .option('--yes', 'do not ask')
    .option('--anyway', 'also for a user of whom nothing is stored: what gateways still hold of them is dropped')
    .option('--list', 'list erasures, newest first, with the days left of the seven there are')
    .option('--verify', 'show the proof that the user was forgotten; ends with 1 where there is none')
    .addHelpText(
      'after',
      '\nEnds with 1 if nothing is stored of the user. docs/privacy.md says what goes, and what cannot.\n\nExamples:\n  pawl erase u-17 --dry-run\n  pawl erase u-17 --yes --json\n  pawl erase u-17 --verify',
    )
    .action((user: string | undefined, options: Options) => {
      if (user === undefined && !options.list)
        throw new ConfigError('Say whom: pawl erase USER. `pawl erase --list` shows who was erased.');
      return withHome(options, 'existing', (opened) =>
        options.list ? list(opened, options.json) : (options.verify ? verify : erase)(user!, options, opened),
      );
    });
