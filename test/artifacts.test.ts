import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { withStore } from '../src/store/test-store.ts';
import { workOnThree } from './two-machines.ts';

const scratch = mkdtempSync(join(tmpdir(), 'pawl-machines-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test('machines that share a database and a folder of artifacts, and no home, curate, train and serve for each other', async () => {
  const store = await withStore();
  await workOnThree(scratch, store, join(scratch, 'shared'));
  expect.hasAssertions();
});
