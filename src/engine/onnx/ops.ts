/**
 * The differentiable operations of a decoder, each with its vector-Jacobian product beside it. Some are larger than an ONNX
 * operator (attention, swiglu, the logprob of a target) because their gradient is cheaper as a whole: ONNX Runtime runs
 * every node as one pass over memory, so passes are what costs. ops.test.ts checks each against finite differences.
 */
import { adding, type Graph, type Tensor } from './graph.ts';
import type { Dim } from './proto.ts';

const MS = 'com.microsoft';

const multiply = (g: Graph, a: Tensor, b: Tensor) => g.node('Mul', [a, b], 'float32', a.shape);
const subtract = (g: Graph, a: Tensor, b: Tensor) => g.node('Sub', [a, b], 'float32', a.shape);

/** Same shapes. */
export function add(g: Graph, a: Tensor, b: Tensor): Tensor {
  const y = g.node('Add', [a, b], 'float32', a.shape);
  return g.differentiable(y, [a, b], (dy) => [adding(g, dy), adding(g, dy)]);
}

export function reshape(g: Graph, x: Tensor, shape: readonly Dim[]): Tensor {
  const to = (t: Tensor, target: readonly Dim[]) => g.node('Reshape', [t, g.shapeVector(target)], t.type, target);
  return g.differentiable(to(x, shape), [x], (dy) => [adding(g, to(dy, x.shape))]);
}

export function transpose(g: Graph, x: Tensor, order: readonly number[]): Tensor {
  const permute = (t: Tensor, perm: readonly number[]) => {
    const shape = perm.map((axis) => t.shape[axis]!);
    return g.node('Transpose', [t], t.type, shape, { attributes: { perm: { ints: perm } } });
  };
  const back = order.map((_, axis) => order.indexOf(axis));
  return g.differentiable(permute(x, order), [x], (dy) => [adding(g, permute(dy, back))]);
}

/** alpha · x·wᵀ + plus, with x [n, in], w [out, in], plus [n, out] or, the same for every row, [out]. */
export function linear(g: Graph, x: Tensor, w: Tensor, plus?: Tensor, alpha = 1): Tensor {
  const gemm = (a: Tensor, b: Tensor, c: Tensor | undefined, shape: readonly Dim[], transA: number, transB: number) =>
    g.node('Gemm', c === undefined ? [a, b] : [a, b, c], 'float32', shape, {
      attributes: { alpha: { float: alpha }, transA: { int: transA }, transB: { int: transB } },
    });
  const y = gemm(x, w, plus, [x.shape[0]!, w.shape[0]!], 0, 1);
  return g.differentiable(y, plus === undefined ? [x, w] : [x, w, plus], (dy) => [
    (sum) => gemm(dy, w, sum, x.shape, 0, 0),
    (sum) => gemm(dy, x, sum, w.shape, 1, 0),
    (sum) => adding(g, plus?.shape.length === 1 ? sumOfRows(g, dy) : dy)(sum),
  ]);
}

/** [n, d] → [d] */
function sumOfRows(g: Graph, x: Tensor): Tensor {
  const axes = g.constant('int64', [1], [0]);
  return g.node('ReduceSum', [x, axes], 'float32', [x.shape[1]!], { attributes: { keepdims: { int: 0 } } });
}

/** Rows of a table [n, d] at int64 ids [count, 1]: [count, d]. */
export function embedding(g: Graph, table: Tensor, ids: Tensor): Tensor {
  const [count, d] = [ids.shape[0]!, table.shape[1]!];
  const rows = g.node('GatherND', [table, ids], 'float32', [count, d]);
  return g.differentiable(rows, [table], (dy) => [
    (sum) => {
      const zero = sum ?? multiply(g, table, g.scalar(0));
      return g.node('ScatterND', [zero, ids, dy], 'float32', table.shape, {
        attributes: { reduction: { string: 'add' } },
      });
    },
  ]);
}

/** x / rms(x) · w over the last axis of x [n, d]. */
export function rmsNorm(g: Graph, x: Tensor, w: Tensor, eps: number): Tensor {
  const [n, d] = [x.shape[0]!, w.shape[0] as number];
  const [y, inverse] = g.nodes(
    'SimplifiedLayerNormalization',
    [x, w],
    [
      { type: 'float32', shape: x.shape },
      { type: 'float32', shape: [n, 1] },
    ],
    { attributes: { axis: { int: -1 }, epsilon: { float: eps }, stash_type: { int: 1 } } },
  ) as [Tensor, Tensor];
  // With u = x/rms and p = dy·u: dw = Σ p over rows, and dx = (dy·w − u·mean(p·w)) / rms.
  return g.differentiable(y, [x, w], (dy, [wantX, wantW]) => {
    const unit = multiply(g, x, inverse);
    const p = multiply(g, dy, unit);
    const dx = () => {
      const column = g.node('Reshape', [w, g.constant('int64', [2], [d, 1])], 'float32', [d, 1]);
      const mean = g.node('Gemm', [p, column], 'float32', [n, 1], { attributes: { alpha: { float: 1 / d } } });
      const across = subtract(g, multiply(g, dy, w), multiply(g, unit, mean));
      return multiply(g, across, inverse);
    };
    return [wantX ? adding(g, dx()) : undefined, wantW ? adding(g, sumOfRows(g, p)) : undefined];
  });
}

/** cos and sin of position · frequency, [positions, headDim / 2], and −sin, which turns backwards. */
export type RotaryTables = { readonly cos: Tensor; readonly sin: Tensor; readonly minusSin: Tensor };

