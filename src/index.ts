/** What `import … from 'pawl'` gives: the words in which settings and agents are written. Nothing here loads anything heavy. */
import type { AgentInput } from './agent.ts';
import type { ConfigInput } from './config.ts';

export type { AgentInput } from './agent.ts';
export type { ConfigInput } from './config.ts';
export { feedback } from './score/feedback.ts';
export { outcome } from './score/outcome.ts';
export type { Measured, Scorer, ScorerInput } from './score/scorer.ts';
export { toolUse } from './score/tool-use.ts';
export { weighted } from './score/weighted.ts';
export * from './simulate/environment.ts';

/** Gives pawl.config.ts its types. */
export const defineConfig = (config: ConfigInput): ConfigInput => config;

/** Gives an agent's file its types. */
export const defineAgent = (agent: AgentInput): AgentInput => agent;
