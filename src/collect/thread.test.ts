import { describe, expect, test } from 'vitest';
import { createThreader, normalise, type ThreadedTurn, type Threader, type ThreaderOptions } from './thread.ts';
import type { Choice } from './turn.ts';

const user = (content: unknown) => ({ role: 'user', content });
const assistant = (content: string, more: object = {}) => ({ role: 'assistant', content, ...more });
const answer = (message: object, index = 0): Choice => ({
  index,
  message: message as Choice['message'],
  finishReason: 'stop',
});

function desk(options: Partial<ThreaderOptions> = {}, name = 't') {
  let made = 0;
  let now = 0;
  const threader: Threader = createThreader({ secret: 's', ...options });
  return {
    threader,
    wait(ms: number) {
      now += ms;
    },
    place(messages: unknown, choices: readonly Choice[], fields: Partial<ThreadedTurn> = {}) {
      const turn = { explicit: null, agent: 'a', user: null, messages, choices, complete: true, ...fields };
      return threader.place(turn, now, () => `${name}${++made}`);
    },
    say(messages: readonly object[], text: string, fields: Partial<ThreadedTurn> = {}) {
      return this.place(messages, [answer(assistant(text))], fields).trajectory;
    },
  };
}

describe('inferring the trajectory', () => {
  test('a request that extends messages plus answer joins; an unrelated one does not', () => {
    const d = desk();
    expect(d.say([user('Hi')], 'Hello')).toBe('t1');
    expect(d.say([user('Hi'), assistant('Hello'), user('Where is it?')], 'There')).toBe('t1');
    expect(
      d.say([user('Hi'), assistant('Hello'), user('Where is it?'), assistant('There'), user('Thanks')], 'Welcome'),
    ).toBe('t1');
    expect(d.say([user('Hi there')], 'Hello')).toBe('t2');
    expect(d.say([user('Hi'), assistant('Something else'), user('Where is it?')], 'x')).toBe('t3');
  });

  test('tool calls and results are followed, however the client re-serialises the arguments', () => {
    const d = desk();
    const call = (args: string) => ({
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'find', arguments: args } }],
    });
    const given = { role: 'assistant', reasoning_content: 'hm', refusal: null, ...call('{"a":1,"b":[2]}') };
    expect(d.place([user('Find it')], [answer(given)]).trajectory).toBe('t1');
    const back = { role: 'assistant', ...call('{ "b": [2], "a": 1 }'), content: '' };
    expect(d.say([user('Find it'), back, { role: 'tool', tool_call_id: 'c1', content: 'found' }], 'Done')).toBe('t1');
    const other = { role: 'assistant', ...call('{"a":2,"b":[2]}') };
    expect(d.say([user('Find it'), other, { role: 'tool', tool_call_id: 'c1', content: 'found' }], 'Done')).toBe('t2');
  });

  test('what clients change on the way back makes no difference', () => {
    const same = normalise(assistant('Hi', {}));
    expect(normalise(assistant('Hi\n', { refusal: null, annotations: [], reasoning: 'x' }))).toBe(same);
    expect(normalise({ role: 'assistant', content: [{ type: 'text', text: 'Hi' }] })).toBe(same);
    expect(normalise(assistant('<think>let me see</think>\n\nHi'))).toBe(same);
    expect(normalise(assistant('Hi', { tool_calls: [] }))).toBe(same);
    expect(normalise(user('Hi'))).not.toBe(same);
    expect(normalise(assistant('Hi!'))).not.toBe(same);
    const image = (url: string) => user([{ type: 'image_url', image_url: { url } }]);
    expect(normalise(image('a'))).not.toBe(normalise(image('b')));
  });

  test('messages that are the same objects as before are told apart by what was said before them', () => {
    const d = desk();
    const [hi, hello, where] = [user('Hi'), assistant('Hello'), user('Where is it?')];
    const [there, thanks] = [assistant('There'), user('Thanks')];
    expect(d.say([hi, hello, where], 'There')).toBe('t1');
    expect(d.say([user('Good day'), hello, where], 'There')).toBe('t2');
    expect(d.say([hi, hello, where, there, thanks], 'Welcome')).toBe('t1');
    expect(d.say([user('Good day'), hello, where, there, thanks], 'Welcome')).toBe('t2');
    expect(d.say([hi, hello, user('And'), where, there, thanks], 'Welcome')).toBe('t3');
    // As new objects they are the same conversations.
    const again = (messages: readonly object[]) => JSON.parse(JSON.stringify(messages)) as object[];
    expect(d.say(again([hi, hello, where, there, thanks, assistant('Welcome'), user('Bye')]), 'Bye')).toBe('t1');
  });

  test('instructions that change from call to call do not end a conversation', () => {
    const d = desk();
    const system = (content: string) => ({ role: 'system', content });
    d.say([system('It is 10:00'), user('Hi')], 'Hello');
    expect(d.say([system('It is 10:01'), user('Hi'), assistant('Hello'), user('x')], 'y')).toBe('t1');
    const later = [system('It is 10:02'), user('Hi'), assistant('Hello'), user('x'), assistant('y'), user('z')];
    expect(d.say(later, 'end')).toBe('t1');
  });

  test('of conversations with equal words the one with equal instructions is meant', () => {
    const d = desk();
    const system = (content: string) => ({ role: 'system', content });
    expect(d.say([system('A'), user('Hi')], 'Hello')).toBe('t1');
    expect(d.say([system('B'), user('Hi')], 'Hello')).toBe('t2');
    const next = [user('Hi'), assistant('Hello'), user('x')];
    expect(d.say([system('B'), ...next], 'y')).toBe('t2');
    expect(d.say([system('B'), ...next], 'branch')).toBe('t3');
    expect(d.say([system('A'), ...next], 'y')).toBe('t1');
  });

  test('any of several choices may be the one continued', () => {
    const d = desk();
    d.place([user('Hi')], [answer(assistant('A')), answer(assistant('B'), 1)]);
    expect(d.say([user('Hi'), assistant('B'), user('Go on')], 'x')).toBe('t1');
  });

  test('continuing a second time from the same place is a branch: a new trajectory', () => {
    const d = desk();
    d.say([user('Hi')], 'Hello');
    const history = [user('Hi'), assistant('Hello')];
    expect(d.say([...history, user('One')], '1')).toBe('t1');
    expect(d.say([...history, user('Two')], '2')).toBe('t2');
    expect(d.say([...history, user('Two'), assistant('2'), user('More')], '3')).toBe('t2');
    expect(d.say([...history, user('One'), assistant('1'), user('More')], '3')).toBe('t1');
  });

  test('a regenerated answer is a branch as well', () => {
    const d = desk();
    expect(d.say([user('Hi')], 'Hello')).toBe('t1');
    expect(d.say([user('Hi')], 'Good day')).toBe('t2');
    expect(d.say([user('Hi'), assistant('Hello'), user('x')], 'y')).toBe('t1');
    expect(d.say([user('Hi'), assistant('Good day'), user('x')], 'y')).toBe('t2');
  });

  test('a call that failed or broke off joins and leaves the place open for the retry', () => {
    const d = desk();
    d.say([user('Hi')], 'Hello');
    const next = [user('Hi'), assistant('Hello'), user('One')];
    expect(d.place(next, [])).toEqual({ trajectory: 't1', threadKey: null });
    expect(d.say(next, 'Let me s', { complete: false })).toBe('t1');
    expect(d.say(next, '1')).toBe('t1');
    expect(d.say(next, '1 again')).toBe('t2');
  });

  test('strangers who say the same and get the same answer are never joined', () => {
    const d = desk();
    expect([d.say([user('Hi')], 'Hello'), d.say([user('Hi')], 'Hello')]).toEqual(['t1', 't2']);
    const history = [user('Hi'), assistant('Hello')];
    expect(d.say([...history, user('second')], 'x')).toBe('t3');
    expect(d.say([...history, user('second'), assistant('x'), user('third')], 'y')).toBe('t3');
    expect(d.say([...history, user('other')], 'z')).toBe('t4');
  });

  test('nor when one of them went on before the other came', () => {
    const d = desk();
    const history = [user('Hi'), assistant('Hello')];
    expect(d.say([user('Hi')], 'Hello')).toBe('t1');
    expect(d.say([...history, user('One')], '1')).toBe('t1');
    expect(d.say([user('Hi')], 'Hello')).toBe('t2'); // somebody else
    expect(d.say([...history, user('Two')], '2')).toBe('t3'); // the first, editing, or the second, going on
  });

  test('of equal conversations of one user the most recent is continued, then the one before', () => {
    const d = desk();
    const say = (messages: object[], text: string) => d.say(messages, text, { user: 'ann' });
    expect([say([user('Hi')], 'Hello'), say([user('Hi')], 'Hello')]).toEqual(['t1', 't2']);
    const history = [user('Hi'), assistant('Hello')];
    expect([say([...history, user('a')], 'A'), say([...history, user('b')], 'B')]).toEqual(['t2', 't1']);
    expect(say([...history, user('c')], 'C')).toBe('t3');
  });

  test('the most recent is still found among more equal ones than are remembered', () => {
    const d = desk();
    for (let i = 0; i < 100; i++) d.say([user('Hi')], 'Hello', { user: 'ann' });
    expect(d.say([user('Hi'), assistant('Hello'), user('x')], 'y', { user: 'ann' })).toBe('t100');
  });

  test('a turn that was lost in between does not break the trajectory', () => {
    const d = desk();
    d.say([user('1')], 'one');
    expect(d.say([user('1'), assistant('one'), user('2'), assistant('two'), user('3')], 'three')).toBe('t1');
  });

  test('other agents and other users never share a trajectory', () => {
    const d = desk();
    d.say([user('Hi')], 'Hello', { user: 'alice' });
    const next = [user('Hi'), assistant('Hello'), user('x')];
    expect(d.say(next, 'y', { user: 'bob' })).toBe('t2');
    expect(d.say(next, 'y')).toBe('t3');
    expect(d.say(next, 'y', { user: 'alice', agent: 'b' })).toBe('t4');
    expect(d.say(next, 'y', { user: 'alice' })).toBe('t1');
  });

  test('an explicit id wins, and what follows without one joins it', () => {
    const d = desk();
    d.say([user('Hi')], 'Hello');
    const next = [user('Hi'), assistant('Hello'), user('x')];
    expect(d.say(next, 'y', { explicit: 'mine' })).toBe('mine');
    expect(d.say([...next, assistant('y'), user('z')], 'end')).toBe('mine');
    expect(d.say(next, 'other')).toBe('t1');
  });

  test('calls without messages stand alone', () => {
    const d = desk();
    expect(d.place(undefined, [])).toEqual({ trajectory: 't1', threadKey: null });
    expect(d.place([], [], { explicit: 'mine' })).toEqual({ trajectory: 'mine', threadKey: null });
  });
});

