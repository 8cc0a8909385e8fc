/** Errors in the shape that the caller's client understands: OpenAI's, or Anthropic's below /v1/messages. */
import type { ServerResponse } from 'node:http';

export type ErrorShape = {
  body(status: number, code: string, message: string): object;
  /** Ends a stream whose answer broke off between events. */
  event(status: number, code: string, message: string): string;
};

const typeOf = (status: number): string => {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  if (status === 404) return 'not_found_error';
  if (status === 429) return 'rate_limit_error';
  return status < 500 ? 'invalid_request_error' : 'server_error';
};

export const openaiErrors: ErrorShape = {
  body: (status, code, message) => ({ error: { message, type: typeOf(status), param: null, code } }),
  event: (status, code, message) => `data: ${JSON.stringify(openaiErrors.body(status, code, message))}\n\n`,
};

const responsesErrors: ErrorShape = {
  body: openaiErrors.body,
  event: (_status, code, message) =>
    `event: error\ndata: ${JSON.stringify({ type: 'error', code, message, param: null })}\n\n`,
};

const anthropicTypeOf = (status: number): string => {
  if (status === 413) return 'request_too_large';
  if (status === 503 || status === 529) return 'overloaded_error';
  if (status === 504) return 'timeout_error';
  return status < 500 ? typeOf(status) : 'api_error';
};

const anthropicErrors: ErrorShape = {
  body: (status, code, message) => ({
    type: 'error',
    error: { type: anthropicTypeOf(status), message, code },
  }),
  event: (status, code, message) =>
    `event: error\ndata: ${JSON.stringify(anthropicErrors.body(status, code, message))}\n\n`,
};

export function errorShapeOf(route: string): ErrorShape {
  if (route.startsWith('/messages')) return anthropicErrors;
  return route.startsWith('/responses') ? responsesErrors : openaiErrors;
}

/** True when a server's error answer already has the shape, so that it can pass unchanged. Both shapes have `error`. */
export function isErrorBody(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && 'error' in value && value.error !== null;
  } catch {
    return false;
  }
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  if (response.headersSent || response.destroyed) return;
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}
