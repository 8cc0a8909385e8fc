/** W + scale · B·A for a weight [out, in] and an adapter A [rank, in], B [out, rank] (LoRA, Hu et al. 2021). A new array. */
export function addLowRank(
  weight: Float32Array,
  {
    a,
    b,
    rank,
    scale,
  }: { readonly a: Float32Array; readonly b: Float32Array; readonly rank: number; readonly scale: number },
): Float32Array {
  const sum = Float32Array.from(weight);
  const inputs = a.length / rank;
  for (let o = 0; o < b.length / rank; o++)
    for (let r = 0; r < rank; r++) {
      const factor = scale * b[o * rank + r]!;
      for (let i = 0; i < inputs; i++) sum[o * inputs + i]! += factor * a[r * inputs + i]!;
    }
  return sum;
}
