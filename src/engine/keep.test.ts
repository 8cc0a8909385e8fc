import { expect, it } from 'vitest';
import { keepEngine } from './keep.ts';
import type { EngineProcess } from './process.ts';

/** An engine process that notes what it is told, and loads when the test says so. */
function stand() {
  const told: string[] = [];
  const models = new Set<string>();
  let fail = false;
  let gate: Promise<void> = Promise.resolve();
  const engine = {
    models: async () => [...models].map((name) => ({ name })),
    load: async (name: string, folder: string) => {
      await gate;
      if (fail) throw new Error(`${folder} is not there`);
      told.push(`load ${name} from ${folder}`);
      models.add(name);
    },
    unload: async (name: string) => {
      told.push(`unload ${name}`);
      models.delete(name);
    },
  };
  const close = async () => void told.push('close');
  return {
    told,
    open: async () => {
      told.push('start');
      return { url: 'http://engine', pid: 7, engine, close } as unknown as EngineProcess;
    },
    hold(until: Promise<void>) {
      gate = until;
    },
    fails(now: boolean) {
      fail = now;
    },
  };
}

const keep = (engine: ReturnType<typeof stand>, more: { lingerMs?: number } = {}) => {
  const said: string[] = [];
  const kept = keepEngine({
    settings: {},
    onStart: (url) => said.push(url),
    log: (line) => said.push(line),
    open: engine.open,
    ...more,
  });
  return { kept, said };
};

it('starts for the first model that is wanted, and not before', async () => {
  const engine = stand();
  const { kept, said } = keep(engine);
  expect([engine.told, kept.pid]).toEqual([[], undefined]);
  await kept.ready({ model: 'a', checkpoint: '/a' });
  expect([engine.told, kept.pid, said]).toEqual([['start', 'load a from /a'], 7, ['http://engine']]);
  await kept.close();
});

it('loads a model once for all who wait for it', async () => {
  const engine = stand();
  let go = () => {};
  engine.hold(
    new Promise((done) => {
      go = done;
    }),
  );
  const { kept } = keep(engine);
  const both = [1, 2].map(() => kept.ready({ model: 'a', checkpoint: '/a' }));
  expect(kept.isReady('a')).toBe(false);
  go();
  await Promise.all(both);
  expect([kept.isReady('a'), engine.told]).toEqual([true, ['start', 'load a from /a']]);
  await kept.close();
});

it('says which model could not be loaded, and goes on with the others', async () => {
  const engine = stand();
  engine.fails(true);
  const { kept, said } = keep(engine);
  kept.inPlay([{ model: 'a', checkpoint: '/a' }]);
  await expect(kept.ready({ model: 'a', checkpoint: '/a' })).rejects.toThrow('/a is not there');
  engine.fails(false);
  await kept.ready({ model: 'b', checkpoint: '/b' });
  expect(said).toContain('a could not be loaded from /a: /a is not there');
  expect([kept.isReady('a'), kept.isReady('b')]).toEqual([false, true]);
  await kept.close();
});

it('unloads what is not in play and nobody asks for, and keeps what is', async () => {
  const engine = stand();
  const { kept } = keep(engine, { lingerMs: 0 });
  kept.inPlay([{ model: 'a', checkpoint: '/a' }]);
  await kept.ready({ model: 'a', checkpoint: '/a' });
  await kept.ready({ model: 'b', checkpoint: '/b' });
  await new Promise((done) => setTimeout(done, 1_200));
  expect([kept.isReady('a'), kept.isReady('b')]).toEqual([true, false]);
  await kept.close();
  expect(engine.told.slice(-2)).toEqual(['unload b', 'close']);
});

it('does not start again once it was closed', async () => {
  const engine = stand();
  const { kept } = keep(engine);
  await kept.close();
  await expect(kept.process()).rejects.toThrow('stopped');
  expect(engine.told).toEqual([]);
});
