/**
 * The support desk as an environment: the one file a reader needs to see how the parts make a world to practise in.
 */
import type { Environment } from '../../src/simulate/environment.ts';
import { type Shop } from './shop.ts';
import { type DeskData } from './tasks.ts';
export declare const supportDesk: Environment<DeskData, Shop>;
