/**
 * What a browser gets on Pawl's port besides data: the dashboard at `/`, the documentation at `/docs`. Where they were not built, as in
 * a clone of the source, a plain page says how.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { root } from '../root.ts';
import { version } from '../version.ts';
import { type Files, openFiles, pageHeaders } from './files.ts';

/** The package holds them there; a clone builds them. */
const built = (name: string): string => fileURLToPath(new URL(`dist/${name}/`, root));

const unbuilt = (what: string, command: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>Pawl</title>
<h1>Pawl ${version}</h1><p>${what} is not built here. Build it: <code>${command}</code>, then load this page again.</p>
<p><a href="/api/openapi.json">/api/openapi.json</a> is the control API, <a href="/metrics">/metrics</a> is for Prometheus, <a href="/healthz">/healthz</a> says how Pawl is.</p></html>\n`;

const sendPage = (request: IncomingMessage, response: ServerResponse, status: number, page: string): void => {
  response.writeHead(status, {
    ...pageHeaders,
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'content-length': Buffer.byteLength(page),
  });
  response.end(request.method === 'HEAD' ? undefined : page);
};

export type Site = {
  /** Whether there was something to send at this path; false: nothing was sent. */
  answer(path: string, request: IncomingMessage, response: ServerResponse): boolean;
};

/** Paths that are never a page's, whatever was built. */
const isData = (path: string): boolean => /^\/(?:v1|t|api|metrics|healthz|readyz)(?:\/|$)/.test(path);

export function openSite(
  dashboard: Files = openFiles(built('dashboard'), { deepLinks: true }),
  docs: Files = openFiles(built('docs-site')),
): Site {
  return {
    answer(path, request, response) {
      if (isData(path) || (request.method !== 'GET' && request.method !== 'HEAD')) return false;
      if (path === '/docs' || path.startsWith('/docs/')) {
        if (docs.answer(path === '/docs' ? '/' : path.slice('/docs'.length), request, response)) return true;
        if (docs.exists()) return false;
        sendPage(request, response, 404, unbuilt('The documentation', 'npm run build'));
        return true;
      }
      if (dashboard.answer(path, request, response)) return true;
      if (dashboard.exists() || path.includes('.')) return false;
      sendPage(request, response, path === '/' ? 200 : 404, unbuilt('The dashboard', 'npm run build'));
      return true;
    },
  };
}
