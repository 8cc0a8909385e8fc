/**
 * What long conversations take: each turn sends everything said so far, 2 kB per message, as an agent does. Recorded as Pawl's
 * recorder does it, which carries a message once and names it afterwards. Bytes are those of the tables with their indexes
 * and TOAST on disk. `growth`: bytes per turn at the end over bytes per turn after ten.
 */
import { createSentMessages } from '../src/collect/sent-messages.ts';
import type { Turn } from '../src/collect/turn.ts';
import { turn, uuidAt } from '../src/store/fixtures.ts';
import { encodeLine, readLine } from '../src/store/line.ts';
import type { Store } from '../src/store/postgres.ts';
import { writeLines } from '../src/store/record.ts';
import { readTrajectory } from '../src/store/trajectories.ts';
import { readTurn } from '../src/store/turns.ts';

const MESSAGE_BYTES = 2000;
const FIRST = 10;

/** A small generator of its own, so that every run has the same words. */
function words(): () => string {
  let state = 1;
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const letters = 'etaoinshrdlucmfwypvbgk';
  const word = () =>
    Array.from({ length: 2 + Math.floor(next() * 8) }, () => letters[Math.floor(next() ** 2 * letters.length)]).join(
      '',
    );
  const vocabulary = Array.from({ length: 4000 }, word);
  return () => {
    let text = '';
    while (text.length < MESSAGE_BYTES) text += `${vocabulary[Math.floor(next() ** 2 * vocabulary.length)]} `;
    return text.slice(0, MESSAGE_BYTES);
  };
}

const onDisk = async (store: Store): Promise<number> => {
  const { rows } = await store.pool.query<{ bytes: number }>(
    `select sum(pg_total_relation_size(i.inhrelid))::bigint as bytes from pg_inherits i
     where i.inhparent in ('pawl.turns'::regclass, 'pawl.messages'::regclass, 'pawl.trajectories'::regclass)`,
  );
  return rows[0]!.bytes;
};

const timed = async (run: () => Promise<unknown>): Promise<number> => {
  const taken: number[] = [];
  for (let i = 0; i < 9; i++) {
    const began = performance.now();
    await run();
    taken.push(performance.now() - began);
  }
  return Number(taken.sort((a, b) => a - b)[4]!.toFixed(1));
};

export async function longConversations(
  store: Store,
  { turns, conversations }: { turns: number; conversations: number },
): Promise<void> {
  if (!Number.isInteger(turns) || turns <= FIRST) throw new Error(`--turns must be a whole number above ${FIRST}.`);
  if (!Number.isInteger(conversations) || conversations < 1) throw new Error('--conversations must be a whole number.');
  const say = words();
  const system = { role: 'system', content: say() };
  const talks = Array.from({ length: conversations }, () => [system] as Turn['choices'][number]['message'][]);
  const sent = createSentMessages('a secret of the bench, as long as one');
  const start = Date.UTC(2026, 4, 20, 12);
  let journalBytes = 0;
  let bytesAtFirst = 0;
  let last = '';
  const began = performance.now();
  for (let n = 0; n < turns; n++) {
    const lines = talks.map((said, i) => {
      said.push({ role: 'user', content: say() });
      const answer = { role: 'assistant', content: say() };
      const startedAt = start + n * 60_000 + i;
      last = uuidAt(startedAt);
      const recorded = turn({
        id: last,
        trajectory: `conversation-${i}`,
        startedAt,
        request: { model: 'small', messages: [...said] },
        choices: [{ index: 0, message: answer, finishReason: 'stop' }],
      });
      said.push(answer);
      const naming = sent.naming(recorded, performance.now());
      const payload = Buffer.from(encodeLine({ kind: 'turn', turn: recorded }, naming));
      naming.acknowledged();
      journalBytes += payload.length;
      return readLine(payload);
    });
    const { inserted } = await writeLines(store, lines);
    if (inserted !== conversations) throw new Error(`${conversations - inserted} turns were not inserted.`);
    if (n + 1 === FIRST) bytesAtFirst = await onDisk(store);
    if ((n + 1) % 20 === 0) console.error(`${n + 1} turns of ${conversations} conversations`);
  }
  const seconds = (performance.now() - began) / 1000;
  const bytes = await onDisk(store);
  const perTurn = { [FIRST]: bytesAtFirst / (FIRST * conversations), [turns]: bytes / (turns * conversations) };
  const now = new Date(start + turns * 60_000);
  const id = `conversation-${conversations - 1}`;
  const whole = await readTrajectory(store, id, { now });
  console.log(
    JSON.stringify({
      bench: 'store',
      conversations,
      turns,
      message_bytes: MESSAGE_BYTES,
      bytes_per_turn: Object.fromEntries(Object.entries(perTurn).map(([at, value]) => [at, Math.round(value)])),
      growth: Number((perTurn[turns]! / perTurn[FIRST]!).toFixed(2)),
      journal_bytes_per_turn: Math.round(journalBytes / (turns * conversations)),
      insert_per_s: Math.round((turns * conversations) / seconds),
      read_turns: whole?.turns.length,
      read_ms: {
        trajectory: await timed(() => readTrajectory(store, id, { now })),
        last_turn: await timed(() => readTurn(store, last)),
      },
    }),
  );
}
