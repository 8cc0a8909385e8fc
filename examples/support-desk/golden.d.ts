import { type Task } from '../../src/simulate/environment.ts';
import { type DeskData } from './tasks.ts';
export declare const goldenFile: import("url").URL;
/** The types take turns; a case whose words or order came up before is passed over. */
export declare function makeGolden(): Task<DeskData>[];
export declare const goldenText: (tasks: readonly Task<DeskData>[]) => string;
export declare function readGolden(): Task<DeskData>[];
