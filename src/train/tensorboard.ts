/**
 * A run's figures as TensorBoard reads them: an event file beside metrics.jsonl, one record per step. Written by hand, because what
 * writes them elsewhere is Python or a copy of TensorFlow: a record is its length, the event, and a checksum of each.
 *
 * The same steps give the same bytes, so a run that is resumed writes the file again from what is stored and goes on, whatever was cut off.
 */
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StepMetrics } from './metrics.ts';
import { scalarsOf } from './scalars.ts';

const table = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? (c >>> 1) ^ 0x82f63b78 : c >>> 1;
  return c;
});

/** CRC-32C (Castagnoli). */
export function crc32c(bytes: Uint8Array): number {
  let c = 0xffffffff;
  for (const byte of bytes) c = (c >>> 8) ^ table[(c ^ byte) & 0xff]!;
  return (c ^ 0xffffffff) >>> 0;
}

/** Turned and shifted, so that a checksum of data that holds checksums is no weaker. */
const masked = (crc: number): number => (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};

function recordOf(event: Buffer): Buffer {
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(event.length));
  return Buffer.concat([length, uint32(masked(crc32c(length))), event, uint32(masked(crc32c(event)))]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left > 127; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  return Buffer.from([...bytes, left]);
}
/** Fields of protobuf: 1 is 8 bytes, 2 is counted bytes, 5 is 4 bytes. */
const field = (number: number, type: 0 | 1 | 2 | 5): Buffer => varint(number * 8 + type);
const counted = (number: number, bytes: Buffer): Buffer =>
  Buffer.concat([field(number, 2), varint(bytes.length), bytes]);
const double = (number: number, value: number): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return Buffer.concat([field(number, 1), bytes]);
};
const float = (number: number, value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return Buffer.concat([field(number, 5), bytes]);
};

const begin = (seconds: number): Buffer =>
  recordOf(Buffer.concat([double(1, seconds), counted(3, Buffer.from('brain.Event:2'))]));

const stepRecord = (seconds: number, metrics: StepMetrics): Buffer => {
  const summary = scalarsOf(metrics).map(([tag, value]) =>
    counted(1, Buffer.concat([counted(1, Buffer.from(tag)), float(2, value)])),
  );
  return recordOf(
    Buffer.concat([double(1, seconds), field(2, 0), varint(metrics.step), counted(5, Buffer.concat(summary))]),
  );
};

export type EventFile = { append(metrics: StepMetrics): void };

/** `createdAt`: of the run; times in the file are that and the seconds its steps took. */
export function openEventFile(folder: string, createdAt: number, done: readonly StepMetrics[]): EventFile {
  const path = join(folder, `events.out.tfevents.${Math.floor(createdAt / 1000)}.pawl`);
  let seconds = createdAt / 1000;
  const recorded = (metrics: StepMetrics): Buffer => {
    seconds += metrics.values.seconds ?? 0;
    return stepRecord(seconds, metrics);
  };
  writeFileSync(path, Buffer.concat([begin(seconds), ...done.map(recorded)]));
  return { append: (metrics) => appendFileSync(path, recorded(metrics)) };
}
