/** Each format is parsed by a strict schema of what is documented (fixtures.ts). */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { orderTool } from '../score/fixtures.ts';
import type { CuratedExample, CuratedPair } from './examples.ts';
import { type ExportFormat, exported } from './export.ts';
import { type ExportCounts, exportToFile } from './export-run.ts';
import { documented } from './fixtures.ts';

const call = (args: string) => ({
  id: 'call_1',
  type: 'function' as const,
  function: { name: 'get_order', arguments: args },
});
const example: CuratedExample = {
  id: 'c',
  taskType: 'order',
  quality: 1,
  messages: [
    { role: 'system', content: 'Be kind.' },
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'Hi.' }, // given, not written
    { role: 'user', content: 'Where is order 7?' },
    { role: 'assistant', content: null, tool_calls: [call('{"id":7}')] },
    { role: 'tool', tool_call_id: 'call_1', content: '{"status":"sent"}' },
    { role: 'assistant', content: 'It was sent.' },
  ],
  tools: [orderTool as CuratedExample['tools'][number]],
  answers: [
    { at: 4, score: 1, reasoning: 'I should look.' },
    { at: 6, score: null, reasoning: '' },
  ],
  exact: null,
};
const pair: CuratedPair = {
  id: 'p',
  source: 'votes',
  group: 'g',
  taskType: 'order',
  gap: 1,
  prompt: example.messages.slice(0, 4),
  tools: [],
  chosen: { role: 'assistant', content: 'Sent.', reasoning_content: 'It says sent.' },
  rejected: { role: 'assistant', content: 'No.' },
};
const line = (format: ExportFormat, item: Parameters<typeof exported>[1]) => {
  const made = exported(format, item);
  if (made?.kind !== 'line') throw new Error(JSON.stringify(made));
  const parsed = JSON.parse(JSON.stringify(made.line));
  expect(documented[format].parse(parsed)).toEqual(parsed);
  return parsed;
};

describe('an export', () => {
  test('as trl-sft is the conversation with arguments as objects, results by name, and what the model thought', () => {
    const { messages, tools } = line('trl-sft', { example });
    expect(messages.slice(4)).toEqual([
      {
        role: 'assistant',
        content: '',
        reasoning_content: 'I should look.',
        tool_calls: [{ type: 'function', function: { name: 'get_order', arguments: { id: 7 } } }],
      },
      { role: 'tool', name: 'get_order', content: '{"status":"sent"}' },
      { role: 'assistant', content: 'It was sent.' },
    ]);
    expect(tools).toEqual([orderTool]);
  });

  test('as trl-preference has the question once and one message on each side', () => {
    const { prompt, chosen, rejected, ...rest } = line('trl-preference', { pair });
    expect(prompt).toHaveLength(4);
    expect([chosen, rejected]).toEqual([
      [{ role: 'assistant', content: 'Sent.', reasoning_content: 'It says sent.' }],
      [{ role: 'assistant', content: 'No.' }],
    ]);
    expect(rest).toEqual({});
    expect(exported('trl-preference', { example })).toBeNull();
  });

  test('as trl-prompts is what was asked, before the first answer', () => {
    expect(line('trl-prompts', { example }).prompt).toEqual(example.messages.slice(0, 4));
    expect(line('trl-prompts', { pair }).prompt).toEqual(pair.prompt);
  });

  test('as openai-chat keeps ids and JSON text, gives other people’s answers no weight, and says which thoughts it lost', () => {
    const { messages } = line('openai-chat', { example });
    expect(messages[2]).toEqual({ role: 'assistant', content: 'Hi.', weight: 0 });
    expect(messages[4]).toEqual({ role: 'assistant', content: null, tool_calls: [call('{"id":7}')] });
    expect(exported('openai-chat', { example })).toMatchObject({ thoughtsLost: 1 });
    expect(JSON.stringify(messages)).not.toContain('I should look');
  });

  test('leaves out what a format cannot say', () => {
    const odd = (messages: CuratedExample['messages']) => exported('trl-sft', { example: { ...example, messages } });
    const broken = example.messages.with(4, { role: 'assistant', content: null, tool_calls: [call('{"id":')] });
    expect(odd(broken)).toEqual({ kind: 'left', reason: 'a tool call whose arguments are no JSON object' });
    expect(odd(example.messages.toSpliced(4, 1, example.messages[3]!))).toEqual({
      kind: 'left',
      reason: 'a tool result without its call',
    });
    expect(line('openai-chat', { example: { ...example, messages: broken } }).messages).toHaveLength(7);
  });
});

describe('the file of an export', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-export-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const counts: ExportCounts = { rows: 2, left: {}, thoughtsLost: 0 };
  const lines = async function* (fail = false): AsyncGenerator<string, ExportCounts> {
    yield '{"a":1}';
    if (fail) throw new Error('the disk is gone');
    yield '{"a":2}';
    return counts;
  };

  test('is there whole or not at all, and is not written over unless told to', async () => {
    const out = join(folder, 'out.jsonl');
    await expect(exportToFile(lines(true), out, { format: 'trl-sft', force: false })).rejects.toThrow(
      'the disk is gone',
    );
    const stopped = AbortSignal.abort(new Error('stopped'));
    await expect(exportToFile(lines(), out, { format: 'trl-sft', force: false, signal: stopped })).rejects.toThrow(
      'stopped',
    );
    expect(readdirSync(folder)).toEqual([]);
    expect(await exportToFile(lines(), out, { format: 'trl-sft', force: false })).toEqual(counts);
    expect(readFileSync(out, 'utf8')).toBe('{"a":1}\n{"a":2}\n');
    expect(statSync(out).mode & 0o077).toBe(0);
    writeFileSync(out, 'mine');
    await expect(exportToFile(lines(), out, { format: 'trl-sft', force: false })).rejects.toThrow(
      /exists already.*--force/,
    );
    expect(readFileSync(out, 'utf8')).toBe('mine');
    await exportToFile(lines(), out, { format: 'trl-sft', force: true });
    expect(readFileSync(out, 'utf8')).toContain('"a":2');
    await expect(exportToFile(lines(), join(folder, 'none', 'x'), { format: 'trl-sft', force: false })).rejects.toThrow(
      /no folder/,
    );
    expect(existsSync(join(folder, 'none'))).toBe(false);
  });
});
