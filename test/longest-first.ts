/**
 * The order in which vitest takes the test files: those that take minutes first, so that no worker is left alone with one
 * of them at the end. The rest goes as vitest thinks best (what it remembers of the last run, else by size).
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const longest = [
  'test/interrupted.slow.test.ts',
  'test/loop.slow.test.ts',
  'test/kill.test.ts',
  'test/chaos/chaos.test.ts',
  'test/own-agent.test.ts',
  'test/demo.test.ts',
  'src/store/pool.test.ts',
  'src/collect/recorder.test.ts',
  'src/collect/pump.test.ts',
  'test/identity.test.ts',
  'test/erase.test.ts',
  'test/bad-candidate.slow.test.ts',
  'test/bad-days.test.ts',
  'test/restarts.test.ts',
  'test/silent-database.test.ts',
  'test/rollout-commands.slow.test.ts',
  'test/database-away.test.ts',
  'src/store/embedded.test.ts',
  'test/commands.test.ts',
  'test/interrupted.test.ts',
];

const rank = ({ moduleId }: TestSpecification): number => {
  const at = longest.findIndex((name) => moduleId.endsWith(`/${name}`));
  return at < 0 ? longest.length : at;
};

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
