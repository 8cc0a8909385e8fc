/** Adapters on a server that speaks vLLM's wire format: loaded, checked, loaded again, unloaded. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { writeTinyAdapter } from '../../test/tiny-adapter.ts';
import { type StandInOptions, startVllmStandIn, type VllmStandIn } from '../../test/vllm-stand-in.ts';
import { parseConfig } from '../config.ts';
import { type KeptAdapters, keepAdapters, nextFor, type Served } from './keep-adapters.ts';

const root = mkdtempSync(join(tmpdir(), 'pawl-adapters-'));
const adapter = join(root, 'adapter');
const v2: Served = { upstream: 'vllm', model: 'v2-0123', checkpoint: adapter };
const v3: Served = { upstream: 'vllm', model: 'v3-4567', checkpoint: adapter };
const open: { close(): Promise<unknown> }[] = [];

beforeAll(() => writeTinyAdapter(adapter));
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

type Kept = { readonly vllm: VllmStandIn; readonly adapters: KeptAdapters; readonly folder: string; lines: string[] };

async function keep(options: StandInOptions = {}, more: { seenAs?: string; folder?: string } = {}): Promise<Kept> {
  const vllm = await startVllmStandIn(options);
  open.push({ close: () => vllm.stop() });
  const folder = more.folder ?? mkdtempSync(join(root, 'seen-'));
  return { vllm, folder, ...another(vllm, folder, more.seenAs) };
}

/** As another gateway would. */
function another(vllm: VllmStandIn, folder: string, seenAs?: string) {
  const settings = { kind: 'vllm', folder, ...(seenAs === undefined ? {} : { seenAs }) };
  const { upstreams } = parseConfig(
    { upstreams: { vllm: { baseUrl: vllm.url, adapters: settings }, plain: { baseUrl: vllm.url } } },
    {},
    root,
  );
  const lines: string[] = [];
  const adapters = keepAdapters({
    ...{ upstreams, home: root, folderOf: async (checkpoint: string) => checkpoint },
    ...{ log: (line: string) => lines.push(line), everyMs: 20, lingerMs: 200, graceMs: 40 },
  });
  open.push(adapters);
  return { adapters, lines };
}

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await sleep(5);
};

describe('an adapter in play', () => {
  it('is loaded from the folder that the server sees, and ready once it has answered a request', async () => {
    const { vllm, adapters, folder } = await keep(
      { here: (path) => path.replace('/there', folderThere) },
      { folder: folderThere, seenAs: '/there/' },
    );
    vllm.before = () => sleep(50);
    adapters.inPlay([v2, { upstream: 'vllm', model: 'base', checkpoint: null }]);
    expect(adapters.isReady(v2)).toBe(false);
    expect(adapters.isReady({ upstream: 'plain', model: 'x', checkpoint: null })).toBe(true);
    expect(adapters.problems()).toEqual([]); // loading is no problem
    await adapters.ready(v2);
    expect(adapters.isReady(v2)).toBe(true);
    expect(adapters.problems()).toEqual([]);
    expect([...vllm.loaded]).toEqual([['v2-0123', '/there/v2-0123']]);
    expect(readdirSync(folder)).toEqual(['v2-0123']);
    expect(readdirSync(join(folder, 'v2-0123')).sort()).toEqual(['adapter_config.json', 'adapter_model.safetensors']);
    const order = ['/v1/load_lora_adapter v2-0123', '/v1/completions v2-0123'];
    expect(vllm.asked.filter((one) => one !== '/v1/models')).toEqual(order);
  });
  const folderThere = mkdtempSync(join(root, 'there-'));

  it('is loaded once, however many gateways want it', async () => {
    const { vllm, adapters, folder } = await keep();
    vllm.before = () => sleep(30);
    const { adapters: second } = another(vllm, folder);
    adapters.inPlay([v2]);
    second.inPlay([v2]);
    await Promise.all([adapters.ready(v2), second.ready(v2)]);
    expect([adapters.isReady(v2), second.isReady(v2), vllm.loaded.size]).toEqual([true, true, 1]);
  });

  it('is loaded again by a server that was restarted and has forgotten it', async () => {
    const { vllm, adapters, lines } = await keep();
    adapters.inPlay([v2]);
    await adapters.ready(v2);
    await vllm.stop();
    await until(() => !adapters.isReady(v2));
    expect(adapters.problems()[0]).toMatch(/^v2-0123 is not loaded at upstream vllm: .* cannot be reached: /);
    await vllm.start();
    await until(() => adapters.isReady(v2));
    expect([...vllm.loaded.keys()]).toEqual(['v2-0123']);
    expect(lines.filter((line) => line === 'v2-0123 is loaded at upstream vllm')).toHaveLength(2);
  });

  it('is unloaded and its files are removed when it leaves play, and what stays in play is not touched', async () => {
    const { vllm, adapters, folder } = await keep();
    adapters.inPlay([v2, v3]);
    await Promise.all([adapters.ready(v2), adapters.ready(v3)]);
    const before = vllm.asked.length;
    adapters.inPlay([v2]);
    await until(() => !vllm.loaded.has('v3-4567') && !existsSync(join(folder, 'v3-4567')));
    expect(adapters.isReady(v2)).toBe(true);
    expect(vllm.asked.slice(before).filter((one) => one !== '/v1/models')).toEqual(['/v1/unload_lora_adapter v3-4567']);
  });
});

