import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createArtifacts } from '../src/artifacts/artifacts.ts';
import { artifactConformance } from '../src/artifacts/conformance.ts';
import { bytesSource } from '../src/artifacts/place.ts';
import { type S3Settings, s3Limits, s3Place } from '../src/artifacts/s3-place.ts';
import { withStore } from '../src/store/test-store.ts';
import { type S3Server, s3Missing, startS3 } from './s3-server.ts';
import { workOnThree } from './two-machines.ts';

const leftOut = s3Missing === null ? '' : ` (left out: ${s3Missing})`;

describe.skipIf(s3Missing !== null)(`artifacts on a real S3 server${leftOut}`, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'pawl-s3-'));
  let server: S3Server;
  beforeAll(async () => {
    server = await startS3(scratch);
    Object.assign(process.env, server.env);
  });
  afterAll(async () => {
    await server.stop();
    rmSync(scratch, { recursive: true, force: true });
  });

  let made = 0;
  const partBytes = 5 * 1024 * 1024; // the least that S3 takes
  const checks = artifactConformance(async () => {
    const at = join(scratch, String(++made));
    mkdirSync(at, { recursive: true });
    const { bucket, endpoint } = server;
    const settings = { bucket, prefix: `check/${made}`, endpoint };
    return { open: () => s3Place(settings, { ...s3Limits, partBytes }), partBytes, scratch: at };
  });
  for (const { name, run } of checks) it(name, run);

  it('machines that share a database and a bucket, and no disk, curate, train and serve for each other', async () => {
    const { bucket, endpoint, env } = server;
    const store = await withStore();
    await workOnThree(scratch, store, `s3://${bucket}/pawl`, { ...env, AWS_ENDPOINT_URL_S3: endpoint });
  });

  it('is an error with the way out where the bucket, the key or the server is another, and never a wait without an end', async () => {
    const { bucket, endpoint } = server;
    const limits = { ...s3Limits, attempts: 2, answerMs: 500 };
    const probe = async (settings: Partial<S3Settings>) => {
      const place = s3Place({ bucket, prefix: '', endpoint, ...settings }, limits);
      const artifacts = createArtifacts({ place, home: scratch, cacheBytes: 1 });
      try {
        await artifacts.probe();
      } finally {
        await artifacts.close();
      }
    };
    await expect(probe({ bucket: 'another' })).rejects.toThrow(/s3:\/\/another failed: .*\(404\)/);
    await expect(probe({ endpoint: 'http://127.0.0.1:1' })).rejects.toThrow(/failed 2 times: .*ECONNREFUSED/);
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const port = (silent.address() as AddressInfo).port;
    await expect(probe({ endpoint: `http://127.0.0.1:${port}` })).rejects.toThrow(/failed 2 times: no answer within/);
    silent.close();
    silent.closeAllConnections();
    const { AWS_SECRET_ACCESS_KEY } = process.env;
    process.env.AWS_SECRET_ACCESS_KEY = 'wrong';
    try {
      await expect(probe({})).rejects.toThrow(/\(403\)\. Credentials come from/);
    } finally {
      process.env.AWS_SECRET_ACCESS_KEY = AWS_SECRET_ACCESS_KEY;
    }
  });

  it('a download that breaks off goes on where it was', async () => {
    const { bucket, endpoint } = server;
    const upstream = new URL(endpoint);
    let cuts = 0;
    // Between the two: every answer longer than this is cut there, three times.
    const between = createTcpServer((client) => {
      const there = connect(Number(upstream.port), upstream.hostname);
      let passed = 0;
      client.pipe(there);
      there.on('data', (chunk: Buffer) => {
        passed += chunk.length;
        client.write(chunk);
        if (passed < 300_000 || cuts >= 3) return;
        cuts++;
        client.destroy();
        there.destroy();
      });
      for (const [one, other] of [
        [client, there],
        [there, client],
      ] as const)
        one.on('error', () => other.destroy()).on('close', () => other.destroy());
    }).listen(0, '127.0.0.1');
    await once(between, 'listening');
    const direct = s3Place({ bucket, prefix: 'cut', endpoint });
    const bytes = Buffer.alloc(2_000_000, 'pawl ');
    const key = `${bytesSource(bytes).sha256}/file`;
    await direct.write(key, bytesSource(bytes));
    const cut = s3Place({
      bucket,
      prefix: 'cut',
      endpoint: `http://127.0.0.1:${(between.address() as AddressInfo).port}`,
    });
    const back: Buffer[] = [];
    for await (const chunk of cut.read(key)) back.push(chunk);
    expect(Buffer.concat(back).equals(bytes)).toBe(true);
    expect(cuts).toBe(3);
    await cut.close();
    await direct.close();
    between.close();
  });
});
