import { expect, test } from 'vitest';
import { piiSettings } from '../collect/redact/settings.ts';
import { converse } from '../score/fixtures.ts';
import { sibling, signal } from '../store/fixtures.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { surveyPii } from './pii.ts';

test('what is personal is told of with where: conversations, explored answers, comments and corrections', async () => {
  const store = await withStore();
  const turns = converse('Mail [EMAIL_1], I am Karen Jones.', [{ say: 'Done.' }], {
    ...{ agent: 'desk', trajectory: 'talk', startedAt: Date.now() },
  });
  const explored = sibling(turns[0]!, {
    choices: [{ index: 0, finishReason: 'stop', message: { role: 'assistant', content: 'My name is Robert Miller.' } }],
  });
  const now = Date.now();
  const said = signal({
    ...{ agent: 'desk', at: now, receivedAt: now, kind: 'feedback', target: { kind: 'trajectory', id: 'talk' } },
    ...{ comment: 'Ask my wife, Laura Hayes, at [PHONE_1].', correction: 'Dear Karen Jones, it is done.' },
  });
  await writeEntries(store, [
    ...turns.map((turn) => ({ kind: 'turn' as const, turn })),
    { kind: 'sibling', sibling: explored },
    { kind: 'signal', signal: said },
  ]);
  const window = { agent: 'desk', since: new Date(Date.now() - 3_600_000), until: new Date(Date.now() + 60_000) };
  const { masked, found } = await surveyPii(store, { ...window, pii: piiSettings.parse({}) });
  expect(masked).toEqual({
    email: { count: 1, in: 1, where: { user: 1 }, first: ['talk'] },
    phone: { count: 1, in: 1, where: { feedback: 1 }, first: [`signal ${said.id}`] },
  });
  expect(found?.person).toMatchObject({
    in: 2,
    where: { user: 1, 'explored answer': 1 },
    first: ['talk', `signal ${said.id}`],
  });
  expect(found?.person?.where.feedback).toBeGreaterThanOrEqual(1);
});
