/** The check of `npm run check` that keeps imports pointing upstream, tried on imports that it must see. */
import { describe, expect, it } from 'vitest';
import { cyclesIn, importsOf, problemOf } from '../scripts/imports.ts';

const refused = (from: string, text: string): string[] =>
  importsOf(from, text).flatMap((one) => (problemOf(one) === null ? [] : [one.to]));

describe('imports point upstream', () => {
  it('a stage imports from those before it, whatever the import looks like', () => {
    const text = `
      import { a } from '../store/a.ts';
      import type { B } from '../score/b.ts';
      import { type C } from '../curate/c.ts';
      export { d } from '../deploy/d.ts';
      export * from '../gateway/e.ts';
      import '../api/f.ts';
      type G = import('../train/g.ts').G;
      const load = () => import('../evaluate/h.ts');
      import z from 'zod';
      import { i } from './i.ts';`;
    expect(refused('collect/x.ts', text).sort()).toEqual([
      ...['api/f.ts', 'curate/c.ts', 'deploy/d.ts', 'evaluate/h.ts', 'gateway/e.ts', 'score/b.ts', 'train/g.ts'],
    ]);
  });

  it('the store knows the types of stages and nothing more', () => {
    expect(refused('store/x.ts', `import type { Turn } from '../collect/turn.ts';`)).toEqual([]);
    expect(refused('store/x.ts', `import { type Turn, make } from '../collect/turn.ts';`)).toEqual(['collect/turn.ts']);
  });

  it('nobody imports what puts everything together, nor where a process begins', () => {
    expect(refused('api/x.ts', `import { serve } from '../serve.ts'; import '../errors.ts';`)).toEqual(['serve.ts']);
    expect(refused('loop.ts', `import { commands } from './commands.ts';`)).toEqual(['commands.ts']);
    expect(refused('main.ts', `import { commands } from './commands.ts';`)).toEqual([]);
  });

  it('a folder that is not in the list is refused', () => {
    expect(refused('helpers/x.ts', `import { a } from '../store/a.ts';`)).toEqual(['store/a.ts']);
  });

  it('a cycle is one of values that are needed at once', () => {
    const imports = (...edges: [from: string, text: string][]) =>
      edges.flatMap(([from, text]) => importsOf(from, text));
    const back = `import { a } from './a.ts';`;
    expect(cyclesIn(imports(['a.ts', `import { b } from './b.ts';`], ['b.ts', back]))).toEqual([
      ['a.ts', 'b.ts', 'a.ts'],
    ]);
    expect(cyclesIn(imports(['a.ts', `import type { b } from './b.ts';`], ['b.ts', back]))).toEqual([]);
    expect(cyclesIn(imports(['a.ts', `const b = () => import('./b.ts');`], ['b.ts', back]))).toEqual([]);
  });
});
