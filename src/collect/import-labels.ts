/**
 * Labels in: each line or entry is parsed, redacted like every other signal, and written once. One that says what stands already
 * changes nothing, so that a file may come again; one about a conversation that nobody recorded is kept, since evidence may be
 * first, and counted, since it may be a misspelt id.
 */
import { standingLabels } from '../store/labels.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { firstStarts } from '../store/trajectories.ts';
import { labelBody, labelSignals, labelTime } from './label.ts';
import { makeSignal } from './make-turn.ts';
import { openAgentRules } from './redact/agent-rules.ts';
import type { PiiOfAgents } from './redact/settings.ts';
import type { Signal } from './signal.ts';
import { parseUntrusted } from './untrusted.ts';

export type LabelCounts = {
  readonly labels: number;
  /** Values written, totals and parts: new ones and those that took another's place. */
  readonly written: number;
  readonly unchanged: number;
  /** About a conversation that is not recorded. */
  readonly unknown: number;
  readonly bad: number;
  readonly problems: readonly { readonly line: number; readonly reason: string }[];
};

const maxProblems = 20;
const together = 500;

export type LabelImport = {
  readonly agent: string;
  readonly secret: string;
  readonly now: Date;
  /** As for conversations. */
  readonly pii?: PiiOfAgents;
  /** One label each: text of JSON, or what was parsed of it. */
  readonly labels: AsyncIterable<unknown> | Iterable<unknown>;
};

export async function importLabels(store: Store, options: LabelImport): Promise<LabelCounts> {
  const { agent, secret, now } = options;
  const rules = (await openAgentRules(options.pii ?? null, secret)).of(agent);
  const counts = { labels: 0, written: 0, unchanged: 0, unknown: 0, bad: 0 };
  const problems: { line: number; reason: string }[] = [];
  const complain = (line: number, reason: string) => {
    counts.bad++;
    if (problems.length < maxProblems) problems.push({ line, reason: reason.slice(0, 300) });
  };
  let batch: { readonly signal: Signal; readonly dated: boolean }[] = [];
  const flush = async () => {
    const standing = await standingLabels(
      store,
      agent,
      batch.map(({ signal }) => signal.identity),
    );
    const news = batch.filter(({ signal, dated }) => {
      const before = standing.get(signal.identity);
      const same =
        before?.value === signal.value && before.comment === signal.comment && before.correction === signal.correction;
      return dated || !same;
    });
    const { inserted, refused } = await writeEntries(
      store,
      news.map(({ signal }) => ({ kind: 'signal' as const, signal })),
    );
    for (const { error } of refused) complain(line, error);
    counts.written += inserted;
    counts.unchanged += batch.length - inserted - refused.length;
    const about = [
      ...new Set(batch.flatMap(({ signal: { target } }) => (target.kind === 'trajectory' ? target.id : []))),
    ];
    counts.unknown += about.length - (await firstStarts(store, agent, about)).size;
    batch = [];
  };
  let line = 0;
  for await (const given of options.labels) {
    line++;
    if (typeof given === 'string' && given.trim() === '') continue;
    const parsed = labelBody.safeParse(typeof given === 'string' ? parseUntrusted(given) : given);
    if (!parsed.success) {
      complain(
        line,
        parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'it'}: ${message}`).join('; '),
      );
      continue;
    }
    try {
      const at = labelTime(parsed.data.at, now.getTime());
      for (const signal of labelSignals(parsed.data, { agent, at, receivedAt: now.getTime(), secret }))
        batch.push({ signal: makeSignal(signal, secret, rules).signal, dated: parsed.data.at !== undefined });
      counts.labels++;
    } catch (error) {
      complain(line, (error as Error).message);
    }
    if (batch.length >= together) await flush();
  }
  await flush();
  return { ...counts, problems };
}
