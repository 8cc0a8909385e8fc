/** The version in package.json, which is the only place it is written. */
import { readFileSync } from 'node:fs';
import { root } from './root.ts';

export const version: string = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')).version;
