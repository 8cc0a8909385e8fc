/**
 * A place that is a bucket on S3, or on a server that speaks as S3 does. A file goes up in parts, a few at a time, so memory is
 * bounded whatever its size; it appears when the last part is confirmed. It comes down as a stream that is taken up again
 * where it broke off. Every request is tried a few times, each time with a limit, and then it is an error: nothing waits for ever.
 *
 * By hand and not with the SDK's own retries and @aws-sdk/lib-storage: neither has a limit for a server that accepts a
 * connection and falls silent in the middle of a body.
 */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { S3Client } from '@aws-sdk/client-s3';
import { ArtifactError } from '../errors.ts';
import { changed, checkKey, missing, type Place, type Source, type Stored } from './place.ts';
import { partsOf } from './s3-parts.ts';

export type S3Settings = {
  readonly bucket: string;
  readonly prefix: string;
  readonly region?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly forcePathStyle?: boolean | undefined;
};

export type S3Limits = {
  /** Times that one request is tried. */
  readonly attempts: number;
  /** For a request without much of a body; a part gets more, by its size. */
  readonly answerMs: number;
  /** Slowest upload that is waited for. */
  readonly bytesPerSecond: number;
  /** Without a byte for this long a download counts as broken off. */
  readonly silenceMs: number;
  readonly partBytes: number;
  readonly partsAtOnce: number;
};

export const s3Limits: S3Limits = {
  attempts: 5,
  answerMs: 20_000,
  bytesPerSecond: 256 * 1024,
  silenceMs: 30_000,
  partBytes: 16 * 1024 * 1024,
  partsAtOnce: 3,
};

type Sdk = typeof import('@aws-sdk/client-s3');
type Failure = { readonly name?: string; readonly $metadata?: { readonly httpStatusCode?: number } };

const statusOf = (error: unknown): number | undefined => (error as Failure).$metadata?.httpStatusCode;
const isMissing = (error: unknown): boolean =>
  statusOf(error) === 404 && !/NoSuchBucket/.test((error as Failure).name ?? '');
/** The server said no, and will say so again. */
const isFinal = (error: unknown): boolean => {
  const status = statusOf(error);
  if (status === undefined) return /Credentials/.test((error as Failure).name ?? '');
  return status >= 400 && status < 500 && ![408, 409, 425, 429].includes(status);
};

