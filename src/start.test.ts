import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { LoopTurn } from './loop/turn.ts';
import { writeSummary } from './start.ts';
import { deleteHome } from './start-command.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-start-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

const turn: LoopTurn = {
  agent: 'desk',
  number: 1,
  seed: 3,
  done: ['collect', 'score', 'curate', 'train', 'evaluate', 'deploy'],
  state: {
    curate: { dataset: 'desk-v1', rows: 1, funnel: [] },
    evaluate: { report: 'r', verdict: 'pass', before: 0.25, after: 0.5, interval: [0.1, 0.4], p: 0.01, reasons: [] },
    deploy: { rollout: 'x', phase: 'promoted', release: 'desk-1', reasons: [] },
  },
  startedAt: 1000,
  endedAt: 3000,
};

describe('the summary of a turn', () => {
  it('is written whole, and not by a turn that came to no report', () => {
    writeSummary(folder, turn);
    const text = readFileSync(join(folder, 'summary.json'), 'utf8');
    expect(JSON.parse(text)).toMatchObject({ turn: 1, before: 0.25, after: 0.5, promoted: true, seconds: 2 });
    writeSummary(folder, { ...turn, number: 2, state: { ended: 'Run desk-turn-2 was stopped.' } });
    writeSummary(folder, { ...turn, number: 2, endedAt: null });
    expect(readFileSync(join(folder, 'summary.json'), 'utf8')).toBe(text);
    expect(readdirSync(folder)).toEqual(['summary.json']);
  });
});

describe('a reset', () => {
  const fill = (home: string) => {
    mkdirSync(join(home, 'postgres', 'data'), { recursive: true });
    writeFileSync(join(home, 'postgres', 'data', 'PG_VERSION'), '18');
    writeFileSync(join(home, 'secret'), 'x');
  };

  it('that was killed is finished by the next, and leaves nothing that a start would read meanwhile', () => {
    const home = join(folder, 'home');
    fill(join(home, '.deleted-1')); // killed while it deleted
    fill(home); // and a Pawl was started on what was left, an empty home
    deleteHome(home);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('of a linked home deletes what it holds and not the link alone', () => {
    const [real, link] = [join(folder, 'real'), join(folder, 'link')];
    fill(real);
    symlinkSync(real, link);
    deleteHome(link);
    expect(readdirSync(real)).toEqual([]);
  });
});
