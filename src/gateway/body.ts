/**
 * Reads a request's body into memory, within its own bound (also after gzip) and within what the gateway may hold in all.
 * What is too much is refused as soon as it is known to be, and what still comes of it is thrown away, so that the caller
 * gets to see the answer instead of a reset connection. Time is upload.ts's business.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { RequestError } from '../errors.ts';
import { overloaded } from './admit.ts';
import type { Claim } from './budget.ts';
import { type Coding, codingOf, expander } from './coding.ts';
import { largeBytes, Scan } from './scan.ts';

/** `scan` is there for a body that is too large to be parsed here. */
export type ReadBody = { readonly bytes: Buffer; readonly scan: Scan | null };

export function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
  claim: Claim,
): Promise<ReadBody> {
  const { expect, 'content-encoding': encoding, 'content-length': length } = request.headers;
  const coding = codingOf(encoding);
  const stated = Number(length ?? 0);
  if (coding === undefined) return refused(request, unknownCoding(encoding!));
  if (stated > maxBytes) return refused(request, tooLarge(`${(stated / 1048576).toFixed(1)} MB`, maxBytes));
  if (!claim.fits(stated)) return refused(request, full());
  if (expect !== undefined) response.writeContinue();
  return new Promise((resolve, reject) => {
    const reading = new Reading(maxBytes, claim, resolve, reject);
    if (coding === null) {
      request.on('data', (chunk: Buffer) => reading.data(chunk));
      request.on('end', () => reading.end());
    } else expand(request, coding, reading);
    // A request that breaks off says so only to those who listen for it, and closes in any case.
    request.on('close', () => {
      // Every request closes; making an error for each cost more than anything else in this file.
      if (!request.readableEnded && !reading.isOver)
        reading.refuse(new RequestError(400, 'incomplete_body', 'The connection closed before the body was complete.'));
    });
  });
}

function expand(request: IncomingMessage, coding: Coding, reading: Reading): void {
  const plain = request.pipe(expander(coding));
  const drop = () => {
    request.unpipe(plain).resume();
    plain.destroy();
  };
  plain.on('data', (chunk: Buffer) => {
    reading.data(chunk);
    if (reading.isOver) drop();
  });
  plain.on('end', () => reading.end());
  plain.on('error', (error: Error) => {
    reading.refuse(new RequestError(400, 'invalid_encoding', `The body is not ${coding}: ${error.message}.`));
    drop();
  });
  request.on('close', () => {
    if (!request.readableEnded) plain.destroy();
  });
}

class Reading {
  isOver = false;
  readonly #maxBytes: number;
  readonly #claim: Claim;
  readonly #resolve: (body: ReadBody) => void;
  readonly #reject: (error: RequestError) => void;
  #chunks: Buffer[] = [];
  #size = 0;
  #scan: Scan | null = null;

  constructor(
    maxBytes: number,
    claim: Claim,
    resolve: (body: ReadBody) => void,
    reject: (error: RequestError) => void,
  ) {
    this.#maxBytes = maxBytes;
    this.#claim = claim;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  data(chunk: Buffer): void {
    if (this.isOver) return;
    this.#size += chunk.length;
    if (this.#size > this.#maxBytes) this.refuse(tooLarge(`more than ${this.#maxBytes / 1048576} MB`, this.#maxBytes));
    else if (!this.#claim.take(chunk.length)) this.refuse(full());
    else {
      this.#chunks.push(chunk);
      if (this.#size > largeBytes) this.#look(chunk);
    }
  }

  #look(chunk: Buffer): void {
    try {
      if (this.#scan !== null) this.#scan.feed(chunk);
      else {
        this.#scan = new Scan();
        for (const piece of this.#chunks) this.#scan.feed(piece);
      }
    } catch (error) {
      this.refuse(error as RequestError);
    }
  }

  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    const chunks = this.#chunks;
    this.#resolve({ bytes: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks), scan: this.#scan });
  }

  refuse(error: RequestError): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#chunks = [];
    this.#reject(error);
  }
}

function refused(request: IncomingMessage, error: RequestError): Promise<never> {
  request.resume();
  return Promise.reject(error);
}

const full = () => overloaded('The memory for requests in flight is used up.');

const tooLarge = (size: string, max: number) =>
  new RequestError(413, 'body_too_large', `The request body is ${size}; at most ${max / 1048576} MB are accepted.`);

const unknownCoding = (given: string) =>
  new RequestError(
    415,
    'unsupported_encoding',
    `Content-Encoding ${given.slice(0, 40)} is not accepted; send plain JSON, gzip, deflate or br.`,
  );
