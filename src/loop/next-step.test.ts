/**
 * The loop without a loop: a simulated month of traffic, failures and people goes through `nextStep`, which is all that
 * decides. The clock jumps to whatever is waited for, or to what somebody does meanwhile.
 */
import { describe, expect, it } from 'vitest';
import type { Phase } from '../deploy/rollout.ts';
import { backoff, type Facts, type Next, nextStep, type Trigger } from './next-step.ts';
import { loopSettings, periodOf } from './settings.ts';
import { type LoopTurn, type StageName, stageNames } from './turn.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const start = Date.UTC(2026, 0, 5);

type Plan = {
  settings?: Parameters<typeof loopSettings.parse>[0];
  /** Trajectories in the hour that begins `hours` after the start. */
  traffic?: (hours: number) => number;
  /** Share of them that can be scored. */
  measured?: number;
  /** Hours of work, tokens. */
  cost?: Partial<Record<StageName, { hours?: number; tokens?: number }>>;
  /** Whether a stage fails at this attempt (1, 2, …) of this turn. */
  fails?: (stage: StageName, attempt: number, turn: number) => boolean;
  kept?: (turn: number) => number;
  /** What becomes of a turn's rollout by itself, one phase a day. */
  rollout?: (turn: number) => readonly Phase[];
  /** What people do, by hours after the start. */
  people?: Readonly<Record<number, (world: World) => void>>;
  facts?: Partial<Facts>;
};
type World = {
  now: number;
  turns: LoopTurn[];
  paused: Facts['paused'];
  wanted: Facts['wanted'];
  failures: { at: number; reason: string; stage: StageName }[];
  /** Phases to come, a day each. */
  rollout: { phase: Phase; ahead: Phase[]; movesAt: number } | null;
  /** Trajectories that came and can be scored, cumulative by hour. */
  windowEnd: number;
  lookedAt: number | null;
};
type Line = { at: number; next: Next };

