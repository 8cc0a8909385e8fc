import { configDefaults, defineConfig } from 'vitest/config';
import LongestFirst from './test/longest-first.ts';

/**
 * `npm test` leaves out what takes minutes and shows nothing new on most days; `npm run test:all` has it too. `npm run
 * test:interop` is what needs another program on this machine, and says of each test which.
 */
export default defineConfig(({ mode }) => ({
  // What the examples import as 'pawl' is the source.
  resolve: { tsconfigPaths: true },
  test: {
    include: ['src', 'dashboard', 'test', 'examples'].map(
      (at) => `${at}/**/*${mode === 'interop' ? '.interop' : ''}.test.ts`,
    ),
    exclude: [
      ...configDefaults.exclude,
      ...(mode === 'interop' ? [] : ['**/*.interop.test.ts']),
      ...(mode === 'all' ? [] : ['**/*.slow.test.ts']),
    ],
    globalSetup: ['./test/built.ts', './src/store/test-server.ts'],
    // Real databases, processes and models on small machines: hangs are caught, slowness is not a failure.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Tests with real processes mostly wait, so one more than the cores of a small machine.
    maxWorkers: 3,
    env: { KILLS: mode === 'all' ? '50' : '8' },
    sequence: { sequencer: LongestFirst },
    reporters: ['default', './test/closing-line.ts'],
  },
}));
