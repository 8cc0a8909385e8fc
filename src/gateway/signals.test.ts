import { describe, expect, it } from 'vitest';
import { attachments, eventSignal, feedbackSignal, outcomeSignal } from './signals.ts';

const now = Date.UTC(2026, 0, 31, 12);
const context = { id: 'id-1', agent: 'desk', key: 'key-1', user: null, trajectory: null, now };
const turn = '01890a5d-ac96-774b-bcce-b302099a8057';

describe('feedback', () => {
  it('maps up, neutral and down to 1, 0.5 and 0', () => {
    const value = (vote: string) => feedbackSignal({ turn, vote }, context).value;
    expect([value('up'), value('neutral'), value('down')]).toEqual([1, 0.5, 0]);
  });

  it('is one vote per user and target, whatever the vote', () => {
    const up = feedbackSignal({ turn, vote: 'up', user: 'ann' }, context);
    const down = feedbackSignal({ turn, vote: 'down', user: 'ann' }, context);
    const other = feedbackSignal({ turn, vote: 'down', user: 'bob' }, context);
    expect(down.identity).toBe(up.identity);
    expect(other.identity).not.toBe(up.identity);
  });

  it('takes the trajectory from the path when the body names none', () => {
    const signal = feedbackSignal({ score: 0.25, comment: 'slow' }, { ...context, trajectory: 'case-7', user: 'ann' });
    expect(signal).toMatchObject({
      target: { kind: 'trajectory', id: 'case-7' },
      value: 0.25,
      comment: 'slow',
      user: 'ann',
      key: 'key-1',
      at: now,
    });
  });

  it.each([
    [{ turn }, /at least one of/],
    [{ vote: 'up' }, /Say what this is about/],
    [{ turn, trajectory: 'a', vote: 'up' }, /not several/],
    [{ turn, vote: 'up', score: 1 }, /not both/],
    [{ turn, score: 1.1 }, /score/],
    [{ turn, vote: 'sideways' }, /vote/],
    [{ turn, vote: 'up', extra: 1 }, /extra/],
    [{ turn: 'not-a-uuid', vote: 'up' }, /turn/],
  ])('refuses %j', (body, reason) => expect(() => feedbackSignal(body, context)).toThrow(reason));
});

describe('what a user did with an answer', () => {
  it('is once per user, target and event', () => {
    const copied = eventSignal({ turn, event: 'copied', user: 'ann' }, context);
    expect(copied).toMatchObject({ kind: 'event', name: 'copied', value: null, target: { kind: 'turn', id: turn } });
    expect(eventSignal({ turn, event: 'copied', user: 'ann', at: now - 1 }, context).identity).toBe(copied.identity);
    expect(eventSignal({ turn, event: 'accepted', user: 'ann' }, context).identity).not.toBe(copied.identity);
    expect(eventSignal({ turn, event: 'copied', user: 'bob' }, context).identity).not.toBe(copied.identity);
  });

  it('keeps what an edited answer became as a correction', () => {
    expect(eventSignal({ turn, event: 'edited', text: 'It was sent on Monday.' }, context).correction).toBe(
      'It was sent on Monday.',
    );
  });

  it.each([
    [{ turn }, /event/],
    [{ turn, event: 'liked' }, /event/],
    [{ turn, event: 'copied', text: 'x' }, /belongs to `edited`/],
    [{ event: 'copied' }, /Say what this is about/],
  ])('refuses %j', (body, reason) => expect(() => eventSignal(body, context)).toThrow(reason));
});

describe('the time a sender gives', () => {
  const at = (at: unknown) => [
    () => feedbackSignal({ turn, vote: 'up', at }, context),
    () => outcomeSignal({ turn, name: 'resolved', value: 1, at }, context),
  ];
  const day = 86_400_000;

  it.each([now + day, now - 3650 * day, Date.UTC(2000, 0, 1), '2026-01-31T23:00:00+09:00'])('may be %s', (given) => {
    for (const send of at(given)) expect(send().at).toBe(new Date(given).getTime());
  });

  it.each([
    now + day + 1,
    Number.MAX_SAFE_INTEGER,
    Math.floor(now / 1000),
    0,
    -1,
    '9999-12-31T00:00:00Z',
    '1999-12-31T23:59:59Z',
  ])('is refused at %s, with what would be right', (given) => {
    for (const send of at(given)) expect(send).toThrow(/between 2000 and a day from now.*milliseconds \(not seconds\)/);
  });
});

describe('outcome', () => {
  it('may be about a business key and may have happened earlier', () => {
    const signal = outcomeSignal(
      { key: 'order:1234', name: 'resolved', value: true, at: '2026-01-30T00:00:00.500Z' },
      context,
    );
    expect(signal).toMatchObject({
      target: { kind: 'key', id: 'order:1234' },
      name: 'resolved',
      value: 1,
      at: Date.UTC(2026, 0, 30) + 500,
    });
  });

  it('replaces the same outcome of the same target and keeps other names apart', () => {
    const one = outcomeSignal({ trajectory: 't', name: 'latency', value: 3, unit: 's' }, context);
    const two = outcomeSignal({ trajectory: 't', name: 'latency', value: 4, unit: 's' }, context);
    const three = outcomeSignal({ trajectory: 't', name: 'resolved', value: 1 }, context);
    expect(two.identity).toBe(one.identity);
    expect(three.identity).not.toBe(one.identity);
  });

  it('refuses a value that is not a number', () => {
    expect(() => outcomeSignal({ trajectory: 't', name: 'x', value: '3' }, context)).toThrow(/value/);
    expect(() => outcomeSignal({ trajectory: 't', name: 'Not A Name', value: 3 }, context)).toThrow(/name/);
  });
});

it('attaches business keys to a trajectory or a turn', () => {
  expect(attachments({ trajectory: 't', keys: ['order:1', 'order:2'] }, context)).toEqual([
    { agent: 'desk', key: 'order:1', trajectory: 't', turn: null, at: now, by: 'key-1' },
    { agent: 'desk', key: 'order:2', trajectory: 't', turn: null, at: now, by: 'key-1' },
  ]);
});