/** Runs a month and says what was decided and when; waits are told once, however often they are looked at again. */
function month(plan: Plan, days = 30) {
  const settings = loopSettings.parse(plan.settings ?? {});
  const traffic = plan.traffic ?? (() => 0);
  const came: number[] = []; // by hour, cumulative
  const cameBy = (time: number): number => {
    const hours = Math.floor((time - start) / hour);
    for (let i = came.length; i <= hours; i++) came.push((came[i - 1] ?? 0) + traffic(i));
    return hours < 0 ? 0 : came[hours]!;
  };
  const world: World = {
    now: start,
    turns: [],
    paused: null,
    wanted: null,
    failures: [],
    rollout: null,
    windowEnd: start,
    lookedAt: null,
  };
  const people = Object.entries(plan.people ?? {}).map(([hours, act]) => ({ at: start + Number(hours) * hour, act }));
  const spent = { seconds: 0, tokens: 0, money: 0 };
  const log: Line[] = [];
  const end = start + days * day;
  let steps = 0;
  let attempts = 0;

  const evidence = (): Facts['evidence'] => {
    const before = cameBy(world.windowEnd - 1);
    const trajectories = cameBy(world.now) - before;
    const looked = world.lookedAt === null ? 0 : Math.max(0, cameBy(world.lookedAt) - before);
    let first: number | null = null;
    for (let at = Math.ceil(world.windowEnd / hour) * hour; trajectories > 0 && first === null; at += hour)
      if (cameBy(at) > before) first = at;
    return {
      trajectories,
      scored: Math.floor(looked * (plan.measured ?? 1)),
      firstAt: first,
      lookedAt: world.lookedAt,
    };
  };
  const facts = (turn: LoopTurn | null): Facts => ({
    agent: 'desk',
    settings,
    since: start,
    paused: world.paused,
    wanted: world.wanted,
    missing: null,
    evidence: evidence(),
    spent,
    failures: world.failures.filter(({ stage }) => !turn?.done.includes(stage)),
    run: null,
    rollout:
      world.rollout === null
        ? null
        : { id: `desk-turn-${turn!.number}`, isOfTurn: true, phase: world.rollout.phase, reasons: ['So it is.'] },
    canPractise: false,
    ...plan.facts,
  });
  const change = (turn: LoopTurn, fields: Partial<LoopTurn>) => {
    world.turns[turn.number - 1] = { ...turn, ...fields };
  };

  while (world.now < end) {
    while (people[0] && people[0].at <= world.now) people.shift()!.act(world);
    if (world.rollout && world.rollout.movesAt <= world.now && world.rollout.ahead.length > 0)
      world.rollout = { phase: world.rollout.ahead.shift()!, ahead: world.rollout.ahead, movesAt: world.now + day };
    const turn = world.turns.at(-1) ?? null;
    const next = nextStep(turn, facts(turn), world.now);
    if (++steps > 200_000) throw new Error(`It goes on and on at ${new Date(world.now)}: ${JSON.stringify(next)}`);
    const said = log.at(-1)?.next;
    if (next.kind !== 'wait' || said?.kind !== 'wait' || said.reason !== next.reason) log.push({ at: world.now, next });
    switch (next.kind) {
      case 'begin':
        attempts = 0;
        Object.assign(spent, { seconds: 0, tokens: 0, money: 0 });
        world.wanted = null;
        world.turns.push({
          ...{ agent: 'desk', number: world.turns.length + 1, seed: 1, done: [], state: {} },
          ...{ startedAt: world.now, endedAt: null },
        });
        break;
      case 'end':
        change(turn!, { endedAt: world.now, state: { ...turn!.state, ended: next.reason } });
        break;
      case 'run': {
        const { stage } = next;
        if (turn === null || turn.endedAt !== null) {
          world.lookedAt = world.now;
          break;
        }
        const { hours = 0, tokens = 0 } = plan.cost?.[stage] ?? {};
        // Whoever runs a stage gives it no more than what is left.
        const left = world.rollout === null ? settings.budget.hours * hour - spent.seconds * 1000 : Infinity;
        const allowed = Math.min(hours * hour, left);
        world.now += allowed;
        spent.seconds += allowed / 1000;
        spent.tokens += tokens;
        spent.money = (spent.seconds / 3600) * 2;
        attempts++;
        if (plan.fails?.(stage, attempts, turn.number)) {
          world.failures.push({ stage, at: world.now, reason: 'The disk is full.' });
          break;
        }
        if (allowed < hours * hour) break;
        if (stage === 'collect') world.windowEnd = world.now;
        if (stage === 'deploy' && world.rollout === null) {
          const [phase = 'canary', ...ahead] = plan.rollout?.(turn.number) ?? ['canary', 'promoted'];
          world.rollout = { phase, ahead, movesAt: world.now + day };
          break;
        }
        attempts = 0;
        world.failures = [];
        const rows = plan.kept?.(turn.number) ?? 100;
        const nothing = rows === 0 ? { nothing: 'None of 168 conversations passed every gate.' } : {};
        const state = stage === 'curate' ? { curate: { dataset: 'desk-v1', rows, funnel: [], ...nothing } } : {};
        const isLast = stage === 'deploy';
        if (isLast) world.rollout = null;
        change(turn, {
          done: [...turn.done, stage],
          state: { ...turn.state, ...state },
          endedAt: isLast ? world.now : null,
        });
        break;
      }
      case 'wait':
      case 'ask': {
        const until = next.kind === 'wait' ? next.until : null;
        if (until !== null && until <= world.now) throw new Error(`It waits for what has been: ${next.reason}`);
        const moves = world.rollout && world.rollout.ahead.length > 0 ? world.rollout.movesAt : end;
        world.now = Math.min(until ?? end, people[0]?.at ?? end, moves, end);
        break;
      }
    }
  }
  const begun = log.flatMap(({ at, next }): { day: number; trigger: Trigger }[] =>
    next.kind === 'begin' ? [{ day: (at - start) / day, trigger: next.trigger }] : [],
  );
  return { log, turns: world.turns, begun, steps, spent };
}

const says = (log: readonly Line[], kind: Next['kind'], what: RegExp) =>
  log.filter(({ next }) => next.kind === kind && what.test(next.reason));

