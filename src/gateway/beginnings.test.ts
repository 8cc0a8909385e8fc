import { expect, it } from 'vitest';
import { entry } from '../store/fixtures.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { createBeginnings, goesOn } from './beginnings.ts';
import { Scan } from './scan.ts';

it('tells by what the request shows of the agent whether it goes on', () => {
  const user = { role: 'user', content: 'Hello' };
  const agent = { role: 'assistant', content: 'Hello.' };
  for (const body of [
    { messages: [user, agent, user] },
    { input: [user, agent, user] },
    { input: [user, { type: 'function_call', name: 'find' }] },
    { input: 'And now?', previous_response_id: 'resp_1' },
  ])
    expect(goesOn(body), JSON.stringify(body)).toBe(true);
  for (const body of [
    { messages: [user] },
    { input: 'Hello' },
    { input: [user] },
    { prompt: 'Hello' },
    { messages: [null] },
  ])
    expect(goesOn(body), JSON.stringify(body)).toBe(false);
});

it('tells a large body, which is scanned and not read, by how much stands in it', () => {
  const scanned = (...roles: string[]) => {
    const bytes = Buffer.from(
      JSON.stringify({ messages: roles.map((role) => ({ role, content: 'x'.repeat(8_000) })) }),
    );
    const scan = new Scan();
    scan.feed(bytes);
    return scan.read(bytes).body;
  };
  expect(goesOn(scanned('user', 'assistant', 'user'))).toBe(true);
  expect(goesOn(scanned('system', 'user'))).toBe(false);
});

it('says what the first turn was meant for, of this agent’s conversation alone, and nothing without a database', async () => {
  const store = await withStore();
  const at = Date.now() - 60_000;
  await writeEntries(store, [
    entry.turn({ agent: 'desk', trajectory: 't1', startedAt: at, release: 'v1', assigned: 'v2' }),
    entry.turn({ agent: 'desk', trajectory: 't1', startedAt: at + 1000, release: 'v1' }),
    entry.turn({ agent: 'desk', trajectory: 't2', startedAt: at, release: 'v1' }),
  ]);
  const beginnings = createBeginnings(() => store);
  expect(await beginnings.of('desk', 't1')).toBe('v2');
  expect(await beginnings.of('desk', 't2')).toBe('v1');
  expect(await beginnings.of('shop', 't2')).toBeNull();
  expect(await beginnings.of('desk', 't3')).toBeNull();
  expect(await createBeginnings(() => null).of('desk', 't1')).toBeNull();
});
