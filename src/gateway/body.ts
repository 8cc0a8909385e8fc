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

export const readBody = (
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
  claim: Claim,
  scanFrom = largeBytes,
): Promise<ReadBody> =>
  new Promise((resolve, reject) =>
    whenRead(request, response, maxBytes, claim, { whole: resolve, refused: reject }, scanFrom),
  );

/** Told once: the body, or why it is not taken. */
export type Reader = { whole(body: ReadBody): void; refused(error: RequestError): void };

/** The same without a promise, for the calls that everybody waits for. */
export function whenRead(
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
  claim: Claim,
  reader: Reader,
  scanFrom = largeBytes,
): void {
  const { expect, 'content-encoding': encoding, 'content-length': length } = request.headers;
  const coding = codingOf(encoding);
  const stated = Number(length ?? 0);
  const refusal = refusalOf(coding, encoding, stated, maxBytes, claim);
  if (coding === undefined || refusal !== null) {
    request.resume();
    reader.refused(refusal!);
    return;
  }
  if (expect !== undefined) response.writeContinue();
  const reading = new Reading(maxBytes, scanFrom, claim, reader);
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
}

/** What is known to be too much, or not readable, before a byte of it has come. */
function refusalOf(
  coding: Coding | null | undefined,
  encoding: string | undefined,
  stated: number,
  maxBytes: number,
  claim: Claim,
): RequestError | null {
  if (coding === undefined) return unknownCoding(encoding!);
  if (stated > maxBytes) return tooLarge(`${(stated / 1048576).toFixed(1)} MB`, maxBytes);
  return claim.fits(stated) ? null : full();
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
  readonly #scanFrom: number;
  readonly #claim: Claim;
  readonly #reader: Reader;
  #chunks: Buffer[] = [];
  #size = 0;
  #scan: Scan | null = null;

  constructor(maxBytes: number, scanFrom: number, claim: Claim, reader: Reader) {
    this.#maxBytes = maxBytes;
    this.#scanFrom = scanFrom;
    this.#claim = claim;
    this.#reader = reader;
  }

  data(chunk: Buffer): void {
    if (this.isOver) return;
    this.#size += chunk.length;
    if (this.#size > this.#maxBytes) this.refuse(tooLarge(`more than ${this.#maxBytes / 1048576} MB`, this.#maxBytes));
    else if (!this.#claim.take(chunk.length)) this.refuse(full());
    else {
      this.#chunks.push(chunk);
      if (this.#size > this.#scanFrom) this.#look(chunk);
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
    this.#reader.whole({ bytes: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks), scan: this.#scan });
  }

  refuse(error: RequestError): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#chunks = [];
    this.#reader.refused(error);
  }
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