describe('a month of a loop', () => {
  it('turns every week on a little traffic, and goes through its stages in order', () => {
    const { begun, turns, log } = month({ traffic: () => 1 });
    expect(begun).toEqual([7, 14, 21, 28].map((on) => ({ day: on, trigger: 'schedule' })));
    expect(turns.slice(0, 3).every(({ done, endedAt }) => done.length === 6 && endedAt !== null)).toBe(true);
    const ran = log.flatMap(({ next }) => (next.kind === 'run' ? [next.stage] : []));
    expect(ran.slice(0, 7)).toEqual([...stageNames, 'deploy']); // once to begin the rollout, once when it has ended
  });

  it('leaves out the weeks in which nothing came, and says so', () => {
    const { begun, log } = month({ traffic: (hours) => (hours >= 10 * 24 && hours < 11 * 24 ? 1 : 0) });
    expect(begun).toEqual([{ day: 14, trigger: 'schedule' }]);
    expect(says(log, 'wait', /Nothing had come by 2026-01-12 00:00/)).not.toEqual([]);
  });

  it('does not begin on the first conversation after a week that was left out, but on the week after it', () => {
    const { begun } = month({ traffic: (hours) => (hours === 7 * 24 + 1 ? 3 : 0) });
    expect(begun).toEqual([{ day: 14, trigger: 'schedule' }]);
  });

  it('turns as soon as 500 new trajectories have a score, and looks for scores once an hour at most', () => {
    const { begun, log } = month({ traffic: (hours) => (hours < 240 ? 10 : 0), measured: 0.5 });
    // 10 an hour, of which 5 can be scored: after 50 hours it is worth a look, after 100 it is enough.
    expect(begun[0]!.trigger).toBe('evidence');
    expect(begun[0]!.day * 24).toBeCloseTo(99, 0);
    const looks = log.filter(({ next, at }) => next.kind === 'run' && next.stage === 'score' && at < start + 99 * hour);
    expect(looks.length).toBeGreaterThan(40);
    for (const [i, { at }] of looks.entries()) if (i > 0) expect(at - looks[i - 1]!.at).toBeGreaterThanOrEqual(hour);
  });

  it('with neither schedule nor evidence turns only when a person says so', () => {
    const byHand = { settings: { every: null, after: null }, traffic: () => 100 };
    expect(month(byHand)).toMatchObject({ begun: [], steps: 1 });
    const asked = month({
      ...byHand,
      people: { 100: (world) => Object.assign(world, { wanted: { at: world.now, by: 'kim' } }) },
    });
    expect(asked.begun).toEqual([{ day: 100 / 24, trigger: 'person' }]);
    expect(asked.turns[0]!.done).toEqual(stageNames);
  });

  it('turns every six hours where that is asked for, and the schedule does not drift with the length of turns', () => {
    const { begun } = month({ settings: { every: '6h' }, traffic: () => 1, cost: { train: { hours: 1 } } }, 8);
    // The canary takes a day and a bit: the next time after it is at once, the time that passed meanwhile counts once.
    expect(begun[0]).toEqual({ day: 0.25, trigger: 'schedule' });
    expect(begun.length).toBeGreaterThan(5);
    for (const [i, { day: on }] of begun.entries()) if (i > 0) expect(on - begun[i - 1]!.day).toBeGreaterThan(1);
  });

  it('while it is paused begins nothing and goes on with nothing, and goes on where it was', () => {
    const { log, turns } = month({
      traffic: () => 1,
      people: {
        [6 * 24]: (world) => Object.assign(world, { paused: { at: world.now, by: 'kim' } }),
        [9 * 24]: (world) => Object.assign(world, { paused: null }),
      },
    });
    expect(says(log, 'wait', /^Paused by kim at 2026-01-11 00:00; go on with `pawl loop resume --agent desk`/)).toEqual(
      [expect.objectContaining({ at: start + 6 * day })],
    );
    expect((turns[0]!.startedAt - start) / day).toBe(9);
  });

  it('paused in the middle of a turn, goes on with the stage it was at', () => {
    const { log, turns } = month({
      traffic: () => 1,
      fails: (stage, attempt, turn) => turn === 1 && stage === 'train' && attempt === 1,
      people: {
        [7 * 24]: (world) => Object.assign(world, { paused: { at: world.now, by: 'kim' } }),
        [8 * 24]: (world) => Object.assign(world, { paused: null }),
      },
      cost: { collect: { hours: 1 } },
    });
    expect(turns[0]!.done).toEqual(stageNames);
    expect(says(log, 'wait', /^Paused/).length).toBe(1);
  });

  it('a stage that fails is tried again after 1, 2 and 4 minutes; then a person is asked, and says go on', () => {
    const { log, turns } = month({
      traffic: () => 1,
      fails: (stage, attempt, turn) => turn === 1 && stage === 'score' && attempt <= 4,
      people: { [9 * 24]: (world) => Object.assign(world, { failures: [] }) },
    });
    const tries = log.flatMap(({ next, at }) => (next.kind === 'run' && next.stage === 'score' ? [at] : []));
    const first = start + 7 * day;
    expect(tries.slice(0, 5)).toEqual([first, first + minute, first + 3 * minute, first + 7 * minute, start + 9 * day]);
    const [asked] = says(log, 'ask', /^Stage score failed 4 times, the last time with: The disk is full\./);
    expect(asked!.next).toMatchObject({ command: 'pawl loop resume --agent desk' });
    expect(turns[0]!.done).toEqual(stageNames);
  });

  it('ends a turn whose hours are spent, without a candidate, and the next one has its own', () => {
    const { turns, log } = month({
      settings: { budget: { hours: 5 } },
      traffic: () => 1,
      cost: { score: { hours: 1 }, train: { hours: 9 } },
    });
    const [first] = turns;
    expect(first).toMatchObject({ done: ['collect', 'score', 'curate'], endedAt: start + 7 * day + 5 * hour });
    expect(first!.state.ended).toBe("The turn's budget of 5 h is spent. The users stay where they are.");
    expect(turns.length).toBe(4);
    expect(says(log, 'end', /budget/).length).toBe(4);
  });

  it.each([
    [{ tokens: 1000 }, /1000 tokens is spent/],
    [{ money: 3 }, /budget of 3 in money is spent/],
  ])('ends a turn that has used up %o', (budget, reason) => {
    const { turns } = month({
      settings: { budget },
      traffic: () => 1,
      cost: { train: { hours: 2, tokens: 1000 } },
    });
    expect(turns[0]).toMatchObject({ done: stageNames.slice(0, 4), state: { ended: expect.stringMatching(reason) } });
  });

  it('does not take a candidate from users who have it because a budget is spent', () => {
    const { turns } = month({ settings: { budget: { hours: 2 } }, traffic: () => 1, cost: { deploy: { hours: 1.5 } } });
    expect(turns[0]!.done).toEqual(stageNames);
  });

  it('asks a person where the rollout waits, and goes on when it is approved or ends when it is aborted', () => {
    const rollout = (turn: number): Phase[] =>
      ([[], ['waiting'], ['canary', 'paused']][turn] as Phase[]) ?? ['canary', 'promoted'];
    const { log, turns } = month({
      traffic: () => 1,
      rollout,
      people: {
        [8 * 24]: ({ rollout: open, now }) => Object.assign(open!, { ahead: ['canary', 'promoted'], movesAt: now }),
        [20 * 24]: ({ rollout: open, now }) => Object.assign(open!, { ahead: ['rolled-back'], movesAt: now }),
      },
    });
    const asked = says(log, 'ask', /Rollout desk-turn-. is (waiting|paused): So it is\./);
    expect(asked.map(({ at, next }) => [(at - start) / day, next.kind === 'ask' && next.command])).toEqual([
      [7, 'pawl rollouts approve desk-turn-1'],
      [15, 'pawl rollouts approve desk-turn-2'],
    ]);
    expect(turns.slice(0, 2).map(({ endedAt }) => (endedAt! - start) / day)).toEqual([9, 20]);
  });

  it('ends a turn that kept nothing to learn from, where there is nothing to practise in either', () => {
    const nothing = { traffic: () => 1, kept: () => 0 };
    expect(month(nothing).turns[0]).toMatchObject({ done: ['collect', 'score', 'curate'], endedAt: start + 7 * day });
    expect(month({ ...nothing, facts: { canPractise: true } }).turns[0]!.done).toEqual(stageNames);
  });

  it('does not turn by itself where a turn could come to nothing, and says what is missing', () => {
    const { begun, log } = month({ traffic: () => 100, facts: { missing: 'There is nothing to train from.' } });
    expect(begun).toEqual([]);
    expect(log.map(({ next }) => next)).toEqual([
      { kind: 'wait', until: null, reason: 'There is nothing to train from.' },
    ]);
  });
});

