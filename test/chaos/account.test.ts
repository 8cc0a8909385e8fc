/** The accountant on cases small enough to check by hand. Times in milliseconds. */
import { describe, expect, it } from 'vitest';
import { account, type Evidence, signalKey, total, type Wrong } from './account.ts';
import type { Broken, Ledger, Life, Sent } from './ledger.ts';

const call = (id: string, endedAt: number, more: Partial<Sent> = {}): Sent => ({
  id,
  kind: 'call',
  trajectory: id,
  sentAt: endedAt - 5,
  provoked: false,
  endedAt,
  status: 200,
  code: null,
  retryAfter: false,
  record: `turn-${id}`,
  ...more,
});
const vote = (id: string, endedAt: number, more: Partial<Sent> = {}): Sent =>
  call(id, endedAt, { kind: 'vote', status: 202, record: `signal-${id}`, ...more });
const life = (startedAt: number, endedAt: number, end: Life['end'], counted = 0): Life => ({
  startedAt,
  endedAt,
  end,
  counted,
  corrupt: 0,
});
const broken = (from: number, to: number, more: Partial<Broken> = {}): Broken => ({
  fault: 'some-fault',
  detail: '',
  from,
  to,
  excuses: [],
  destroyed: [],
  ...more,
});
const ledger = (parts: Partial<Ledger>): Ledger => ({ sent: [], lives: [], broken: [], findings: [], ...parts });
const ids = (all: readonly Wrong[]) => all.map(({ id }) => id);
/** A database that holds these calls and votes once each. */
const holds = (calls: string[], votes: string[] = [], more: Partial<Evidence> = {}): Evidence => ({
  turns: new Map(calls.map((id) => [`turn-${id}`, 1])),
  turnsOf: new Map(calls.map((id) => [id, 1])),
  signals: new Map(votes.map((id) => [signalKey('vote', id), 1])),
  uneven: new Map(),
  odd: new Map(),
  ...more,
});

describe('a call without a row', () => {
  it('is uncounted when nothing speaks for it', () => {
    const result = account(
      ledger({ sent: [call('a', 100), call('b', 200)], lives: [life(0, 1000, 'asked')] }),
      holds(['a']),
    );
    expect(result.byKind.call).toEqual({ sent: 2, answered: 2, recorded: 1 });
    expect(ids(result.uncounted)).toEqual(['b']);
  });

  it('is the loss the gateway counted, as far as it counted', () => {
    const sent = [call('a', 100), call('b', 200), call('c', 300)];
    expect(ids(account(ledger({ sent, lives: [life(0, 1000, 'asked', 2)] }), holds([])).uncounted)).toEqual(['c']);
    expect(ids(account(ledger({ sent, lives: [life(0, 1000, 'asked', 3)] }), holds([])).uncounted)).toEqual([]);
  });

  it('cannot be paid for with what another life counted', () => {
    const lives = [life(0, 500, 'asked', 5), life(600, 1000, 'asked', 0)];
    expect(ids(account(ledger({ sent: [call('a', 700)], lives }), holds([])).uncounted)).toEqual(['a']);
  });

  it('is laid to a kill that came soon after it, and its age is kept', () => {
    const sent = [call('old', 400), call('new', 970), call('late', 1003)];
    const result = account(ledger({ sent, lives: [life(0, 1000, 'killed')] }), holds([]), 100);
    expect(result.killed).toBe(2); // `late` was read from the socket after the kill
    expect(result.maxUnrecordedMs).toBe(30);
    expect(ids(result.uncounted)).toEqual(['old']);
  });

  it('is not laid to a kill that the gateway had counted it before', () => {
    const sent = [call('dropped', 400), call('dropped too', 600), call('new', 980)];
    const result = account(ledger({ sent, lives: [life(0, 1000, 'killed', 2)] }), holds([]));
    expect([result.killed, result.maxUnrecordedMs, result.uncounted]).toEqual([1, 20, []]);
  });

  it('is not laid to an end that was asked for, nor to a process that died by itself', () => {
    for (const end of ['asked', 'died'] as const)
      expect(
        ids(account(ledger({ sent: [call('a', 990)], lives: [life(0, 1000, end)] }), holds([])).uncounted),
      ).toEqual(['a']);
  });

  it('is missed even if the call ended badly, and is not if the gateway never took it', () => {
    const sent = [call('bad', 100, { status: 502, provoked: true }), call('refused', 200, { status: 0, record: null })];
    expect(ids(account(ledger({ sent, lives: [life(0, 1000, 'asked')] }), holds([])).uncounted)).toEqual(['bad']);
  });

  it('is no loss when a fault destroyed its record on purpose', () => {
    const parts = { sent: [call('a', 100)], broken: [broken(0, 50, { destroyed: ['turn-a'] })] };
    const result = account(ledger({ ...parts, lives: [life(0, 1000, 'asked')] }), holds([]));
    expect([ids(result.uncounted), result.destroyed]).toEqual([[], 1]);
  });
});

