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
export { gate, type OwnGate } from './curate/own-gate.ts';
export type { Row } from './curate/row.ts';
export { answerLength, type LengthRule } from './score/answer-length.ts';
export { answerRelevance } from './score/answer-relevance.ts';
export type { Ask, Asked, Block, Call, JudgeChoice, Question, Verdict } from './score/ask.ts';
export { codeParses } from './score/code-parses.ts';
export { contextPrecision } from './score/context-precision.ts';
export { type ContextRecallOptions, contextRecall } from './score/context-recall.ts';
export { faithfulness, type RetrievalScorerOptions } from './score/faithfulness.ts';
export { feedback } from './score/feedback.ts';
export { fitsSchema } from './score/fits-schema.ts';
export { type ImplicitWorth, implicit } from './score/implicit.ts';
export { type JudgeOptions, judge } from './score/judge.ts';
export { label } from './score/label.ts';
export { language } from './score/language.ts';
export { type LatencyRange, latency } from './score/latency.ts';
export { matches } from './score/matches.ts';
export { type MinimalDiffOptions, minimalDiff } from './score/minimal-diff.ts';
export { type OutcomeCurve, type OutcomeRange, type OutcomeRatio, outcome } from './score/outcome.ts';
export { rewardModel } from './score/reward-model-scorer.ts';
export { type RubricOptions, rubric } from './score/rubric.ts';
export type { Criterion, Level } from './score/rubric-file.ts';
export { type RuleAnswer, rule } from './score/rule.ts';
export { type Measured, type Scorer, type ScorerContext, type ScorerInput, unmeasured } from './score/scorer.ts';
export { steps } from './score/steps.ts';
export { type ThinkingOptions, thinking } from './score/thinking.ts';
export { type Tone, tone } from './score/tone.ts';
export { type ToolUseOptions, toolUse } from './score/tool-use.ts';
export { penalty, type RewardSpec, weighted } from './score/weighted.ts';
export { type WordRule, words } from './score/words.ts';
export type { DoorPlace } from './simulate/agent-door.ts';
export type { EndpointOptions } from './simulate/agent-endpoint.ts';
export {
  type AgentGrade,
  type AgentLimits,
  type AgentOptions,
  type AgentView,
  agentEndpoint,
  agentProcess,
} from './simulate/agent-environment.ts';
export type { AgentCall, AgentRun } from './simulate/agent-episode.ts';
export type { ProcessOptions } from './simulate/agent-process.ts';
export {
  type EndGrade,
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
