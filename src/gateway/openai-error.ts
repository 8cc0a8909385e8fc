/** Errors in the shape OpenAI's clients understand. */
import type { ServerResponse } from 'node:http';

export type ErrorBody = {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: null;
    readonly code: string | null;
  };
};

const typeOf = (status: number): string => {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  if (status === 404) return 'not_found_error';
  if (status === 429) return 'rate_limit_error';
  return status < 500 ? 'invalid_request_error' : 'server_error';
};

export const errorBody = (status: number, code: string, message: string): ErrorBody => ({
  error: { message, type: typeOf(status), param: null, code },
});

/** True when a server's error answer already has the shape, so that it can pass unchanged. */
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

export const sendError = (
  response: ServerResponse,
  status: number,
  code: string,
  message: string,
  headers: Record<string, string> = {},
): void => sendJson(response, status, errorBody(status, code, message), headers);
