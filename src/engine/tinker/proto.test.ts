import { expect, test } from 'vitest';
import { protoResult } from './fixtures/stand-in-proto.ts';
import { decodePass, decodeSample, encodePass } from './proto.ts';
import { floats, integers } from './wire.ts';

/** What tinker 0.25.0 (Python) serialises for the request below. */
const recorded =
  '0a016d10ac021a540a0c0a0a0a08010000000200000012280a0d7461726765745f746f6b656e7312170a10020000000000000003000000000000001802220102121a0a0777656967687473120f0a080000003f000080bf18012201022205636973706f2a1d0a12636c69705f6c6f775f7468726573686f6c6411000000000000f03f2a1e0a13636c69705f686967685f7468726573686f6c6411000000000000f03f3001';

test('a request is the bytes that the official client writes', () => {
  const bytes = encodePass('forward', 'm', 300, {
    loss_fn: 'cispo',
    loss_fn_config: { clip_low_threshold: 1, clip_high_threshold: 1 },
    data: [
      {
        model_input: { chunks: [{ type: 'encoded_text', tokens: [1, 2] }] },
        loss_fn_inputs: { target_tokens: integers([2, 3]), weights: floats([0.5, -1]) },
      },
    ],
  });
  expect(bytes.toString('hex')).toBe(recorded);
});

test('results are read as the JSON of older servers, but for arrays of machine numbers', () => {
  const pass = { loss_fn_outputs: [{ logprobs: { data: [-0.5, -2] } }, { logprobs: { data: [-0.25] } }] };
  expect(decodePass(protoResult(pass)!)).toEqual({
    loss_fn_outputs: [
      { logprobs: { data: Float32Array.of(-0.5, -2) } },
      { logprobs: { data: Float32Array.of(-0.25) } },
    ],
  });
  const sequence = { tokens: [5, 70000], logprobs: [-1, -0.5], stop_reason: 'length' };
  expect(decodeSample(protoResult({ sequences: [sequence], prompt_logprobs: [null, -3] })!)).toEqual({
    sequences: [{ ...sequence, tokens: Int32Array.of(5, 70000), logprobs: Float32Array.of(-1, -0.5) }],
    prompt_logprobs: Float32Array.of(Number.NaN, -3),
  });
});

test('a message that is cut off, or says more than it holds, is refused', () => {
  const whole = protoResult({ loss_fn_outputs: [{ logprobs: { data: [-1, -2, -3] } }] })!;
  for (let size = 1; size < whole.length; size++) {
    const cut = () => decodePass(whole.subarray(0, size));
    // At the end of a field a shorter message is a message too; it must still hold no more than it has.
    try {
      expect(JSON.stringify(cut()).length).toBeLessThan(100);
    } catch (error) {
      expect((error as Error).message).toMatch(/no protobuf|are of type/);
    }
  }
  expect(() => decodePass(Buffer.from([0x12, 0xff, 0xff, 0xff, 0xff, 0x7f]))).toThrow(/ends before it should/);
  expect(() => decodeSample(Buffer.alloc(12, 0xff))).toThrow(/ends before it should/);
});
