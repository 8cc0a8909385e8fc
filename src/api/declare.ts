/** What declarations of routes share: a router that says what is wrong with a request, answers as JSON, refusals. */
import { OpenAPIHono, type z } from '@hono/zod-openapi';
import * as shape from './schema.ts';
import type { Who } from './who.ts';

/** What the entry (entry.ts) knows of whoever asks. */
export type ApiEnv = { Variables: { who: Who } };

export const json = <T extends z.ZodType>(schema: T, description: string) => ({
  content: { 'application/json': { schema } },
  description,
});
export const body = <T extends z.ZodType>(schema: T, required = true) => ({
  required,
  content: { 'application/json': { schema } },
});
export const problem = (description: string) => json(shape.problemSchema, description);
/** Answers that every guarded route may give. */
export const refusals = {
  400: problem('Something in the request is not acceptable; the message names the field.'),
  401: problem('The token is missing or wrong, or the session has ended.'),
  403: problem('It needs a role that the asker has not, or comes from a page of another site.'),
  503: problem('The database is away, or too many are reading; Retry-After says when to try again.'),
};
export const security = [{ admin: [] }, { session: [] }];

export const failure = (code: string, message: string) => ({ error: { message, code } });

export const createRouter = () =>
  new OpenAPIHono<ApiEnv>({
    defaultHook: (result, c) => {
      if (result.success) return;
      const where = result.target === 'json' ? 'body' : result.target;
      const said = result.error.issues.map((issue) => {
        const field = issue.path.map(String).join('.');
        return `${field === '' ? where : field}: ${issue.message}`;
      });
      return c.json(failure('invalid_request', `${said.slice(0, 10).join('; ')}.`), 400);
    },
  });
