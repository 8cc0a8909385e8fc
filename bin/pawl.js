#!/usr/bin/env node
// Runs the TypeScript source. Child processes start through this file too, so they need no flags of their own.
import { register } from 'tsx/esm/api';

const named = process.argv.slice(2).some((word) => !word.startsWith('-'));
if (named) await import('../src/typescript.js');
else register(); // the list of commands needs no packages
await import('../src/main.ts');
