/** What declarations of routes share: a router that says what is wrong with a request, answers as JSON, refusals. */
import { OpenAPIHono, type z } from '@hono/zod-openapi';
import * as shape from './schema.ts';

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
  401: problem('The admin token is missing or wrong.'),
  403: problem('The request comes from a page of another site.'),
  503: problem('The database is away, or too many are reading; Retry-After says when to try again.'),
};
export const security = [{ admin: [] }];

export const failure = (code: string, message: string) => ({ error: { message, code } });

export const createRouter = () =>
  new OpenAPIHono({
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
