/** What may be asked about whom; how the wire is read is tested through `pawl evaluate` (test/evaluate.test.ts). */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { answerOf } from './answer.ts';
import { embedAnswers, embeddingOf, embeddingSettings } from './embed.ts';
import type { GatedCase } from './gates/gate.ts';

async function server() {
  const asked: string[][] = [];
  const listening = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { input } = JSON.parse(Buffer.concat(chunks).toString()) as { input: string[] };
    asked.push(input);
    // As the format has it, the order is the index's.
    const data = input.map((text, index) => ({ index, embedding: [text.length, 1] })).reverse();
    response.end(JSON.stringify({ data }));
  });
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void listening.close());
  return { asked, baseUrl: `http://127.0.0.1:${(listening.address() as AddressInfo).port}/v1` };
}
const words = (say: string) => [{ attempt: 0, solved: true, answer: answerOf([{ role: 'assistant', content: say }]) }];
const cases: GatedCase[] = Array.from({ length: 12 }, (_, i) => ({
  ...{ id: `case-${i}`, type: 'text' },
  baseline: words('x'.repeat(i + 1)),
  candidate: words('y'.repeat(5_000)),
}));
const settings = embeddingSettings.parse({ upstream: 'box', model: 'wide', most: 10 });

it('asks about so many answers of each model and so much of each, and puts the vectors in their order', async () => {
  const { asked, baseUrl } = await server();
  const found = await embedAnswers(cases, embeddingOf(settings, { box: { baseUrl, inside: false } })!, {
    internal: false,
  });
  expect(found).toMatchObject({ kind: 'vectors', model: 'wide', baseline: { length: 10 }, candidate: { length: 10 } });
  expect(found).toMatchObject({ baseline: Array.from({ length: 10 }, (_, i) => [i + 1, 1]) });
  expect(asked.map((texts) => texts.map(({ length }) => length))).toEqual([
    Array.from({ length: 10 }, (_, i) => i + 1),
    new Array(10).fill(2_000),
  ]);
});

it('asks nobody outside the deployment about a model that learned from what is confidential', async () => {
  const { asked, baseUrl } = await server();
  const ask = (inside: boolean) =>
    embedAnswers(cases, embeddingOf(settings, { box: { baseUrl, inside } })!, { internal: true });
  expect(await ask(false)).toMatchObject({ kind: 'none', why: expect.stringContaining('inside: true') });
  expect(asked).toEqual([]);
  expect(await ask(true)).toMatchObject({ kind: 'vectors' });
});
