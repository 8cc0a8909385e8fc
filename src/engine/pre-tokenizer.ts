/**
 * The pre-tokenizer of a tokenizer.json, said so that @huggingface/tokenizers cuts text where the reference implementation
 * (github.com/huggingface/tokenizers) does. Its Digits knows ASCII digits only, and its ByteLevel takes JavaScript's idea of
 * white space, which has the byte order mark and lacks U+0085; a pattern of one's own it reads as the reference does. So both
 * become such patterns. What is not known here is left as it is.
 */

/** GPT-2's words: what ByteLevel stands for unless use_regex is false. */
const byteLevelWords = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

type Settings = Readonly<Record<string, unknown>>;

const splitAt = (pattern: string): Settings => ({
  type: 'Split',
  pattern: { Regex: pattern },
  behavior: 'Isolated',
  invert: false,
});

export function asReference(preTokenizer: unknown): unknown {
  if (typeof preTokenizer !== 'object' || preTokenizer === null) return preTokenizer;
  const steps = stepsOf(preTokenizer as Settings);
  return steps.length === 1 ? steps[0] : { type: 'Sequence', pretokenizers: steps };
}

function stepsOf(step: Settings): Settings[] {
  if (step.type === 'Sequence' && Array.isArray(step.pretokenizers)) {
    // One level is all that exists; a list inside a list is the library's to refuse.
    return step.pretokenizers.flatMap((inner: Settings | null) =>
      inner?.type === 'Sequence' || inner === null ? [inner as Settings] : stepsOf(inner),
    );
  }
  if (step.type === 'Digits') return [splitAt(step.individual_digits === true ? '\\p{N}' : '\\p{N}+')];
  // A prefix space is put before the text is cut, so that pair stays together.
  if (step.type === 'ByteLevel' && step.use_regex !== false && step.add_prefix_space === false)
    return [splitAt(byteLevelWords), { ...step, use_regex: false }];
  return [step];
}
