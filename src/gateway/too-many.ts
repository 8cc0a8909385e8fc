/** More than is taken now; says when to come again. */
import { RequestError } from '../errors.ts';

export class TooMany extends RequestError {
  readonly retryAfterMs: number;
  constructor(status: number, code: string, message: string, retryAfterMs: number) {
    super(status, code, message);
    this.retryAfterMs = retryAfterMs;
  }
}
