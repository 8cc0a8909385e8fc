/**
 * A reporter for vitest whose only word is the last line of a run: `N passed, N failed, N skipped`, for whoever reads
 * logs by machine. What failed and why is the default reporter's business.
 * A file that could not be loaded, a hook that failed and an error outside of any test are failures as well.
 */
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

type Counts = { readonly passed: number; readonly failed: number; readonly skipped: number };

/** Whatever ended neither well nor badly (skipped, to do, not reached) is skipped. */
function countTests(modules: readonly TestModule[], unhandled: readonly SerializedError[]): Counts {
  const states = modules.flatMap((module) => [...module.children.allTests()].map((test) => test.result().state));
  const count = (state: string) => states.filter((each) => each === state).length;
  const broken = modules
    .flatMap((module) => [module, ...module.children.allSuites()])
    .filter((each) => each.errors().length > 0);
  const passed = count('passed');
  const failed = count('failed');
  return {
    passed,
    failed: failed + broken.length + unhandled.length,
    skipped: states.length - passed - failed,
  };
}

export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const { passed, failed, skipped } = countTests(modules, unhandled);
    console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  }
}
