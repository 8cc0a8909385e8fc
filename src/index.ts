/**
 * What `import … from 'pawl'` gives: the words in which settings, agents, rewards and environments are written, and what
 * plays an environment. Light: no database driver and no engine is loaded with it (index-engine.ts has what needs one).
 */
import type { AgentInput } from './agent.ts';
import type { ConfigInput } from './config.ts';

export type { AgentInput } from './agent.ts';
export type { Signal } from './collect/signal.ts';
export type { Consent, Trajectory } from './collect/trajectory.ts';
export type { Turn } from './collect/turn.ts';
export type { ConfigInput } from './config.ts';
export { feedback } from './score/feedback.ts';
export { type OutcomeRange, outcome } from './score/outcome.ts';
export { type Measured, type Scorer, type ScorerInput, unmeasured } from './score/scorer.ts';
export { toolUse } from './score/tool-use.ts';
export { type RewardSpec, weighted } from './score/weighted.ts';
export {
  type EndView,
  type Environment,
  type Grade,
  type Limits,
  makeTask,
  makeTasks,
  type Outcome,
  parseTask,
  type Split,
  type Spoken,
  splits,
  type Task,
  type Tool,
  type ToolStep,
  type TurnView,
  tool,
  toolSpec,
  type User,
  weigh,
} from './simulate/environment.ts';
export { type Episode, play, spoken } from './simulate/episode.ts';
export { type HttpPlayerOptions, httpPlayer } from './simulate/http-player.ts';
export { llmUser, type UserBrief } from './simulate/llm-user.ts';
export type { AssistantMessage, Message, ToolCall, ToolSpec } from './simulate/message.ts';
export type { Conversation, PlayedTurn, Player } from './simulate/player.ts';
export { hash, type Random, random } from './simulate/random.ts';
export { type Persona, personas, type Script, scriptedUser, type Voices } from './simulate/scripted.ts';

/** Gives pawl.config.ts its types. */
export const defineConfig = (config: ConfigInput): ConfigInput => config;

/** Gives an agent's file its types. */
export const defineAgent = (agent: AgentInput): AgentInput => agent;
