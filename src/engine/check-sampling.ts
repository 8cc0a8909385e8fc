/** What every engine refuses to sample, with the numbers: parameters that mean nothing and prompts that do not fit the model. */
import { EngineError } from '../errors.ts';
import type { Bounds } from './check-training.ts';
import type { SampleParams, Tokens } from './engine.ts';

type Rules = { readonly temperature: number; readonly topP: number; readonly topK: number; readonly minP: number };

/** The rules of drawing, with their defaults. Throws an EngineError that lists every problem. */
export function checkSampling(params: SampleParams, hasText: boolean): Rules {
  const { maxTokens, temperature = 1, topP = 1, topK = 0, minP = 0, n = 1, seed, stop = [] } = params;
  const problems: string[] = [];
  const check = (fine: boolean, problem: string) => void (fine || problems.push(problem));
  const whole = (value: number, least: number) => Number.isSafeInteger(value) && value >= least;
  check(whole(maxTokens, 0), `maxTokens is ${maxTokens}; give a whole number, 0 or more`);
  check(temperature >= 0 && temperature < 1e6, `temperature is ${temperature}; give 0 (greedy) or more`);
  check(topP > 0 && topP <= 1, `topP is ${topP}; give more than 0 and at most 1`);
  check(whole(topK, 0), `topK is ${topK}; give a whole number, 0 for off`);
  check(minP >= 0 && minP <= 1, `minP is ${minP}; give 0 to 1`);
  check(whole(n, 1) && n <= 4096, `n is ${n}; give 1 to 4096`);
  check(seed === undefined || Number.isSafeInteger(seed), `seed is ${seed}; give a whole number`);
  check(!stop.includes(''), 'a stop string is empty; leave it out');
  check(stop.length === 0 || hasText, 'stop strings need a model with a tokenizer; this one has none');
  if (problems.length > 0) throw new EngineError(`These sampling parameters cannot be used: ${problems.join('; ')}.`);
  return { temperature, topP, topK, minP };
}

export function checkPrompt(config: Bounds, prompt: Tokens, index: number, maxTokens: number): void {
  const { vocab_size: vocabulary, max_position_embeddings: context } = config;
  if (prompt.length === 0) throw new EngineError(`Prompt ${index} is empty; the model needs at least one token.`);
  for (const [i, given] of prompt.entries())
    if (!Number.isInteger(given) || given < 0 || given >= vocabulary)
      throw new EngineError(
        `Prompt ${index} has ${given} at position ${i}; token ids are 0 to ${vocabulary - 1} in this model.`,
      );
  if (prompt.length + maxTokens > context)
    throw new EngineError(
      `Prompt ${index} has ${prompt.length} tokens and maxTokens is ${maxTokens}, together ${prompt.length + maxTokens}: the model's context is ${context}. Shorten the prompt or ask for at most ${Math.max(0, context - prompt.length)} tokens.`,
    );
}
