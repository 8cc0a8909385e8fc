/** The document of all routes, each with the role it needs. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import { version } from '../version.ts';
import type { ApiEnv } from './declare.ts';
import { needOfRoute } from './roles.ts';

export function documentOf(app: Pick<OpenAPIHono<ApiEnv>, 'getOpenAPI31Document'>) {
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'Pawl', version, description: 'What Pawl recorded, who may come in, and how it is.' },
  });
  for (const [path, item] of Object.entries(document.paths ?? {}))
    for (const [method, operation] of Object.entries(item as Record<string, Record<string, unknown>>)) {
      const need = needOfRoute(`${method.toUpperCase()} ${path}`);
      if (need) operation['x-pawl-role'] = need.role;
    }
  return document;
}
