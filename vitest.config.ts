import { configDefaults, defineConfig } from 'vitest/config';
import LongestFirst from './test/longest-first.ts';

/** Whose tests leave the process as it was, and do not load the engine, which changes how numbers are rounded in it. */
const together = [
  ...['api', 'artifacts', 'collect', 'curate', 'deploy', 'gateway', 'loop', 'privacy', 'review', 'roles', 'simulate'],
  ...['store', 'evaluate/gates'],
].map((stage) => `src/${stage}/**/*.test.ts`);
together.push(
  'src/engine/!(command|keep-checkpoint|process|serve|socket).test.ts',
  'src/evaluate/!(base-drift|run).test.ts',
  'src/score/!(reward-model|train-run).test.ts',
  'src/train/!(onnx|portable|run).test.ts',
);

/**
 * `npm test` leaves out what takes minutes and shows nothing new on most days; `npm run test:all` has it too. `npm run
 * test:interop` is what needs another program on this machine, and says of each test which.
 */
export default defineConfig(({ mode }) => {
  const exclude = [
    ...configDefaults.exclude,
    ...(mode === 'interop' ? [] : ['**/*.interop.test.ts']),
    ...(mode === 'all' ? [] : ['**/*.slow.test.ts']),
  ];
  const all = ['src', 'dashboard', 'test', 'examples'].map(
    (at) => `${at}/**/*${mode === 'interop' ? '.interop' : ''}.test.ts`,
  );
  const project = (name: string, isolate: boolean, include: string[], others: string[]) => ({
    // What the examples import as 'pawl' is the source.
    resolve: { tsconfigPaths: true },
    test: {
      ...{ name, isolate, include, exclude: [...exclude, ...others] },
      // Real databases, processes and models on small machines: hangs are caught, slowness is not a failure.
      ...{ testTimeout: 120_000, hookTimeout: 120_000 },
      env: { TEST_ALL: mode === 'all' ? '1' : '' },
    },
  });
  return {
    test: {
      projects: [
        project('alone', true, all, mode === 'interop' ? [] : together),
        // One process for many files: half of the time of short ones is loading what the one before had loaded.
        ...(mode === 'interop' ? [] : [project('together', false, together, [])]),
      ],
      globalSetup: ['./test/built.ts', './src/store/test-server.ts'],
      // Tests with real processes mostly wait, so one more than the cores of a small machine.
      maxWorkers: 3,
      // Servers of several GB, and virtual environments that two of these tests fill: one at a time.
      fileParallelism: mode !== 'interop',
      sequence: { sequencer: LongestFirst },
      // Of what is left out the name says why.
      reporters: [mode === 'interop' ? 'verbose' : 'default', './test/closing-line.ts'],
    },
  };
});
