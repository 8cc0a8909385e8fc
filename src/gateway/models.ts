/** GET /v1/models: what all upstreams offer, in one list. An upstream that does not answer is left out of it. */
import type { ServerResponse } from 'node:http';
import { upTo } from '../up-to.ts';
import { decodeSegment } from './door.ts';
import { openaiErrors, sendJson } from './error-shape.ts';
import type { Upstreams } from './upstreams.ts';

const waitMs = 5_000;
const maxBytes = 4 * 1024 * 1024;

type Model = { readonly id: string } & Readonly<Record<string, unknown>>;

export async function modelsOf(upstreams: Upstreams, name: string): Promise<readonly Model[]> {
  const { pool, path, key } = upstreams.get(name);
  const { statusCode, body } = await pool.request({
    path: `${path}/models`,
    method: 'GET',
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
    headersTimeout: waitMs,
    bodyTimeout: waitMs,
    signal: AbortSignal.timeout(waitMs),
  });
  const sent = await upTo(maxBytes, body);
  if (sent === null) throw new Error(`upstream ${name} lists more than ${maxBytes} bytes of models`);
  if (statusCode !== 200) throw new Error(`upstream ${name} answered ${statusCode}`);
  const { data } = JSON.parse(sent.toString('utf8')) as { data?: unknown };
  if (!Array.isArray(data)) throw new Error(`upstream ${name} sent no list of models`);
  return data.filter((model): model is Model => typeof model?.id === 'string');
}

export async function listModels(route: string, upstreams: Upstreams, response: ServerResponse): Promise<void> {
  const answers = await Promise.allSettled(upstreams.names.map((name) => modelsOf(upstreams, name)));
  const models = new Map<string, Model>();
  for (const answer of answers)
    if (answer.status === 'fulfilled')
      for (const model of answer.value) if (!models.has(model.id)) models.set(model.id, model);
  const failures = answers.flatMap((a) => (a.status === 'rejected' ? [String((a.reason as Error).message)] : []));
  if (models.size === 0 && failures.length > 0) {
    const message = `No upstream listed its models: ${failures.join('; ')}`;
    sendJson(response, 502, openaiErrors.body(502, 'upstream_unreachable', message));
    return;
  }
  if (route === '/models') {
    sendJson(response, 200, { object: 'list', data: [...models.values()] });
    return;
  }
  const id = decodeSegment(route.slice('/models/'.length));
  const model = models.get(id);
  const missing = `No upstream has a model ${JSON.stringify(id.slice(0, 100))}.`;
  if (model) sendJson(response, 200, model);
  else sendJson(response, 404, openaiErrors.body(404, 'model_not_found', missing));
}
