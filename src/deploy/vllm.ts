/**
 * vLLM's routes for adapters, spoken to one server: which models it has, load and unload one by name, and one token from it. Loading what
 * is loaded and unloading what is not are done, whoever did it: several gateways may tell the same server.
 *
 * vLLM has the two routes only where it was started with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True, and forgets what it was
 * told when it ends. Errors come as {"error": {"message"}} or, from older ones, {"message"}.
 */
import { request } from 'undici';
import { z } from 'zod';
import { BoundaryError } from '../errors.ts';
import { upTo } from '../up-to.ts';

export type AdapterServer = {
  /** The models it answers to, each with what it was loaded from. */
  models(): Promise<ReadonlyMap<string, string>>;
  load(name: string, path: string): Promise<void>;
  unload(name: string): Promise<void>;
  /** Whether it really answers with the model. */
  check(name: string): Promise<void>;
};

/** It cannot be reached, so nothing that it was told is sure to be there. */
export class ServerGone extends BoundaryError {}

const lookMs = 10_000;
/** Weights come from a disk, maybe over a network. */
const loadMs = 600_000;
const checkMs = 120_000;
const mostBytes = 4 * 1024 * 1024;

const listed = z.object({ data: z.array(z.object({ id: z.string(), root: z.string().nullish() })).max(100_000) });
const answered = z.object({ choices: z.array(z.unknown()).min(1) });
const refused = z.union([
  z.object({ error: z.object({ message: z.string() }) }).transform(({ error }) => error.message),
  z.object({ message: z.string() }).transform(({ message }) => message),
]);

type Answer = { readonly status: number; readonly json: unknown; readonly text: string };

export function vllmServer(
  upstream: string,
  { baseUrl, key }: { readonly baseUrl: string; readonly key?: string | undefined },
  signal?: AbortSignal,
): AdapterServer {
  const named = `upstream ${upstream} (${baseUrl})`;

  async function call(path: string, withinMs: number, body?: object): Promise<Answer> {
    const limit = AbortSignal.timeout(withinMs);
    try {
      const response = await request(`${baseUrl}${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        body: body === undefined ? null : JSON.stringify(body),
        // A connection of its own: one that was kept, and closed by the server for being idle, would look like its end.
        reset: true,
        headersTimeout: withinMs,
        bodyTimeout: withinMs,
        signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
      });
      const sent = await upTo(mostBytes, response.body);
      if (sent === null) throw new BoundaryError(`${named} answers with more than ${mostBytes} bytes.`);
      const text = sent.toString('utf8');
      return { status: response.statusCode, text, json: jsonOf(text) };
    } catch (cause) {
      if (cause instanceof BoundaryError) throw cause;
      if (limit.aborted || /TIMEOUT/.test(codeOf(cause)))
        throw new BoundaryError(`${named} did not answer ${path} within ${withinMs / 1000} s.`, {
          cause,
          retryable: true,
        });
      throw new ServerGone(`${named} cannot be reached: ${codeOf(cause) || (cause as Error).message}.`, {
        cause,
        retryable: true,
      });
    }
  }

  const problem = ({ status, json, text }: Answer, doing: string): BoundaryError => {
    const said = refused.safeParse(json);
    const why = (said.success ? said.data : text).replace(/\s+/g, ' ').trim().slice(0, 500);
    return new BoundaryError(`${named} answered ${status} to ${doing}${why === '' ? '' : `: ${why}`}`, {
      retryable: status >= 500 || status === 429,
    });
  };

  async function models(): Promise<ReadonlyMap<string, string>> {
    const answer = await call('/models', lookMs);
    const list = listed.safeParse(answer.json);
    if (answer.status !== 200 || !list.success) throw problem(answer, 'the question which models it has');
    return new Map(list.data.data.map(({ id, root }) => [id, root ?? '']));
  }

  /** A server without the route says so in FastAPI's words, one without the adapter in its own. */
  const hasNoRoute = ({ status, json }: Answer): boolean =>
    (status === 404 || status === 405) && !refused.safeParse(json).success;

  async function tell(path: string, withinMs: number, body: object): Promise<Answer> {
    const answer = await call(path, withinMs, body);
    if (!hasNoRoute(answer)) return answer;
    throw new BoundaryError(
      `${named} has no route ${path}: start vLLM with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True, or take \`adapters\` out of this upstream in pawl.config.ts.`,
    );
  }

  return {
    models,
    async load(name, path) {
      const answer = await tell('/load_lora_adapter', loadMs, { lora_name: name, lora_path: path });
      if (answer.status === 200) return;
      // Somebody else may have had it loaded meanwhile, which is refused as well.
      if (answer.status === 400 && (await models()).has(name)) return;
      throw problem(answer, `loading ${name} from ${path}`);
    },
    async unload(name) {
      const answer = await tell('/unload_lora_adapter', lookMs, { lora_name: name });
      if (answer.status !== 200 && answer.status !== 404) throw problem(answer, `unloading ${name}`);
    },
    async check(name) {
      const answer = await call('/completions', checkMs, { model: name, prompt: 'Hello', max_tokens: 1 });
      if (answer.status !== 200 || !answered.safeParse(answer.json).success)
        throw problem(answer, `a first request to ${name}`);
    },
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // load and unload say "Success: …" in plain words
  }
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