describe('the next step', () => {
  const now = start + day;
  const facts = (more: Partial<Facts> = {}): Facts => ({
    agent: 'desk',
    settings: loopSettings.parse({}),
    since: start,
    paused: null,
    wanted: null,
    missing: null,
    evidence: { trajectories: 0, scored: 0, firstAt: null, lookedAt: null },
    spent: { seconds: 0, tokens: 0, money: 0 },
    failures: [],
    run: null,
    rollout: null,
    canPractise: false,
    ...more,
  });
  const at = (stage: StageName): LoopTurn => ({
    ...{ agent: 'desk', number: 3, seed: 3, done: stageNames.slice(0, stageNames.indexOf(stage)), state: {} },
    ...{ startedAt: start, endedAt: null },
  });
  const training = (state: NonNullable<Facts['run']>['state']) =>
    facts({ run: { id: 'desk-turn-3', state, sentence: `Run desk-turn-3 is ${state}.` } });

  it('goes on with a run that was interrupted and exports one that is finished', () => {
    for (const state of ['open', 'finished'] as const)
      expect(nextStep(at('train'), training(state), now)).toMatchObject({ kind: 'run', stage: 'train' });
  });

  it('asks about a run that somebody paused, waits for one that is trained elsewhere, ends with one that was stopped', () => {
    expect(nextStep(at('train'), training('held'), now)).toMatchObject({
      kind: 'ask',
      command: 'pawl loop resume --agent desk',
      reason: expect.stringContaining('pawl runs resume desk-turn-3'),
    });
    expect(nextStep(at('train'), training('elsewhere'), now)).toMatchObject({ kind: 'wait', until: now + minute });
    expect(nextStep(at('train'), training('stopped'), now)).toMatchObject({
      kind: 'end',
      reason: 'Run desk-turn-3 is stopped. There is no candidate; the users stay where they are.',
    });
  });

  it('neither begins a turn nor deploys one while another rollout of the agent is under way', () => {
    const other = { id: 'by-hand', isOfTurn: false, phase: 'canary', reasons: [] } as const;
    const wanted = { at: now, by: 'kim' };
    for (const turn of [null, at('deploy')])
      expect(nextStep(turn, facts({ rollout: other, wanted }), now)).toMatchObject({
        kind: 'wait',
        until: null,
        reason: expect.stringContaining('Rollout by-hand'),
      });
    expect(nextStep(at('score'), facts({ rollout: other }), now)).toMatchObject({ kind: 'run', stage: 'score' });
  });

  it('waits longer after each failure, and never more than an hour', () => {
    expect([1, 2, 3, 6, 7, 100].map((n) => backoff(n) / minute)).toEqual([1, 2, 4, 32, 60, 60]);
  });
});

describe('the settings of a loop', () => {
  it('give a week, 500 scored trajectories and a day of work without being asked', () => {
    expect(loopSettings.parse({})).toEqual({
      every: 'week',
      after: { scored: 500 },
      budget: { hours: 24 },
      retries: 3,
    });
    expect(['hour', 'day', 'week', '90m', '2d', null].map((every) => periodOf(every))).toEqual(
      [1, 24, 168, 1.5, 48].map((hours): number | null => hours * hour).concat(null),
    );
  });

  it('refuse a schedule that is none', () => {
    expect(() => loopSettings.parse({ every: 'fortnight' })).toThrow(/a time such as '90m'/);
    expect(() => loopSettings.parse({ every: '0h' })).toThrow();
  });
});
