/** What an agent's servers have to be able to do, as its traffic tells. */
import { expect, it } from 'vitest';
import { entry, noon } from '../store/fixtures.ts';
import { writeEntries } from '../store/record.ts';
import { withStore } from '../store/test-store.ts';
import { neededOf, serverOf } from './check-compatibility.ts';
import { compatibilitySettings } from './compatibility.ts';

const vllm = { baseUrl: 'http://ann:secret@gpu-1:8000/v1', adapters: { kind: 'vllm' } };
const upstreams = { vllm } as never;
const agent = { name: 'desk', evaluate: {}, curate: { on: 'production' } } as const;

it('reads it from the newest traffic of users, and asks for nothing where that has no chat completions', async () => {
  const store = await withStore();
  const needed = (of: object = {}) => neededOf(store, upstreams, { ...agent, ...of }, { upstream: 'vllm' }, noon);
  expect(await needed()).toMatchObject({ contextTokens: null, tools: false, structured: false, load: 4 });
  const minute = Math.floor((noon - 3_600_000) / 60_000) * 60_000;
  const turn = (at: number, fields: Parameters<typeof entry.turn>[0] = {}) =>
    entry.turn({ startedAt: at, latencyMs: 10_000, promptTokens: 100, completionTokens: 20, ...fields });
  await writeEntries(store, [turn(minute, { endpoint: 'messages' })]);
  expect(await needed()).toBeNull();
  const settings = compatibilitySettings.parse({ load: 2 });
  expect(await needed({ evaluate: { compatibility: settings } })).toMatchObject({ contextTokens: 120, load: 2 });

  const format = { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } };
  await writeEntries(store, [
    // Sixty of ten seconds in one minute are ten at a time.
    ...Array.from({ length: 60 }, (_, i) => turn(minute + i)),
    turn(minute - 60_000, { promptTokens: 900, completionTokens: null }),
    turn(minute - 120_000, { request: { model: 'desk', messages: [], response_format: format } }),
    // What nobody got, what nobody asked for, and what is long ago.
    turn(minute, { promptTokens: 5_000, status: 'error' }),
    turn(minute, { promptTokens: 6_000, origin: 'evaluation' }),
    turn(noon - 9 * 86_400_000, { promptTokens: 7_000 }),
  ]);
  expect(await needed()).toMatchObject({
    ...{ contextTokens: 900, tools: false, structured: true, load: 11 },
    ...{ promptTokens: 113, answerTokens: 20 }, // the mean of 900 and 62 times 100
    metrics: 'http://gpu-1:8000/metrics',
  });
});

it('names the server without what may be a password', () => {
  expect(serverOf(upstreams, { upstream: 'vllm' })).toBe('vllm http://gpu-1:8000/v1');
  expect(serverOf(upstreams, { upstream: 'engine' })).toBe('engine');
});
