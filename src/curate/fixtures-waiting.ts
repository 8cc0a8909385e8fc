/** Conversations that wait for the gates that look at all together, for tests: on a real disk, which is cleared when the test ends. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Candidates, createCandidates, type Passed } from './candidates.ts';
import { openDraft } from './files.ts';
import { createCrowd } from './k-anonymity.ts';
import { createNames } from './names.ts';
import { createWordings } from './near-duplicates.ts';
import type { Settings } from './settings.ts';
import { openShelf, type Shelf } from './shelf.ts';

export async function waitingFor(
  all: readonly Passed[],
  { kAnonymity, nearDuplicate }: Pick<Settings, 'kAnonymity' | 'nearDuplicate'>,
  seed: number,
): Promise<Candidates<string>> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-waiting-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const notes = await openDraft(folder);
  onTestFinished(notes.drop);
  const shelves = (held?: number): Shelf => openShelf(folder, held);
  const waiting = createCandidates<string>({
    ...{ seed, notes, people: createNames(), shelves },
    crowd: kAnonymity === 1 ? null : createCrowd(kAnonymity, shelves),
    wordings: nearDuplicate === 1 ? null : createWordings(shelves),
  });
  for (const one of all) await waiting.add(one, `${one.trajectory} ${one.day}`, one.trajectory);
  return waiting;
}
