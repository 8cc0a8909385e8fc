import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { engineConformance } from '../conformance.ts';
import { writeTinyCheckpoint } from '../fixtures/tiny-checkpoint.ts';
import { dialects } from './dialects.ts';
import { createTinkerEngine } from './engine.ts';
import { type StandIn, startStandIn } from './fixtures/stand-in.ts';

let folder: string;
let scratch: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pawl-tinker-'));
  await writeTinyCheckpoint(join(folder, 'base'));
});
afterAll(() => rm(folder, { recursive: true }));
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'pawl-tinker-scratch-'));
});
afterEach(() => rm(scratch, { recursive: true }));

test('docs/engine.md shows every check that a server cannot pass', async () => {
  const page = await readFile('docs/engine.md', 'utf8');
  for (const { name, cannot } of Object.values(dialects))
    for (const [check, why] of Object.entries(cannot)) expect(page).toContain(`| ${name} | ${check} | ${why} |`);
});

describe.each(['skyrl', 'tinker'] as const)('against a server like %s the engine conforms:', (dialect) => {
  let server: StandIn;
  beforeAll(async () => {
    server = await startStandIn({ folder: join(folder, 'base'), dialect });
  });
  afterAll(() => server.close());

  const checks = engineConformance(async () => {
    const engine = createTinkerEngine({
      url: server.url,
      apiKey: 'tml-key',
      baseModel: 'base',
      folder: join(folder, 'base'),
      dialect,
      rank: 4,
    });
    return { engine, folder: join(folder, 'base'), scratch, close: () => engine.close() };
  }, dialects[dialect].cannot);
  for (const { name, cannot, run } of checks) test.skipIf(cannot !== undefined)(name, run);
});