describe('a vote', () => {
  it('with its 202 and without a row is lost, whenever it was given', () => {
    const sent = [vote('a', 100), vote('b', 999), vote('c', 500, { status: 503 })];
    const result = account(ledger({ sent, lives: [life(0, 1000, 'killed', 9)] }), holds([], ['a']));
    expect([result.acknowledged, ids(result.lostAcknowledged)]).toEqual([2, ['b']]);
  });

  it('whose record was destroyed on purpose is not', () => {
    const result = account(
      ledger({ sent: [vote('a', 100)], broken: [broken(0, 50, { destroyed: ['signal-a'] })] }),
      holds([]),
    );
    expect([ids(result.lostAcknowledged), result.destroyed]).toEqual([[], 1]);
  });
});

describe('doubled', () => {
  it('are rows with one id, more turns than calls, and sums that are not those of the turns', () => {
    const sent = [call('a', 100), call('b', 200), call('c', 300, { trajectory: 'b' }), call('d', 400)];
    const evidence = holds(['a', 'b', 'c', 'd'], [], {
      turns: new Map([
        ['turn-a', 2],
        ['turn-b', 1],
        ['turn-c', 1],
        ['turn-d', 1],
      ]),
      turnsOf: new Map([
        ['a', 1],
        ['b', 2],
        ['d', 2],
      ]),
      uneven: new Map([['e', 'turns 2 of 1']]),
    });
    expect(account(ledger({ sent }), evidence).doubled).toEqual([
      { id: 'turn-a', where: '2 rows' },
      { id: 'd', where: '2 turns of 1 calls' },
      { id: 'e', where: 'turns 2 of 1' },
    ]);
  });
});

describe('a 5xx', () => {
  const own = (sent: Sent, ...faults: Broken[]) =>
    ids(account(ledger({ sent: [sent], broken: faults }), holds([])).own5xx);
  const failed = (status: number, code: string | null, more: Partial<Sent> = {}) =>
    call('a', 10_000, { status, code, ...more });

  it('is Pawl’s own when nothing explains it', () => {
    expect(own(failed(500, 'internal_error'))).toEqual(['a']);
    expect(own(failed(500, 'internal_error', { provoked: true }))).toEqual(['a']);
    expect(own(failed(502, 'upstream_unreachable'))).toEqual(['a']);
    expect(own(failed(502, 'upstream_error', { provoked: true }))).toEqual([]);
    expect(own(failed(503, 'not_recorded', { retryAfter: true }))).toEqual(['a']);
    expect(own(failed(200, null))).toEqual([]);
  });

  it('is excused by a fault of the right kind at that time, and by no other', () => {
    const upstream = { excuses: ['upstream'] as const };
    expect(own(failed(502, 'upstream_unreachable'), broken(9000, 9500, upstream))).toEqual([]);
    expect(own(failed(502, 'upstream_unreachable'), broken(1000, 1500, upstream))).toEqual(['a']);
    expect(own(failed(500, 'internal_error'), broken(9000, 9500, upstream))).toEqual(['a']);
    const disk = { excuses: ['not-recorded'] as const };
    expect(own(failed(503, 'not_recorded', { retryAfter: true }), broken(9000, 9500, disk))).toEqual([]);
    expect(own(failed(503, 'not_recorded'), broken(9000, 9500, disk))).toEqual(['a']);
    expect(own(failed(502, 'upstream_unreachable'), broken(9000, 9500, disk))).toEqual(['a']);
  });
});

it('belongs to the process that was asked, however late its end is noticed', () => {
  const lives = [life(0, 1000, 'killed'), life(1010, 2000, 'killed')];
  const late = { ...call('a', 1020), sentAt: 990 };
  expect(account(ledger({ sent: [late], lives }), holds([]))).toMatchObject({
    killed: 1,
    maxUnrecordedMs: 0,
    uncounted: [],
  });
});

it('says where in the run to look', () => {
  const faults = [broken(0, 50, { fault: 'one', detail: 'torn' }), broken(200, 250, { fault: 'two' })];
  const result = account(ledger({ sent: [vote('a', 100)], broken: faults, lives: [life(0, 300, 'asked')] }), holds([]));
  const where = 'vote 202, 200 ms before its end, after one (torn), before two, in life 1 of 1, asked';
  expect(result.lostAcknowledged).toEqual([{ id: 'a', where }]);
});

it('adds up accounts of several databases', () => {
  const one = account(ledger({ sent: [call('a', 990)], lives: [life(0, 1000, 'killed')] }), holds([]));
  const two = account(ledger({ sent: [vote('b', 100)] }), holds([], ['b']));
  expect(total([one, two])).toMatchObject({
    acknowledged: 1,
    killed: 1,
    maxUnrecordedMs: 10,
    byKind: { call: { sent: 1, answered: 1, recorded: 0 }, vote: { sent: 1, answered: 1, recorded: 1 } },
  });
});