it('unloads what an earlier process left, and nothing that is somebody else’s', async () => {
  const { vllm, adapters, folder } = await keep();
  vllm.load('old-89ab', join(folder, 'old-89ab'));
  vllm.load('theirs', '/elsewhere/theirs');
  adapters.inPlay([]);
  await until(() => !vllm.loaded.has('old-89ab'));
  expect([...vllm.loaded.keys()]).toEqual(['theirs']);
});

it('keeps one that is only evaluated for a while', async () => {
  const { vllm, adapters } = await keep();
  await adapters.ready(v2);
  expect(vllm.loaded.has('v2-0123')).toBe(true);
  await until(() => !vllm.loaded.has('v2-0123'));
  expect(adapters.problems()).toEqual([]);
});

describe('says in words', () => {
  it('that the server was not started for adapters', async () => {
    const { adapters } = await keep({ mayUpdate: false });
    await expect(adapters.ready(v2)).rejects.toThrow(
      /start vLLM with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True/,
    );
  });

  it('why the server refuses an adapter, and tries again', async () => {
    const { vllm, adapters } = await keep({ maxRank: 1 });
    adapters.inPlay([v2]);
    const loads = () => vllm.asked.filter((one) => one.startsWith('/v1/load')).length;
    await until(() => loads() > 1);
    await until(() => /LoRA rank 2 is greater than max_lora_rank 1/.test(adapters.problems()[0] ?? ''));
    expect(adapters.isReady(v2)).toBe(false);
    await expect(adapters.ready(v2)).rejects.toThrow(/max_lora_rank 1/);
  });

  it('that the server does not see the folder', async () => {
    const { adapters } = await keep({}, { seenAs: '/nowhere' });
    await expect(adapters.ready(v2)).rejects.toThrow(
      /404 to loading v2-0123 from \/nowhere\/v2-0123: .*No adapter found/,
    );
  });
});

it('decides from what is wanted, what is listed and what has answered', () => {
  const wishes = new Map([
    ['a', { checkpoint: 'x', until: Number.POSITIVE_INFINITY }],
    ['b', { checkpoint: 'x', until: 200 }],
    ['c', { checkpoint: 'x', until: 100 }],
    ['d', { checkpoint: null, until: 200 }],
  ]);
  expect(nextFor(wishes, new Set(['a', 'c']), new Set(['a']), 150)).toEqual({ bring: ['b'], drop: ['c'] });
  expect(nextFor(wishes, new Set(['a']), new Set(), 50)).toEqual({ bring: ['a', 'b', 'c'], drop: [] });
});
