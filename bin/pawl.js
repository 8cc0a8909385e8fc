#!/usr/bin/env node
// A package holds what was built; a clone runs its source, unless tests and benches have built it (PAWL_BUILT). Child processes
// start through this file too.
import './keep-shapes.js'; // before anything else
import { existsSync } from 'node:fs';

const source = new URL('../src/main.ts', import.meta.url);
if (existsSync(source) && !process.env.PAWL_BUILT) {
  // The list of commands needs no packages.
  const named = process.argv.slice(2).some((word) => !word.startsWith('-'));
  if (named) await import('../src/typescript.js');
  else (await import('tsx/esm/api')).register();
  await import(source.href);
} else await import(new URL('../dist/main.js', import.meta.url).href);
