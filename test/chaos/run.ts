/**
 * One chaos run: for each kind of database a stage, load on it, faults by the schedule, then calm, a drain, and the account.
 * Steps come one after the other; what a fault broke is given the time it needs to heal before the next begins.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { random } from '../../src/simulate/random.ts';
import { openStore } from '../../src/store/postgres.ts';
import { type Account, account, total } from './account.ts';
import { readEvidence } from './evidence.ts';
import type { Fault } from './fault.ts';
import { faults as allFaults } from './faults.ts';
import { type Broken, type Finding, type Ledger, newLedger, now } from './ledger.ts';
import { printStep, type Step, schedule } from './schedule.ts';
import { type DatabaseKind, openStage, type Stage } from './stage.ts';

export type RunOptions = {
  readonly seed: number;
  /** Of faults, all kinds of database together; setting up, healing and draining come on top. */
  readonly seconds: number;
  readonly rate: number;
  readonly databases: readonly DatabaseKind[];
  readonly faults?: readonly Fault[];
  readonly pace?: number;
  /** How long before a kill -9 an answer may be lost to it. */
  readonly windowMs?: number;
  readonly say: (line: string) => void;
  /** Ends the run early, without an account. */
  readonly signal: AbortSignal;
};

export type Result = {
  readonly account: Account;
  readonly faults: number;
  readonly byFault: ReadonlyMap<string, number>;
  readonly findings: readonly Finding[];
  readonly lives: Readonly<Record<string, number>>;
};

const drainMs = 180_000;
const recorderMs = 60_000;

export async function runChaos(options: RunOptions): Promise<Result> {
  const ledgers: Ledger[] = [];
  const accounts: Account[] = [];
  for (const kind of options.databases) {
    const ledger = newLedger();
    const evidence = await half(kind, ledger, options);
    ledgers.push(ledger);
    accounts.push(account(ledger, evidence, options.windowMs));
  }
  const broken = ledgers.flatMap((ledger) => ledger.broken);
  return {
    account: total(accounts),
    faults: broken.length,
    byFault: countBy(broken.map(({ fault }) => fault)),
    findings: ledgers.flatMap((ledger) => ledger.findings),
    lives: Object.fromEntries(countBy(ledgers.flatMap(({ lives }) => lives.map(({ end }) => end)))),
  };
}

async function half(kind: DatabaseKind, ledger: Ledger, options: RunOptions) {
  const { seed, rate, say, signal } = options;
  say(`database: ${kind}; starting gateway, engine, upstream and database …`);
  const stage = await openStage({ kind, ledger, seed, rate });
  try {
    const usable = able(stage, options.faults ?? allFaults, say);
    const steps = schedule(seed, usable, options.pace);
    const end = now() + (1000 * options.seconds) / options.databases.length;
    while (now() < end && usable.length > 0) {
      signal.throwIfAborted();
      await takeStep(stage, steps.next().value, options);
    }
    await stage.load.close();
    await stage.gateway.up();
    say('draining …');
    if (!(await stage.gateway.drained(drainMs)))
      ledger.findings.push({
        at: now(),
        during: 'the end',
        what: `not everything was in the database after ${drainMs / 1000} s`,
      });
    await stage.gateway.end();
    const store = await openStore(stage.evidence);
    try {
      return await readEvidence(store);
    } finally {
      await store.close();
    }
  } finally {
    await stage.close();
  }
}

/** The faults that can be done here; the others are named with the reason. */
function able(stage: Stage, faults: readonly Fault[], say: (line: string) => void): Fault[] {
  return faults.filter((fault) => {
    const reason = fault.unable(stage);
    if (reason !== null) say(`left out: ${fault.name} (${reason})`);
    return reason === null;
  });
}

async function takeStep(stage: Stage, step: Step, { seed, say, signal }: RunOptions): Promise<void> {
  const { ledger, gateway } = stage;
  const dice = random(seed, 'step', stage.kind, step.number);
  const began = now();
  const on = await inject(stage, step.fault, dice);
  const { meanwhile } = step;
  await pause(meanwhile?.afterMs ?? step.holdMs, signal);
  const second = meanwhile === null ? null : await inject(stage, meanwhile.fault, dice);
  if (meanwhile !== null) await pause(meanwhile.holdMs, signal);
  // Together: a gateway that has to end, or begin, may need what the other one took away.
  await Promise.all([on.heal(), second?.heal()]);
  await gateway.up();
  if (!(await gateway.journals(recorderMs)))
    ledger.findings.push({
      at: now(),
      during: step.fault.name,
      what: `nothing was recorded for ${recorderMs / 1000} s afterwards`,
    });
  for (const broken of ledger.broken) broken.to ??= now();
  const details = ledger.broken.filter(({ from }) => from >= began).map(({ detail }) => detail);
  const shown = details.filter((detail) => detail !== '').join('; ');
  say(
    `${printStep(step)}${shown === '' ? '' : ` (${shown})`} · ${((now() - began) / 1000).toFixed(1)} s in all, ${ledger.sent.length} sent`,
  );
  for (const finding of ledger.findings.filter(({ at }) => at >= began)) say(`     found: ${finding.what}`);
  await pause(step.calmMs, signal);
}

/** A run that is given up waits no longer, but what it broke is still healed, so that it can be taken down. */
const pause = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, { signal }).catch(() => {});

async function inject(stage: Stage, fault: Fault, dice: ReturnType<typeof random>) {
  const entry = { fault: fault.name, detail: '', from: now(), to: null, excuses: fault.excuses, destroyed: [] };
  const broken: { -readonly [K in keyof Broken]: Broken[K] } = entry;
  stage.ledger.broken.push(broken);
  const injected = await fault.inject(stage, dice);
  broken.detail = injected.detail;
  broken.destroyed = injected.destroyed ?? [];
  return injected;
}

function countBy(words: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}