/** Rotary positions, rotate-half convention, on every head of x [n, heads · headDim]; positions int64 [n, 1]. */
export function rotary(g: Graph, x: Tensor, positions: Tensor, { cos, sin, minusSin }: RotaryTables): Tensor {
  // As n sequences of one token: the operator wants no sequence longer than its tables.
  const batch = [x.shape[0]!, 1, x.shape[1]!];
  const turn = (t: Tensor, sine: Tensor) => {
    const lifted = g.node('Reshape', [t, g.shapeVector(batch)], 'float32', batch);
    const turned = g.node('RotaryEmbedding', [lifted, positions, cos, sine], 'float32', batch, { domain: MS });
    return g.node('Reshape', [turned, g.shapeVector(x.shape)], 'float32', x.shape);
  };
  return g.differentiable(turn(x, sin), [x], (dy) => [adding(g, turn(dy, minusSin))]);
}

/** up · silu(gate), the MLP's gate. */
export function swiglu(g: Graph, gate: Tensor, up: Tensor): Tensor {
  const sigmoid = g.node('Sigmoid', [gate], 'float32', gate.shape);
  const silu = multiply(g, gate, sigmoid);
  const y = multiply(g, silu, up);
  // silu′ = σ + silu − silu·σ
  return g.differentiable(y, [gate, up], (dy, [wantGate, wantUp]) => {
    const dGate = () => {
      const rest = subtract(g, silu, multiply(g, silu, sigmoid));
      return multiply(g, multiply(g, dy, up), g.node('Add', [sigmoid, rest], 'float32', gate.shape));
    };
    return [wantGate ? adding(g, dGate()) : undefined, wantUp ? adding(g, multiply(g, dy, silu)) : undefined];
  });
}

/**
 * softmax(scale · q·kᵀ + mask)·v with heads that share keys: q [rows, keyHeads, group · length, d], k and v [rows, keyHeads,
 * length, d], mask broadcastable to [rows, heads, length, length]. Query heads of one key head lie behind one another, so
 * one product serves the group and the gradient of k and v sums over it by itself.
 */
export function attention(
  g: Graph,
  q: Tensor,
  k: Tensor,
  v: Tensor,
  mask: Tensor,
  heads: number,
  scale: number,
): Tensor {
  const [rows, length] = [q.shape[0]!, k.shape[2]!];
  const flat = [rows, k.shape[1]!, q.shape[2]!, length];
  const perHead = [rows, heads, length, length];
  const product = (a: Tensor, b: Tensor, shape: readonly Dim[], transA: number, transB: number, alpha = 1) =>
    g.node('FusedMatMul', [a, b], 'float32', shape, {
      domain: MS,
      attributes: { transA: { int: transA }, transB: { int: transB }, alpha: { float: alpha } },
    });
  const view = (t: Tensor, shape: readonly Dim[]) => g.node('Reshape', [t, g.shapeVector(shape)], 'float32', shape);
  const scores = view(product(q, k, flat, 0, 1, scale), perHead);
  const masked = g.node('Add', [scores, mask], 'float32', perHead);
  const p = view(g.node('Softmax', [masked], 'float32', perHead, { attributes: { axis: { int: -1 } } }), flat);
  const y = product(p, v, q.shape, 0, 0);
  return g.differentiable(y, [q, k, v], (dy, [wantQ, wantK, wantV]) => {
    const dv = () => product(p, dy, v.shape, 1, 0);
    if (!wantQ && !wantK) return [undefined, undefined, wantV ? adding(g, dv()) : undefined];
    // Σ p·dp over a row equals Σ dy·y over the head, which is a much smaller sum (FlashAttention, Dao et al. 2022).
    const axes = g.constant('int64', [1], [-1]);
    const rowSum = g.node('ReduceSum', [multiply(g, dy, y), axes], 'float32', [...q.shape.slice(0, 3), 1]);
    const ds = multiply(g, p, subtract(g, product(dy, v, flat, 0, 1), rowSum));
    return [
      wantQ ? adding(g, product(ds, k, q.shape, 0, 0, scale)) : undefined,
      wantK ? adding(g, product(ds, q, k.shape, 1, 0, scale)) : undefined,
      wantV ? adding(g, dv()) : undefined,
    ];
  });
}

/** Logprob of each target, [n, 1], under softmax(logits [n, v]), and the entropy of each row; targets int64 [n, 1]. */
export function targetLogprob(g: Graph, logits: Tensor, targets: Tensor): { logprob: Tensor; entropy: Tensor } {
  const column = [logits.shape[0]!, 1];
  const axis = { axis: { int: 1 } };
  const logp = g.node('LogSoftmax', [logits], 'float32', logits.shape, { attributes: axis });
  const p = g.node('Exp', [logp], 'float32', logits.shape);
  const logprob = g.node('GatherElements', [logp, targets], 'float32', column, { attributes: axis });
  const negative = g.node('ReduceSum', [multiply(g, p, logp), g.constant('int64', [1], [1])], 'float32', column);
  const entropy = g.node('Neg', [negative], 'float32', column);
  // dlogits = dlp · (onehot − p)
  g.differentiable(logprob, [logits], (dy) => {
    const spread = multiply(g, p, g.node('Neg', [dy], 'float32', column));
    const attributes = { ...axis, reduction: { string: 'add' } };
    return [adding(g, g.node('ScatterElements', [spread, targets, dy], 'float32', logits.shape, { attributes }))];
  });
  return { logprob, entropy };
}
