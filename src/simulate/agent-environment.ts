/**
 * Environments in which the user's own agent practises as it is, in any language: Pawl starts it (`agentProcess`) or asks it
 * (`agentEndpoint`) for each task and gives it a model to talk to. The author says what the tasks are and what a good end is;
 * everything between is the agent's. What starts processes and listens is loaded when an episode begins: a settings file that
 * names an environment stays light.
 */
import { z } from 'zod';
import type { RewardSpec } from '../score/weighted.ts';
import type { DoorPlace } from './agent-door.ts';
import type { EndpointOptions } from './agent-endpoint.ts';
import type { AgentCall, AgentRun, OwnAgent } from './agent-episode.ts';
import type { ProcessOptions } from './agent-process.ts';
import { scored } from './agent-score.ts';
import type { EndGrade, Environment, Limits, Outcome, Task } from './environment.ts';
import { clamp } from './session.ts';

/** What a grader of an agent's work may look at. */
export type AgentView<Data> = {
  readonly task: Task<Data>;
  /** What it printed, or what its endpoint responded; '' where it did not come to that. */
  readonly answer: string;
  /** What it posted to /outcomes, by name; true is 1, false is 0. */
  readonly outcomes: ReadonlyMap<string, number>;
  /** Its calls of the model, sub-agents' included. */
  readonly calls: readonly AgentCall[];
  /** `done`: it ended by itself; `limit` and `died`: this is what it left behind. */
  readonly outcome: Outcome;
};

/** A number is the reward, 0–1, and a success from 0.5 on; so is an object without `success`. */
export type AgentGrade = number | boolean | (Partial<EndGrade> & Pick<EndGrade, 'reward'>);

export type AgentLimits = {
  /** Calls of the model. */
  readonly turns: number; // 32
  readonly tokensPerTurn: number; // 512
  /** Prompt and completion of one call together: the model's context. */
  readonly tokens: number; // 4096
  /** Wall time of the whole episode. */
  readonly seconds: number; // 120
  /** Characters of the answer; of more, the last. */
  readonly characters: number; // 100 000
};

export type AgentOptions<Data> = {
  readonly name: string;
  /** By task type. Pure: the same random and split give the same data. */
  readonly types: Environment<Data, AgentRun>['types'];
  /** What a task's data looks like, for tasks from a file. */
  readonly data?: z.ZodType<Data>; // anything
  /** What the agent gets to see of a task; leave out what is for the grader alone. */
  readonly input?: (task: Task<Data>) => unknown; // its data
  /** The reward of an episode by what the agent left behind. Without it and `reward`: the mean of the outcomes it posts. */
  readonly grade?: (view: AgentView<Data>) => AgentGrade | Promise<AgentGrade>;
  /** The reward by scorers, as for recorded conversations: what weighted({ … }) returns. */
  readonly reward?: RewardSpec;
  readonly limits?: Partial<AgentLimits>;
  /** Agents under way at once. */
  readonly concurrency?: number; // 8
  /** Where agents reach the model, if they are on another machine or in a container. */
  readonly door?: DoorPlace;
};

const limitDefaults: Limits = {
  ...{ turns: 32, tokensPerTurn: 512, tokens: 4096, seconds: 120, characters: 100_000 },
  ...{ callsPerTurn: Number.POSITIVE_INFINITY, mistakes: Number.POSITIVE_INFINITY }, // the agent's own to limit
};
const successFrom = 0.5;

/** For each task the command is started anew, with OPENAI_BASE_URL, OPENAI_API_KEY and PAWL_TASK; what it prints is its answer. */
export function agentProcess<Data>(options: AgentOptions<Data> & ProcessOptions): Environment<Data, AgentRun> {
  if (options.command.length === 0)
    throw new Error(`Environment ${options.name} has an empty command; say what starts the agent.`);
  return agentEnvironment(options, async (...start) =>
    (await import('./agent-process.ts')).processRunner(options)(...start),
  );
}

/** For each task the URL is posted the task, a base_url and an api_key; what it responds is its answer. */
export function agentEndpoint<Data>(options: AgentOptions<Data> & EndpointOptions): Environment<Data, AgentRun> {
  if (!/^https?:/i.test(options.url) || !URL.canParse(options.url))
    throw new Error(`Environment ${options.name} has the url '${options.url}'; give one of http:// or https://.`);
  return agentEnvironment(options, async (...start) =>
    (await import('./agent-endpoint.ts')).endpointRunner(options)(...start),
  );
}

function agentEnvironment<Data>(options: AgentOptions<Data>, run: OwnAgent<Data>['run']): Environment<Data, AgentRun> {
  const { name, types, grade, reward, concurrency = 8 } = options;
  if (!Number.isInteger(concurrency) || concurrency < 1)
    throw new Error(`Environment ${name} has concurrency ${concurrency}; give 1 or more.`);
  if (grade !== undefined && reward !== undefined)
    throw new Error(`Environment ${name} has both grade and reward; one of them says what an episode is worth.`);
  const worth = async (view: AgentView<Data>): Promise<AgentGrade> => {
    if (grade !== undefined) return grade(view);
    if (reward !== undefined) return scored(reward, name, view);
    return posted(view.outcomes);
  };
  return {
    name,
    system: '',
    types,
    data: options.data ?? (z.unknown() as z.ZodType<Data>),
    database: () => ({ answer: '', outcomes: new Map(), calls: [] }),
    tools: [],
    user: () => ({ open: () => '', answer: () => null }),
    gradeTurn: () => ({ reward: 0, parts: {}, reasons: [] }),
    gradeEnd: async ({ task, database, outcome, detail }) => {
      const { answer, outcomes, calls } = database;
      const missed = outcome === 'done' ? [] : [detail];
      // Whoever left nothing behind earned nothing, whatever a grader makes of an empty answer.
      if (outcome !== 'done' && answer === '' && outcomes.size === 0)
        return { reward: 0, success: false, parts: {}, reasons: missed };
      const given = await worth({ task, answer, outcomes, calls: [...calls], outcome });
      const {
        reward,
        parts = {},
        reasons = [],
        success = clamp(reward) >= successFrom,
      } = typeof given === 'object' ? given : { reward: Number(given) };
      return { reward, parts, reasons: [...missed, ...reasons], success: success && outcome === 'done' };
    },
    limits: { ...limitDefaults, ...options.limits },
    agent: {
      input: options.input ?? (({ data }) => data),
      run,
      concurrency,
      door: options.door ?? {},
    },
  };
}

function posted(outcomes: ReadonlyMap<string, number>): AgentGrade {
  const parts = Object.fromEntries([...outcomes].map(([name, value]) => [name, clamp(value)]));
  const values = Object.values(parts);
  if (values.length === 0) return { reward: 0, reasons: ['the agent posted no outcome'] };
  return { reward: values.reduce((sum, value) => sum + value, 0) / values.length, parts };
}