export function s3Place(settings: S3Settings, limits: S3Limits = s3Limits): Place {
  const { bucket, prefix } = settings;
  const name = `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}`;
  const keyOf = (key: string) => (prefix === '' ? checkKey(key) : `${prefix}/${checkKey(key)}`);
  let opened: Promise<{ sdk: Sdk; client: S3Client }> | null = null;

  const connect = () => {
    // Which Node Pawl runs on is between Pawl and its user; the SDK says so on every start.
    process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
    opened ??= import('@aws-sdk/client-s3').then((sdk) => {
      const { region, endpoint = process.env.AWS_ENDPOINT_URL_S3 ?? process.env.AWS_ENDPOINT_URL } = settings;
      // Servers of one's own are rarely reached by a name for each bucket.
      const forcePathStyle = settings.forcePathStyle ?? endpoint !== undefined;
      const client = new sdk.S3Client({
        maxAttempts: 1,
        forcePathStyle,
        // A server of one's own has no regions, and the SDK wants one to sign with.
        ...(region !== undefined
          ? { region }
          : endpoint !== undefined && !process.env.AWS_REGION
            ? { region: 'us-east-1' }
            : {}),
        ...(endpoint === undefined ? {} : { endpoint }),
        // Not every server knows the newer checksums; what is read is checked by SHA-256 anyway.
        requestChecksumCalculation: 'WHEN_REQUIRED',
        responseChecksumValidation: 'WHEN_REQUIRED',
        requestHandler: { connectionTimeout: 5_000 },
      });
      return { sdk, client };
    });
    return opened;
  };

  /** The call, tried again where that can help. */
  async function attempt<T>(
    doing: string,
    call: (sdk: Sdk, client: S3Client, signal: AbortSignal) => Promise<T>,
    { bytes = 0, signal }: { readonly bytes?: number; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<T> {
    const ms = limits.answerMs + (bytes / limits.bytesPerSecond) * 1000;
    for (let tried = 1; ; tried++) {
      signal?.throwIfAborted();
      const limit = new AbortController();
      const stop = () => limit.abort(signal?.reason);
      signal?.addEventListener('abort', stop, { once: true });
      const late = new ArtifactError(`no answer within ${Math.round(ms / 1000)} s`, { retryable: true });
      const timer = setTimeout(() => limit.abort(late), ms);
      try {
        const { sdk, client } = await connect();
        // Looking for credentials asks other servers and knows no signal; so the limit is held here too.
        return await Promise.race([call(sdk, client, limit.signal), aborted(limit.signal)]);
      } catch (error) {
        signal?.throwIfAborted();
        if (isMissing(error)) throw error;
        const cause = limit.signal.aborted ? late : error;
        if (tried >= limits.attempts || isFinal(error)) throw failed(doing, cause, tried);
        await sleep(Math.random() * Math.min(5_000, 100 * 2 ** tried), undefined, { signal });
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener('abort', stop);
      }
    }
  }

  function failed(doing: string, cause: unknown, tried: number): ArtifactError {
    if (cause instanceof ArtifactError && !cause.retryable) return cause;
    const { name: kind, message } = cause as Error;
    const why = message && message !== 'UnknownError' ? message : kind;
    const status = statusOf(cause);
    const way =
      status === 403 || /Credentials/.test(kind)
        ? ' Credentials come from where the AWS SDK looks for them: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the role of the machine.'
        : ' `pawl doctor` tries the store.';
    return new ArtifactError(
      `${doing} in ${name} failed${tried > 1 ? ` ${tried} times` : ''}: ${why}${status === undefined ? '' : ` (${status})`}.${way}`,
      // Not the SDK's own error: it holds the whole request, with headers that belong in no log.
      { cause: new Error(`${kind}: ${message}`), retryable: !isFinal(cause) },
    );
  }

  async function writeWhole(key: string, source: Source, signal?: AbortSignal): Promise<void> {
    const bytes = source.size === 0 ? Buffer.alloc(0) : await source.read(0, source.size);
    if (createHash('sha256').update(bytes).digest('hex') !== source.sha256) throw changed(key);
    const input = { Bucket: bucket, Key: keyOf(key), Body: bytes, ContentLength: bytes.length };
    await attempt(
      `Writing ${key}`,
      (sdk, client, abortSignal) => client.send(new sdk.PutObjectCommand(input), { abortSignal }),
      { bytes: source.size, signal },
    );
  }

  async function writeParts(key: string, source: Source, signal?: AbortSignal): Promise<void> {
    const at = { Bucket: bucket, Key: keyOf(key) };
    const { UploadId } = await attempt(
      `Writing ${key}`,
      (sdk, client, abortSignal) => client.send(new sdk.CreateMultipartUploadCommand(at), { abortSignal }),
      { signal },
    );
    try {
      const digest = createHash('sha256');
      const done: { PartNumber: number; ETag: string | undefined }[] = [];
      const underWay = new Set<Promise<void>>();
      let broken: { error: unknown } | null = null;
      for (const { number, start, length } of partsOf(source.size, limits.partBytes)) {
        if (broken !== null) break;
        signal?.throwIfAborted();
        const Body = await source.read(start, length);
        digest.update(Body);
        const part = { ...at, UploadId, PartNumber: number, Body, ContentLength: length };
        const sending = attempt(
          `Writing part ${number} of ${key}`,
          (sdk, client, abortSignal) => client.send(new sdk.UploadPartCommand(part), { abortSignal }),
          { bytes: length * limits.partsAtOnce, signal },
        ).then(
          ({ ETag }) => void done.push({ PartNumber: number, ETag }),
          (error: unknown) => {
            broken ??= { error };
          },
        );
        underWay.add(sending);
        void sending.finally(() => underWay.delete(sending));
        if (underWay.size >= limits.partsAtOnce) await Promise.race(underWay);
      }
      await Promise.all(underWay);
      if (broken !== null) throw (broken as { error: unknown }).error;
      if (digest.digest('hex') !== source.sha256) throw changed(key);
      const MultipartUpload = { Parts: done.sort((a, b) => a.PartNumber - b.PartNumber) };
      await attempt(
        `Writing ${key}`,
        (sdk, client, abortSignal) =>
          client.send(new sdk.CompleteMultipartUploadCommand({ ...at, UploadId, MultipartUpload }), { abortSignal }),
        { signal },
      );
    } catch (error) {
      // The parts cost money until somebody throws them away; a rule of the bucket does where we cannot.
      await attempt(`Giving up ${key}`, (sdk, client, abortSignal) =>
        client.send(new sdk.AbortMultipartUploadCommand({ ...at, UploadId }), { abortSignal }),
      ).catch(() => {});
      throw error;
    }
  }

  return {
    name,
    folder: null,
    write: (key, source, signal) =>
      source.size <= limits.partBytes ? writeWhole(key, source, signal) : writeParts(key, source, signal),
    async *read(key, signal) {
      const Key = keyOf(key);
      let at = 0;
      let etag: string | undefined;
      for (let broken = 0; ; ) {
        const range = at === 0 ? {} : { Range: `bytes=${at}-`, IfMatch: etag };
        const stop = new AbortController();
        const { Body, ETag } = await attempt(
          `Reading ${key}`,
          (sdk, client, limit) =>
            client.send(new sdk.GetObjectCommand({ Bucket: bucket, Key, ...range }), {
              abortSignal: AbortSignal.any([limit, stop.signal]),
            }),
          { signal },
        ).catch((error: unknown) => {
          throw isMissing(error) ? missing(key, name, error) : error;
        });
        etag ??= ETag;
        try {
          for await (const chunk of unsilent(Body as AsyncIterable<Buffer>, limits.silenceMs, stop, signal)) {
            at += chunk.length;
            broken = 0;
            yield chunk;
          }
          return;
        } catch (error) {
          signal?.throwIfAborted();
          if (++broken >= limits.attempts) throw failed(`Reading ${key}`, error, broken);
          await sleep(Math.random() * 100 * 2 ** broken, undefined, { signal });
        } finally {
          stop.abort();
        }
      }
    },
    async stat(key) {
      try {
        const found = await attempt(`Looking for ${key}`, (sdk, client, abortSignal) =>
          client.send(new sdk.HeadObjectCommand({ Bucket: bucket, Key: keyOf(key) }), { abortSignal }),
        );
        return { key, size: found.ContentLength ?? 0, at: found.LastModified?.getTime() ?? 0 };
      } catch (error) {
        if (isMissing(error)) return null;
        throw error;
      }
    },
    async remove(key) {
      await attempt(`Removing ${key}`, (sdk, client, abortSignal) =>
        client.send(new sdk.DeleteObjectCommand({ Bucket: bucket, Key: keyOf(key) }), { abortSignal }),
      ).catch((error: unknown) => {
        if (!isMissing(error)) throw error;
      });
    },
    async *list(begin): AsyncGenerator<Stored> {
      const whole = prefix === '' ? begin : `${prefix}/${begin}`;
      const skipped = prefix === '' ? 0 : prefix.length + 1;
      let ContinuationToken: string | undefined;
      do {
        const page = await attempt('Listing', (sdk, client, abortSignal) =>
          client.send(new sdk.ListObjectsV2Command({ Bucket: bucket, Prefix: whole, ContinuationToken }), {
            abortSignal,
          }),
        );
        for (const { Key, Size, LastModified } of page.Contents ?? [])
          if (Key !== undefined) yield { key: Key.slice(skipped), size: Size ?? 0, at: LastModified?.getTime() ?? 0 };
        ContinuationToken = page.IsTruncated ? page.NextContinuationToken : undefined;
      } while (ContinuationToken !== undefined);
    },
    async close() {
      const was = opened;
      opened = null;
      (await was?.catch(() => null))?.client.destroy();
    },
  };
}

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));

/** The stream; an error once it has been silent for so long. */
async function* unsilent(
  body: AsyncIterable<Buffer>,
  silenceMs: number,
  stop: AbortController,
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer> {
  const chunks = body[Symbol.asyncIterator]();
  for (;;) {
    signal?.throwIfAborted();
    let timer: NodeJS.Timeout | undefined;
    const silent = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no byte came for ${Math.round(silenceMs / 1000)} s`)), silenceMs);
    });
    try {
      const next = await Promise.race([chunks.next(), silent]);
      if (next.done) return;
      yield next.value;
    } catch (error) {
      stop.abort();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}
