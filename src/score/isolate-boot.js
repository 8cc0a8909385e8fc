// A worker thread starts as plain JavaScript whatever started its parent (pawl, tsx, vitest), so it makes TypeScript
// readable for itself and then becomes isolate-worker.ts.
import '../typescript.js';

await import('./isolate-worker.ts');
