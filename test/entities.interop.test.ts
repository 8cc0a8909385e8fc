/**
 * Others that find names before anything becomes a dataset: Presidio's analyzer, and a token-classification model that torch exported to
 * ONNX. What each is and how it is made: python/presidio-analyzer.py (400 MB from PyPI, once) and python/token-classifier.py (torch, 5 GB, once).
 * Each alone: `-t Presidio`, `-t ONNX`. Needs Python 3.12 (python.ts).
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openArtifacts } from '../src/artifacts/open.ts';
import { decode, openOnnxFinder } from '../src/collect/entities/onnx-finder.ts';
import { openPresidioFinder } from '../src/collect/entities/presidio-finder.ts';
import { type PiiSettings, piiSettings } from '../src/collect/redact/settings.ts';
import { curateWindow } from '../src/curate/run.ts';
import { converse } from '../src/score/fixtures.ts';
import { outcome } from '../src/score/outcome.ts';
import { scoreWindow } from '../src/score/run.ts';
import { weighted } from '../src/score/weighted.ts';
import { giveConsent } from '../src/store/consents.ts';
import { entry, noon } from '../src/store/fixtures.ts';
import { writeEntries } from '../src/store/record.ts';
import { withStore } from '../src/store/test-store.ts';
import { leftOut, pythonMissing, torchVenv, venv, withTorch } from './python.ts';
import { freePort } from './server-process.ts';

// The first run installs several GB.
vi.setConfig({ testTimeout: 3_600_000, hookTimeout: 3_600_000 });

const root = mkdtempSync(join(tmpdir(), 'pawl-entities-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** What a conversation becomes on its way into a dataset. */
async function curated(model: PiiSettings['model'], question: string, answer: string): Promise<string> {
  const store = await withStore();
  await giveConsent(store, 'desk', 'ann', new Date(noon - 1000));
  const turns = converse(question, [{ say: answer }], { trajectory: 't', user: 'ann' });
  const resolved = { kind: 'outcome', name: 'resolved', value: 1, user: null, identity: 't' } as const;
  await writeEntries(store, [
    ...turns.map((turn) => ({ kind: 'turn' as const, turn })),
    entry.signal({ ...resolved, target: { kind: 'trajectory', id: 't' } }),
  ]);
  const window = {
    ...{ agent: 'desk', spec: weighted({ resolved: [1, outcome('resolved')] }) },
    ...{ since: new Date(noon - 3_600_000), until: new Date(noon + 3_600_000), now: new Date(noon + 7_200_000) },
  };
  await scoreWindow(store, window);
  const artifacts = openArtifacts({ home: mkdtempSync(join(root, 'home-')) });
  const settings = { maxUserShare: 1, kAnonymity: 1 };
  const dataset = await curateWindow(store, artifacts, { ...window, settings, pii: piiSettings.parse({ model }) });
  const { threads } = JSON.parse(readFileSync(await artifacts.file(dataset.artifact!), 'utf8').split('\n')[0]!);
  return threads[0].messages.map(({ content }: { content: string }) => content).join('\n');
}

