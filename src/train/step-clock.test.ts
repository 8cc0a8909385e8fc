import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createStepClock, type Loop, timeOf } from './step-clock.ts';

/** A clock whose loop is told how long it was idle and busy, in milliseconds. */
function scripted(computesHere: boolean) {
  let now: Loop = { idle: 0, active: 0 };
  const clock = createStepClock(computesHere, () => now);
  const pass = (idle: number, active: number) => {
    now = { idle: now.idle + idle, active: now.active + active };
  };
  /** Something that goes on until it is ended. */
  const begin = (kind: 'training' | 'sampling' | 'environment') => {
    let end = () => {};
    const done = clock.during(kind, () => new Promise<void>((go) => (end = go)));
    return async () => {
      end();
      await done;
    };
  };
  return { clock, pass, begin };
}

describe('where a step’s time went', () => {
  it('is idle time by what is under way and busy time by whose it is, at a server', async () => {
    const { clock, pass, begin } = scripted(false);
    const played = begin('environment');
    pass(0, 10); // prompts are made
    const sampled = begin('sampling');
    pass(1000, 20); // the server samples; its answer is read
    await sampled();
    clock.inEnvironment(() => pass(0, 30)); // a grader
    pass(200, 0); // a tool that waits for something
    await played();
    const trained = begin('training');
    pass(500, 40);
    await trained();
    pass(70, 0); // weights are saved
    const time = clock.take();
    expect(time).toEqual({ sampling: 1, environment: 0.23, training: 0.5, waiting: 0.07, pawl: 0.07 });
    expect(clock.take()).toEqual({ sampling: 0, environment: 0, training: 0, waiting: 0, pawl: 0 });
  });

  it('is the engine’s while an engine in this process computes', async () => {
    const { clock, pass, begin } = scripted(true);
    const sampled = begin('sampling');
    pass(5, 1000);
    await sampled();
    pass(0, 15);
    expect(clock.take()).toMatchObject({ sampling: 1.005, pawl: 0.015 });
  });

  it('counts what is sampled during training as training, once', async () => {
    const { clock, pass, begin } = scripted(false);
    const [sampled, trained] = [begin('sampling'), begin('training')];
    pass(400, 0);
    await trained();
    pass(100, 0);
    await sampled();
    expect(clock.take()).toMatchObject({ training: 0.4, sampling: 0.1, waiting: 0 });
  });

  it('adds up to the time that passed', async () => {
    const clock = createStepClock(false);
    await wait(5);
    clock.take();
    const began = performance.now();
    await clock.during('sampling', () => wait(60));
    const until = performance.now() + 40;
    while (performance.now() < until);
    const time = clock.take();
    const seconds = (performance.now() - began) / 1000;
    const sum = Object.values(time).reduce((a, b) => a + b, 0);
    expect(Math.abs(sum - seconds)).toBeLessThan(0.01);
    expect(time.sampling).toBeGreaterThan(0.04);
    expect(time.pawl).toBeGreaterThan(0.03);
  });

  it('is summed over the steps that have it', () => {
    const step = (pawl_seconds: number) => ({ values: { pawl_seconds, training_seconds: 1 } });
    expect(timeOf([{ values: { seconds: 9 } }, step(0.25), step(0.5)])).toMatchObject({
      ...{ steps: 2, pawl: 0.75, training: 2, sampling: 0 },
    });
    expect(timeOf([{ values: { seconds: 9 } }])).toBeNull();
  });
});