describe('what is remembered', () => {
  test('is bounded in number: the oldest goes first', () => {
    const d = desk({ maxPoints: 10 });
    for (let i = 0; i < 50; i++) d.say([user(`q${i}`)], `a${i}`);
    expect(d.threader.size()).toBeLessThanOrEqual(10);
    expect(d.say([user('q49'), assistant('a49'), user('x')], 'y')).toBe('t50');
    expect(d.say([user('q3'), assistant('a3'), user('x')], 'y')).toBe('t51');
  });

  test('is forgotten after it has been idle', () => {
    const d = desk({ idleMs: 1000 });
    d.say([user('Hi')], 'Hello');
    d.wait(1001);
    expect(d.say([user('Hi'), assistant('Hello'), user('x')], 'y')).toBe('t2');
    for (let i = 0; i < 3; i++) {
      d.wait(1001);
      d.place([], []);
    }
    expect(d.threader.size()).toBe(0);
  });

  test('comes back after a restart through the stored keys, the latest of each trajectory open', () => {
    const before = desk();
    const first = before.place([user('Hi')], [answer(assistant('Hello'))]);
    const next = [user('Hi'), assistant('Hello'), user('x')];
    const second = before.place(next, [answer(assistant('y'))]);
    const after = desk({}, 'later');
    after.threader.seed(
      [first, second].map((p, at) => ({ threadKey: p.threadKey as string, trajectory: p.trajectory, at })),
    );
    expect(after.say([...next, assistant('y'), user('z')], 'end')).toBe('t1');
    expect(after.say([user('Hi'), assistant('Hello'), user('other')], 'branch')).toBe('later1');
  });

  const point = ({ threadKey, trajectory }: ReturnType<Threader['place']>, at: number) => ({
    threadKey: threadKey as string,
    trajectory,
    at,
  });

  test('strangers stay apart after a restart, and one user’s most recent conversation goes on', () => {
    const before = desk();
    const hi = (of: string | null) => before.place([user('Hi')], [answer(assistant('Hello'))], { user: of });
    const seeds = [hi(null), hi(null), hi('ann'), hi('ann')].map(point);
    const after = desk({}, 'later');
    after.threader.seed([...seeds.slice(2), ...seeds.slice(0, 2)]); // of the journal, then of the database
    const next = [user('Hi'), assistant('Hello'), user('x')];
    expect(after.say(next, 'y')).toBe('later1');
    expect(after.say(next, 'y', { user: 'ann' })).toBe('t4');
    expect(after.say(next, 'y', { user: 'ann' })).toBe('t3');
  });

  test('a database that is behind the journal does not open again what was continued', () => {
    const before = desk();
    const history = [user('Hi'), assistant('Hello')];
    const first = point(before.place([user('Hi')], [answer(assistant('Hello'))]), 1);
    const second = point(before.place([...history, user('x')], [answer(assistant('y'))]), 2);
    const after = desk({}, 'later');
    after.threader.seed([first, second]);
    after.threader.seed([first]);
    after.wait(10);
    expect(after.say([...history, user('branch')], 'b')).toBe('later1');
    expect(after.say([...history, user('x'), assistant('y'), user('z')], 'end')).toBe('t1');
    after.threader.seed([first, second]); // nor what was continued since
    expect(after.say([...history, user('x'), assistant('y'), user('again')], 'b')).toBe('later2');
  });

  test('the order in which points come does not matter: of a trajectory only the last one reached is open', () => {
    const before = desk();
    const history = [user('Hi'), assistant('Hello')];
    const first = point(before.place([user('Hi')], [answer(assistant('Hello'))]), 1);
    const second = point(before.place([...history, user('x')], [answer(assistant('y'))]), 2);
    for (const [one, other] of [
      [first, second],
      [second, first],
    ] as const) {
      const after = desk({}, 'later');
      after.threader.seed([one]);
      after.threader.seed([other]);
      after.wait(10);
      expect(after.say([...history, user('branch')], 'b')).toBe('later1');
      expect(after.say([...history, user('x'), assistant('y'), user('z')], 'end')).toBe('t1');
    }
  });

  test('older points are read a piece at a time, and all of them before a turn that could continue one', () => {
    const before = desk();
    const pieces = ['one', 'two', 'three'].map((word) => [
      point(before.place([user(word)], [answer(assistant('Hello'))]), 0),
    ]);
    const older = () => pieces.pop() ?? null;
    const after = desk({ older }, 'later');
    expect(after.threader.learn()).toBe(true);
    after.say([user('four')], 'Hello');
    after.say([user('one'), assistant('Hello'), user('x')], 'y', { explicit: 'named' });
    expect(pieces).toHaveLength(2);
    expect(after.say([user('one'), assistant('Hello'), user('x')], 'y')).toBe('t1');
    expect(pieces).toHaveLength(0);
    expect(after.threader.learn()).toBe(false);
  });

  test('keys do not give the words away: another secret gives other keys', () => {
    const choices = [answer(assistant('x'))];
    const turn = { explicit: null, agent: 'a', user: null, messages: [user('Hi')], choices, complete: true };
    const key = (secret: string) => createThreader({ secret }).place(turn, 0, () => 't').threadKey;
    expect(key('one')).toMatch(/^[\w-]{22}$/);
    expect(key('one')).toBe(key('one'));
    expect(key('one')).not.toBe(key('two'));
  });
});
