/** Against answers as Presidio 2.2.366 gave them; the analyzer itself is asked in test/entities.interop.test.ts. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openFinders } from './finder.ts';
import { openPresidioFinder } from './presidio-finder.ts';

const one = (entity_type: string, start: number, end: number, score = 0.85) => ({
  ...{ analysis_explanation: null, entity_type, start, end, score },
});
let answer: { status: number; body: string };
const asked: unknown[] = [];
const server = createServer(async (request, response) => {
  let text = '';
  for await (const chunk of request) text += chunk;
  asked.push([request.url, JSON.parse(text)]);
  response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
});
let url: string;
beforeAll(async () => {
  await new Promise<void>((go) => server.listen(0, '127.0.0.1', go));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());
const find = (text: string) => openPresidioFinder({ url: `${url}/`, language: 'en', minScore: 0.4 })([text]);

test('places are counted in characters there and in UTF-16 units here; kinds that have a form are left to the recognizers', async () => {
  const text = '🙂 Karen Jones, k@example.org';
  answer = {
    status: 200,
    body: JSON.stringify([
      one('EMAIL_ADDRESS', 15, 28),
      one('PERSON', 2, 13),
      one('LOCATION', 0, 1, 0.3),
      one('PERSON', 5, 5),
    ]),
  };
  const [spans] = await find(text);
  expect(spans!.map(({ kind, start, end }) => [kind, text.slice(start, end)])).toEqual([['person', 'Karen Jones']]);
  expect(asked).toEqual([['/analyze', { text, language: 'en', score_threshold: 0.4 }]]);
});

test('what is no answer is an error that names the analyzer, never an empty find', async () => {
  const refused = async (status: number, body: string) => {
    answer = { status, body };
    return find('Karen Jones').then(
      () => 'found nothing',
      (error: Error) => error.message.replace(url, 'URL'),
    );
  };
  expect(await refused(500, '{"error":"No matching recognizers were found to serve the request."}')).toBe(
    'The Presidio analyzer at URL/ (pii.model) answered 500; has it a model for the language en?',
  );
  for (const body of ['<html>', '{}', '[{"entity_type":"PERSON","start":-1,"end":2,"score":1}]'])
    expect(await refused(200, body)).toBe('The Presidio analyzer at URL/ answered with what is no list of entities.');
  expect(await refused(200, ' '.repeat(5 * 1024 * 1024))).toContain('answered more than 4194304 bytes');
});

test('of what agents are told each paragraph is asked about once, and found where it stands; what was said is asked as it is', async () => {
  answer = { status: 200, body: JSON.stringify([one('PERSON', 0, 5)]) };
  const { told, said } = await openFinders({ kind: 'presidio', url, language: 'en', minScore: 0.4 });
  const texts = () => asked.splice(0).map((request) => (request as [string, { text: string }])[1].text);
  texts();
  const found = (redactor: Awaited<ReturnType<typeof told.prepare>>, text: string) =>
    redactor.find(text).map(({ start, end }) => text.slice(start, end));

  const first = 'Sarah leads.\n\nKaren calls.';
  expect(found(await told.prepare([first]), first)).toEqual(['Sarah', 'Karen']);
  expect(texts()).toEqual(['Sarah leads.\n\n', 'Karen calls.']);
  const second = 'Sarah leads.\n\nLaura calls.';
  const known = await told.prepare({ prompts: [second] });
  expect(found(known, second)).toEqual(['Sarah', 'Laura']);
  expect(texts()).toEqual(['prompts', 'Laura calls.']);
  expect(found(known, 'passport: Laura calls.')).toEqual(['Laura']); // behind the name of its field
  expect(found(known, 'Nobody was asked about this.')).toEqual([]);

  expect(found(await said.prepare([first]), first)).toEqual(['Sarah']);
  expect(texts()).toEqual([first]);
});
