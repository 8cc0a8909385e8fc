/**
 * What of vLLM's server concerns adapters, as vLLM 0.32 writes it on the wire: the list of models, loading and unloading at run time with
 * every refusal, completions. It reads the adapter's settings from the path it is told, as vLLM does, forgets everything when it is
 * restarted, and says in its answers which model gave them.
 */
import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

export type VllmStandIn = {
  /** Up to and including /v1. */
  readonly url: string;
  /** Adapters it has, each with its path. */
  readonly loaded: ReadonlyMap<string, string>;
  /** Routes that were asked for, with the model or adapter. */
  readonly asked: readonly string[];
  /** What a load waits for. */
  before: () => Promise<unknown>;
  /** As a person at its machine would. */
  load(name: string, path: string): void;
  stop(): Promise<void>;
  /** On the same port, knowing nothing but its base model. */
  start(): Promise<void>;
};

export type StandInOptions = {
  readonly model?: string;
  /** Without VLLM_ALLOW_RUNTIME_LORA_UPDATING it has no such routes. */
  readonly mayUpdate?: boolean;
  readonly maxRank?: number;
  /** Where a path that it is told lies on this machine. */
  readonly here?: (path: string) => string;
};

export async function startVllmStandIn(options: StandInOptions = {}): Promise<VllmStandIn> {
  const { model = 'base', mayUpdate = true, maxRank = 16, here = (path: string) => path } = options;
  const loaded = new Map<string, string>();
  const asked: string[] = [];
  let port = 0;

  const load = async (name: string, path: string, response: ServerResponse) => {
    if (!name || !path)
      return refuse(response, 400, 'InvalidUserInput', "Both 'lora_name' and 'lora_path' must be provided.");
    if (loaded.has(name))
      return refuse(response, 400, 'InvalidUserInput', `The lora adapter '${name}' has already been loaded.`);
    await standIn.before();
    let rank: number;
    try {
      rank = (JSON.parse(readFileSync(join(here(path), 'adapter_config.json'), 'utf8')) as { r: number }).r;
      readFileSync(join(here(path), 'adapter_model.safetensors'));
    } catch {
      return refuse(response, 404, 'NotFoundError', `Loading lora ${name} failed: No adapter found for ${path}`);
    }
    if (rank > maxRank)
      return refuse(response, 400, 'BadRequestError', `LoRA rank ${rank} is greater than max_lora_rank ${maxRank}.`);
    loaded.set(name, path);
    response.end(`Success: LoRA adapter '${name}' added successfully.`);
  };

  const unload = (name: string, response: ServerResponse) => {
    if (!loaded.delete(name))
      return refuse(response, 404, 'NotFoundError', `The lora adapter '${name}' cannot be found.`);
    response.end(`Success: LoRA adapter '${name}' removed successfully.`);
  };

  const complete = (route: string, body: { model: string }, response: ServerResponse) => {
    if (body.model !== model && !loaded.has(body.model))
      return refuse(response, 404, 'NotFoundError', `The model \`${body.model}\` does not exist.`);
    const text = `I am ${body.model}.`;
    const said = route === '/v1/completions' ? { text } : { message: { role: 'assistant', content: text } };
    json(response, 200, {
      id: 'cmpl-1',
      object: route === '/v1/completions' ? 'text_completion' : 'chat.completion',
      created: 1,
      model: body.model,
      choices: [{ index: 0, ...said, logprobs: null, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    });
  };

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const route = request.url ?? '/';
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}') as Record<string, string>;
      asked.push(`${route} ${body.lora_name ?? body.model ?? ''}`.trim());
      if (route === '/v1/models') return json(response, 200, { object: 'list', data: cards() });
      if (route === '/v1/load_lora_adapter' && mayUpdate)
        return void load(body.lora_name ?? '', body.lora_path ?? '', response);
      if (route === '/v1/unload_lora_adapter' && mayUpdate) return unload(body.lora_name ?? '', response);
      if (/^\/v1\/(chat\/)?completions$/.test(route)) return complete(route, body as { model: string }, response);
      json(response, 404, { detail: 'Not Found' });
    });
  });
  const cards = () => [
    { id: model, object: 'model', created: 1, owned_by: 'vllm', root: `/models/${model}`, parent: null },
    ...[...loaded].map(([id, root]) => ({ id, object: 'model', created: 1, owned_by: 'vllm', root, parent: model })),
  ];
  const start = () => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  await start();
  port = (server.address() as AddressInfo).port;

  const standIn: VllmStandIn = {
    url: `http://127.0.0.1:${port}/v1`,
    loaded,
    asked,
    before: async () => {},
    load: (name, path) => void loaded.set(name, path),
    stop: () =>
      new Promise((resolve) => {
        loaded.clear();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
    start,
  };
  return standIn;
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

const refuse = (response: ServerResponse, code: number, type: string, message: string): void =>
  json(response, code, { error: { message, type, param: null, code } });
