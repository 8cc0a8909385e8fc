#!/usr/bin/env node
// Runs the TypeScript source. Child processes start through this file too, so they need no flags of their own.
import { register } from 'tsx/esm/api';

register();
await import('../src/main.ts');
