import { expect, it } from 'vitest';
import type { JournalEntry } from '../collect/signal.ts';
import { noon } from '../store/fixtures.ts';
import { writeEntries } from '../store/record.ts';
import { toolsCalledOf } from '../store/slices.ts';
import { withStore } from '../store/test-store.ts';
import { readAdoptionLooks } from '../store/tool-adoption.ts';
import { converse } from './fixtures.ts';
import { adoptionIn, lookAtTools, toolMetrics } from './tool-adoption.ts';

const dayMs = 86_400_000;
type Message = Record<string, unknown>;
const calledIn = (request: object, message: Message) =>
  toolsCalledOf({
    request: request as never,
    choices: [{ index: 0, message: message as never, finishReason: 'stop' }],
  });
const chat = (name: string) => ({ type: 'function', function: { name } });

it('counts offered tools that were called, in every form a request has, and nothing that was invented', () => {
  const call = (name: string) => ({ tool_calls: [{ id: '1', ...chat(name) }] });
  expect(calledIn({ tools: [chat('find')] }, call('find'))).toEqual(['find']);
  expect(calledIn({ tools: [{ name: 'find', input_schema: {} }] }, call('find'))).toEqual(['find']);
  expect(calledIn({ functions: [{ name: 'find' }] }, { function_call: { name: 'find' } })).toEqual(['find']);
  expect(calledIn({ tools: [chat('find')] }, call('invented'))).toEqual([]);
  expect(calledIn({ tools: [chat('find')] }, { content: 'Hello.' })).toEqual([]);
  expect(calledIn({}, call('find'))).toBeNull();
  expect(calledIn({ tools: 'find' }, call('find'))).toBeNull();
  expect(calledIn({ tools: [null, 7, { function: 'x' }, chat('find')] }, { tool_calls: { length: 3 } })).toEqual([]);
});

/** A conversation of two turns; `uses`: the first calls a tool. */
function talk(id: string, at: number, taskType: string | null, uses: boolean): JournalEntry[] {
  const said = uses
    ? [{ say: [['get_order', '{"id":7}']] as const, results: ['{}'] }, { say: 'Sent.' }]
    : [{ say: 'I do not know.' }];
  return converse(`Where is ${id}?`, said, { trajectory: id, user: 'ann', startedAt: at }).map((turn) => ({
    kind: 'turn' as const,
    turn: { ...turn, request: { ...turn.request, ...(taskType && { metadata: { task_type: taskType } }) } },
  }));
}

it('is told by kind of task, beside the time before, and kept for /metrics', async () => {
  const store = await withStore();
  const [last, now] = [noon - 5 * dayMs, noon];
  await writeEntries(store, [
    // Before: 1 of 10. Now: 2 of 4 about orders, 0 of 1 about nothing in particular.
    ...Array.from({ length: 10 }, (_, i) => talk(`before-${i}`, last + i * 1000, 'order', i === 0)).flat(),
    ...Array.from({ length: 4 }, (_, i) => talk(`now-${i}`, now + i * 1000, 'order', i < 2)).flat(),
    ...talk('other', now, null, false),
  ]);
  const window = { agent: 'desk', origin: 'production', since: new Date(noon - 1000) } as const;
  const found = await adoptionIn(store, { ...window, until: new Date(noon - 1000 + 6 * dayMs) });
  expect(found).toEqual([
    {
      ...{ taskType: 'order', offered: 4, used: 2, before: { offered: 10, used: 1 } },
      tools: [{ name: 'get_order', conversations: 2 }],
    },
    { taskType: 'unknown', offered: 1, used: 0, before: null, tools: [] },
  ]);
  await lookAtTools(store, { agent: 'desk', origin: 'production', now: new Date(noon + 60_000) });
  await lookAtTools(store, { agent: 'desk', origin: 'production', now: new Date(noon + 60_000) });
  expect(toolMetrics(await readAdoptionLooks(store))).toBe(
    [
      '# HELP pawl_tools_offered Conversations of the last week that were offered tools',
      '# TYPE pawl_tools_offered gauge',
      'pawl_tools_offered{agent="desk",task_type="order"} 14',
      'pawl_tools_offered{agent="desk",task_type="unknown"} 1',
      '# HELP pawl_tools_used Of these, those that used one',
      '# TYPE pawl_tools_used gauge',
      'pawl_tools_used{agent="desk",task_type="order"} 3',
      'pawl_tools_used{agent="desk",task_type="unknown"} 0',
      '',
    ].join('\n'),
  );
});
