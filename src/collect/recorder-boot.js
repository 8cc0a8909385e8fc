// A worker thread starts as plain JavaScript whatever started its parent (pawl, tsx, vitest), so it makes TypeScript
// readable for itself and then becomes recorder-worker.ts. Packages of many files come first, as in bin/pawl.js.
import { register } from 'tsx/esm/api';

await Promise.all([import('kysely'), import('zod')]);

register();
await import('./recorder-worker.ts');