describe.skipIf(pythonMissing !== null)(`Presidio finds names${leftOut}`, () => {
  const python = venv('presidio-2.2.366');
  let server: ChildProcess;
  let url: string;
  beforeAll(async () => {
    await python.once('presidio', (pip) => pip('presidio-analyzer==2.2.366'));
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    const args = ['test/python/presidio-analyzer.py', join(root, 'spacy'), String(port)];
    server = spawn(python.bin('python'), args, { stdio: ['ignore', 'ignore', 'inherit'], env: python.env });
    while (
      !(await fetch(url).then(
        ({ ok }) => ok,
        () => false,
      ))
    ) {
      if (server.exitCode !== null) throw new Error(`Presidio's analyzer ended with ${server.exitCode}.`);
      await sleep(200);
    }
  });
  afterAll(async () => {
    if (server === undefined || server.exitCode !== null) return;
    const gone = once(server, 'exit');
    server.kill('SIGKILL');
    await gone;
  });

  test('before a conversation becomes a dataset, in places that are counted as it counts', async () => {
    const model = { kind: 'presidio', url, language: 'en', minScore: 0.4 } as const;
    const text = await curated(
      model,
      '🙂 I am Karen Jones of Acme Corp, k@example.org.',
      'Hello Karen Jones! 🙂🙂 Springfield is far.',
    );
    expect(text).toBe(
      '🙂 I am [PERSON_1] of [ORGANIZATION_1], [EMAIL_1].\nHello [PERSON_1]! 🙂🙂 [LOCATION_1] is far.',
    );
  });

  test('and is an error where it cannot, so that nothing becomes a dataset unread', async () => {
    const asked = openPresidioFinder({ url, language: 'ko', minScore: 0.4 })(['카렌 존스']);
    await expect(asked).rejects.toThrow(/The Presidio analyzer at .* answered 500; has it a model for the language ko/);
    const gone = {
      kind: 'presidio',
      url: `http://127.0.0.1:${await freePort()}`,
      language: 'en',
      minScore: 0.4,
    } as const;
    await expect(curated(gone, 'I am Karen Jones.', 'Hello.')).rejects.toThrow(
      /The Presidio analyzer at .* cannot be reached: .*ECONNREFUSED/,
    );
  });
});

describe.skipIf(pythonMissing !== null)(`a model as ONNX finds names${leftOut}`, () => {
  const folder = join(root, 'model');
  const long = `${'Order 7 was sent to Karen Jones. '.repeat(40)}Hello from Springfield`;
  const texts = [
    'My name is Karen Jones, from Springfield.',
    '돌려 karen 🙂 jones, Springfield!',
    '{"who":"Karen Jones","note":"order 7 was sent"}',
    "Karen's order",
    long,
    '',
    ' . ',
  ];
  type Word = { readonly start: number; readonly end: number; readonly label: string; readonly score: number };
  let theirs: readonly (readonly Word[])[];
  beforeAll(async () => {
    await withTorch();
    await torchVenv.once('onnx', (pip) => pip('transformers', 'onnx==1.23.2', 'onnxscript==0.7.2'));
    writeFileSync(join(root, 'texts.json'), JSON.stringify(texts));
    const args = ['test/python/token-classifier.py', folder, join(root, 'texts.json')];
    const { stdout } = await promisify(execFile)(torchVenv.bin('python'), args, { env: torchVenv.env });
    theirs = JSON.parse(stdout.trim().split('\n').at(-1)!);
  });

  test('in the places and with the scores that transformers finds with it', async () => {
    const ours = await (await openOnnxFinder({ folder, minScore: 0 }))(texts);
    const found = theirs.map((words, i) => {
      const units = (characters: number) => [...texts[i]!].slice(0, characters).join('').length;
      return decode(words.map((word) => ({ ...word, start: units(word.start), end: units(word.end) })));
    });
    expect(found[0]!.map(({ kind, start, end }) => [kind, texts[0]!.slice(start, end)])).toEqual([
      ['person', 'Karen Jones'],
      ['location', 'Springfield'],
    ]);
    for (const [i, spans] of found.entries()) {
      // A long text goes in windows here and whole there, so that words near their edges see less.
      const digits = texts[i] === long ? 2 : 4;
      expect(ours[i]).toEqual(spans.map((span) => ({ ...span, confidence: expect.closeTo(span.confidence!, digits) })));
    }
  });

  test('before a conversation becomes a dataset', async () => {
    const model = { kind: 'onnx', folder, minScore: 0.5 } as const;
    const text = await curated(model, 'My name is Karen Jones.', 'Hello Karen Jones, from Springfield.');
    expect(text).toBe('My name is [PERSON_1].\nHello [PERSON_1], from [LOCATION_1].');
  });

  test('and a folder that is none is an error that names it', async () => {
    await expect(openOnnxFinder({ folder: root, minScore: 0 })).rejects.toThrow(/config\.json cannot be read/);
  });
});
