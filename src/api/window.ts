/** A window of an agent's traffic as a request names it, and one piece of work of each agent at a time. */
import { agentOf, type Config } from '../config.ts';
import { ConfigError, NotFoundError, RequestError } from '../errors.ts';
import { agentName, moment } from './schema.ts';

const week = 7 * 86_400_000;

export const windowShape = {
  agent: agentName.optional().openapi({ description: 'Whose; without it, the first of the settings.' }),
  since: moment
    .optional()
    .openapi({ description: 'Conversations that started then or later; without it, a week ago.' }),
  until: moment.optional().openapi({ description: 'Conversations that started before; without it, now.' }),
};

export function windowOf({ since, until }: { since?: Date | undefined; until?: Date | undefined }, now: Date) {
  const window = { since: since ?? new Date(now.getTime() - week), until: until ?? now };
  if (window.since < window.until) return window;
  throw new RequestError(
    400,
    'invalid_request',
    `since: ${window.since.toISOString()} is not before until, which is ${window.until.toISOString()}.`,
  );
}

/** The agent of the settings; whoever asks for another asks for what is not there. */
export function knownAgent(config: Pick<Config, 'agents'>, name: string | undefined): ReturnType<typeof agentOf> {
  try {
    return agentOf(config, name);
  } catch (error) {
    if (error instanceof ConfigError) throw new NotFoundError(error.message);
    throw error;
  }
}

/** Refuses a second piece of the same work for an agent while the first is under way. */
export function oneAtATime(what: string): <T>(agent: string, work: () => Promise<T>) => Promise<T> {
  const busy = new Set<string>();
  return async (agent, work) => {
    if (busy.has(agent))
      throw new RequestError(409, 'already_running', `${what} of agent ${agent} is under way; wait for it to end.`);
    busy.add(agent);
    try {
      return await work();
    } finally {
      busy.delete(agent);
    }
  };
}
