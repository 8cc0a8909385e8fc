import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { StepMetrics } from './metrics.ts';
import { crc32c, openEventFile } from './tensorboard.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-events-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const at = Date.UTC(2026, 0, 31);
const step = (n: number): StepMetrics => ({
  ...{ step: n, stage: 'grpo', stageStep: n, values: { reward_mean: n / 4, seconds: 2 } },
  taskTypes: { refund: { reward: 0.5, success: 1, attempts: 4 } },
});
const bytes = () => readFileSync(join(folder, readdirSync(folder)[0]!));

type Field = { readonly number: number; readonly value: number | Buffer };

/** Protobuf, as far as events go. */
function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = [];
  for (let i = 0; i < message.length; ) {
    const varint = () => {
      let value = 0;
      for (let shift = 0; ; shift += 7) {
        const byte = message[i++]!;
        value += (byte & 127) * 2 ** shift;
        if (byte < 128) return value;
      }
    };
    const tag = varint();
    const take = (n: number) => {
      i += n;
      return message.subarray(i - n, i);
    };
    const type = tag % 8;
    const value =
      type === 0 ? varint() : type === 1 ? take(8).readDoubleLE() : type === 5 ? take(4).readFloatLE() : take(varint());
    fields.push({ number: Math.floor(tag / 8), value });
  }
  return fields;
}

/** Records with their checksums checked. */
function eventsOf(file: Buffer): Field[][] {
  const unmask = (m: number) => {
    const turned = (m - 0xa282ead8) >>> 0;
    return ((turned >>> 17) | (turned << 15)) >>> 0;
  };
  const events: Field[][] = [];
  for (let i = 0; i < file.length; ) {
    const length = Number(file.readBigUInt64LE(i));
    expect(unmask(file.readUInt32LE(i + 8))).toBe(crc32c(file.subarray(i, i + 8)));
    const data = file.subarray(i + 12, i + 12 + length);
    expect(unmask(file.readUInt32LE(i + 12 + length))).toBe(crc32c(data));
    events.push(fieldsOf(data));
    i += 16 + length;
  }
  return events;
}
const get = (event: Field[], number: number) => event.find((one) => one.number === number)?.value;
const scalars = (event: Field[]) =>
  Object.fromEntries(
    fieldsOf(get(event, 5) as Buffer).map(({ value }) => {
      const [tag, number] = fieldsOf(value as Buffer);
      return [String(tag!.value), number!.value];
    }),
  );

test('the checksum is the one of Castagnoli', () => {
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283);
});

test('every step is a record with its number, its time and its figures', () => {
  const file = openEventFile(folder, at, []);
  file.append(step(0));
  file.append(step(300));
  const [version, first, second] = eventsOf(bytes());
  expect(String(get(version!, 3))).toBe('brain.Event:2');
  expect(get(first!, 1)).toBe(at / 1000 + 2);
  expect(get(second!, 2)).toBe(300);
  expect(get(second!, 1)).toBe(at / 1000 + 4);
  expect(scalars(second!)).toEqual({
    'grpo/reward_mean': 75,
    'grpo/seconds': 2,
    'task types/refund reward': 0.5,
    'task types/refund success': 1,
  });
});

test('a run that goes on writes the same bytes again, without what was cut off', () => {
  const whole = openEventFile(folder, at, []);
  for (const n of [0, 1, 2]) whole.append(step(n));
  const before = bytes();
  const resumed = openEventFile(folder, at, [step(0), step(1)]); // killed in step 2
  expect(bytes().equals(before.subarray(0, bytes().length))).toBe(true);
  resumed.append(step(2));
  expect(bytes().equals(before)).toBe(true);
  expect(readdirSync(folder)).toEqual([`events.out.tfevents.${at / 1000}.pawl`]);
});
