/**
 * Asks the user's own agent, which runs as a server: the task is posted to it together with the base URL and key of the
 * episode, and its response is the answer. A connection that cannot be made is nobody's policy; one that breaks, and a status
 * other than 2xx, are the agent's.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isObject, parseUntrusted } from '../collect/untrusted.ts';
import { upTo } from '../up-to.ts';
import type { AgentEnd, OwnAgent, Start } from './agent-episode.ts';

export type EndpointOptions = {
  readonly url: string;
  /** Such as an authorization of the agent's own. */
  readonly headers?: Readonly<Record<string, string>>;
};

const responseBytes = 16 * 2 ** 20;
const nobodyThere = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];

// By hand and not with fetch, which waits five minutes for a response and no longer.
export function endpointRunner({ url, headers }: EndpointOptions): OwnAgent<never>['run'] {
  const send = new URL(url).protocol === 'https:' ? httpsRequest : httpRequest;
  return (start, { characters }, signal) =>
    new Promise<AgentEnd>((resolve) => {
      const fail = (error: NodeJS.ErrnoException): void => {
        if (signal.aborted) resolve({ kind: 'stopped', answer: '' });
        else if (nobodyThere.includes(error.code ?? ''))
          resolve({ kind: 'unreachable', detail: `Nobody answers at ${url}: ${error.message}` });
        else resolve({ kind: 'died', answer: '', detail: `the agent at ${url} broke off: ${error.message}` });
      };
      const asked = send(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        signal,
      });
      asked.on('error', fail);
      asked.on('response', (response) => {
        read(response).then((text) => resolve(endOf(url, response.statusCode!, text, characters)), fail);
      });
      asked.end(JSON.stringify(bodyOf(start)));
    });
}

/** In the spelling of the wire. */
const bodyOf = ({ task, episode, seed, baseUrl, key }: Start): object => ({
  ...{ task, episode, seed },
  base_url: baseUrl,
  api_key: key,
});

async function read(response: IncomingMessage): Promise<string> {
  const sent = await upTo(responseBytes, response);
  if (sent === null) throw new Error(`its response is over ${responseBytes} bytes`);
  return sent.toString('utf8');
}

function endOf(url: string, status: number, text: string, characters: number): AgentEnd {
  if (status < 200 || status > 299) {
    return { kind: 'died', answer: '', detail: `the agent at ${url} answered ${status}: ${text.slice(0, 500)}` };
  }
  const value = parseUntrusted(text);
  const given = isObject(value) && Object.hasOwn(value, 'answer') ? value.answer : text;
  const answer = typeof given === 'string' ? given : JSON.stringify(given);
  return { kind: 'done', answer: answer.trim().slice(-characters) };
}
