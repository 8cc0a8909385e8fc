/** What `import … from 'pawl'` gives: the words in which settings are written. Nothing here loads anything. */
import type { ConfigInput } from './config.ts';

export type { ConfigInput } from './config.ts';

/** Gives pawl.config.ts its types. */
export const defineConfig = (config: ConfigInput): ConfigInput => config;
