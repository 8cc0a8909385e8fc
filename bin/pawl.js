#!/usr/bin/env node
// Runs the TypeScript source. Child processes start through this file too, so they need no flags of their own.
import { register } from 'tsx/esm/api';

// Once tsx is registered, every import is asked about in its thread, at a millisecond each. Packages of hundreds of small
// files, which nearly every command needs, are therefore loaded before: that halves the time in which `pawl serve` is up.
if (process.argv.slice(2).some((word) => !word.startsWith('-'))) await Promise.all([import('kysely'), import('zod')]);

register();
await import('../src/main.ts');
