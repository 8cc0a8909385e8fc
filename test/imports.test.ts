/** The tree is the architecture: a stage imports from stages before it, never from those after. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';

/** What each folder of src/ may import from; files directly in src/ other than these four see everything. */
const upstream: Record<string, readonly string[]> = {
  engine: [],
  store: [], // and types, and the files that define a record
  collect: ['store'],
  score: ['collect', 'store'],
  curate: ['collect', 'score', 'store'],
  simulate: ['engine'],
  train: ['collect', 'score', 'curate', 'simulate', 'engine', 'store'],
  evaluate: ['collect', 'score', 'curate', 'simulate', 'train', 'engine', 'store'],
  deploy: ['collect', 'score', 'curate', 'train', 'evaluate', 'engine', 'store'],
  gateway: ['collect', 'deploy', 'engine', 'store'],
  loop: [
    'agent.ts',
    'loop.ts',
    'with-serving.ts',
    'collect',
    'score',
    'curate',
    'simulate',
    'train',
    'evaluate',
    'deploy',
    'engine',
    'store',
  ],
  api: [
    'agent.ts',
    'collect',
    'score',
    'curate',
    'simulate',
    'train',
    'evaluate',
    'deploy',
    'loop',
    'gateway',
    'engine',
    'store',
  ],
};
/** A record's own file: what it is, without any doing. */
const records = [
  'collect/trajectory.ts',
  'collect/turn.ts',
  'collect/signal.ts',
  'collect/line.ts',
  'score/score.ts',
  'curate/dataset.ts',
];
const forAll = ['errors.ts', 'config.ts', 'version.ts', 'terminal.ts', 'command.ts', 'user-module.ts'];

const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.ts') && file.includes('/') && !file.endsWith('.test.ts') && !file.includes('fixtures/'),
);

describe('imports point upstream', () => {
  it.each(files)('%s', (file) => {
    const from = file.split('/')[0]!;
    const text = readFileSync(join('src', file), 'utf8');
    for (const [, type, path] of text.matchAll(/^(?:import|export)( type)? [^;]*?from '(\.[^']+)';/gms)) {
      const target = normalize(join(dirname(file), path!));
      const to = target.split('/')[0]!;
      const allowed =
        to === from ||
        forAll.includes(target) ||
        upstream[from]!.includes(to) ||
        (from === 'store' && (type !== undefined || records.includes(target)));
      expect(allowed, `${file} imports ${target}`).toBe(true);
    }
  });
});
