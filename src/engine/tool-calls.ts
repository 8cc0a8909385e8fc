/**
 * What a model writes → the parts of an OpenAI message, as it streams: `<think>…</think>` is reasoning,
 * `<tool_call>{"name":…,"arguments":{…}}</tool_call>` (Hermes, Qwen; with a list inside, SmolLM2) is a tool call, the rest is
 * content. A model whose template shows calls without tags (Llama 3) calls with an answer that is nothing but
 * `{"name":…,"parameters":{…}}`.
 *
 * A call is given out when it is complete: only then is it known whether it is one. What does not parse stays in the
 * content as the model wrote it, and is counted. Text that may still become a tag, and white space that may turn out to
 * lie between a tag and nothing, is held back; nothing else is.
 *   content ──<think>──▶ reasoning ──</think>──▶ content ──<tool_call>──▶ call ──</tool_call>──▶ content
 */
export type OutputPart =
  | { readonly kind: 'content'; readonly text: string }
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'tool_call'; readonly name: string /** JSON. */; readonly arguments: string };

export type OutputParser = {
  push(text: string): OutputPart[];
  /** The text is over: gives out what was held back. */
  end(): OutputPart[];
  /** How many things looked like a tool call and were not. */
  readonly malformed: number;
};

export type OutputOptions = {
  readonly tools: boolean;
  /** The prompt left the model inside `<think>`. */
  readonly inReasoning?: boolean;
  /** Calls come without tags. */
  readonly bareCalls?: boolean;
};

export function createOutputParser(options: OutputOptions): OutputParser {
  let state: 'content' | 'reasoning' | 'call' | 'bare' = options.inReasoning ? 'reasoning' : 'content';
  /** What was looked through and has to wait: white space that may lie before a tag, what there is of a call. Never looked at again. */
  let kept = '';
  /** What was not: between two tokens, at most the beginning of a tag. */
  let held = '';
  let blank = true; // nothing but white space has come out since the last tag
  let afterTag = state === 'reasoning';
  let malformed = 0;

  const call = (body: string, closed: boolean): OutputPart[] => {
    const parsed = parseCalls(body);
    if (parsed) return parsed;
    malformed++;
    return [{ kind: 'content', text: `<tool_call>${body}${closed ? '</tool_call>' : ''}` }];
  };

  /** White space at the start of reasoning, or after a tag, and at the end before a tag, is layout and not text. */
  const text = (kind: 'content' | 'reasoning', raw: string, tagFollows: boolean): OutputPart[] => {
    let out = raw;
    if (afterTag) out = out.trimStart();
    if (tagFollows) out = out.trimEnd();
    if (out === '') return [];
    afterTag = false;
    if (/\S/.test(out)) blank = false;
    return [{ kind, text: out }];
  };

  const begins = (word: string) => blank && held.trimStart().startsWith(word); // before it there can be white space only
  const tagsHere = (): readonly string[] => {
    if (state === 'reasoning') return ['</think>'];
    if (state === 'call') return ['</tool_call>'];
    return ['<think>', ...(options.tools ? ['<tool_call>'] : [])];
  };
  const nextTag = (tags: readonly string[]): { readonly tag: string; readonly at: number } | undefined => {
    // Reasoning comes before the answer; a <think> in the middle of it is only text.
    const tag = tags[0] === '<think>' && !begins('<think>') ? tags[1] : tags[0];
    const at = tag === undefined ? -1 : held.indexOf(tag);
    return tag === undefined || at === -1 ? undefined : { tag, at };
  };

  const run = (final: boolean): OutputPart[] => {
    const parts: OutputPart[] = [];
    for (;;) {
      // Whether an answer that opens a brace is a call, only its end can tell.
      if (options.tools && options.bareCalls && state === 'content' && begins('{')) state = 'bare';
      if (state === 'bare') {
        kept += held;
        held = '';
        if (!final) return parts;
        const parsed = parseCalls(kept);
        if (!parsed && /^\s*\{\s*"name"/.test(kept)) malformed++;
        parts.push(...(parsed ?? [{ kind: 'content' as const, text: kept }]));
        kept = '';
        return parts;
      }
      const tags = tagsHere();
      const found = nextTag(tags);
      const seen = held.slice(0, found?.at ?? held.length - (final ? 0 : begun(held, tags)));
      held = held.slice(seen.length + (found?.tag.length ?? 0));
      if (!found && !final) {
        const out = state === 'call' ? '' : seen.trimEnd();
        if (state !== 'call' && out !== '') {
          parts.push(...text(state, kept + out, false));
          kept = '';
        }
        kept += seen.slice(out.length);
        return parts;
      }
      const whole = kept + seen;
      kept = '';
      if (state === 'call') parts.push(...call(whole, found !== undefined));
      else parts.push(...text(state, whole, found !== undefined || state === 'reasoning'));
      if (!found) return parts;
      state = found.tag === '<think>' ? 'reasoning' : found.tag === '<tool_call>' ? 'call' : 'content';
      afterTag = true;
      blank = true;
    }
  };

  return {
    push(more) {
      held += more;
      return run(false);
    },
    end: () => run(true),
    get malformed() {
      return malformed;
    },
  };
}

/** How many characters at the end may be the beginning of a tag. */
function begun(text: string, tags: readonly string[]): number {
  let tail = 0;
  for (const tag of tags) {
    for (let n = Math.min(tag.length - 1, text.length); n > tail; n--) if (text.endsWith(tag.slice(0, n))) tail = n;
  }
  return tail;
}

/** One call, or a list of them. */
function parseCalls(body: string): OutputPart[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  const calls = (Array.isArray(value) ? value : [value]).map(callOf);
  return calls.length > 0 && calls.every((call) => call !== undefined) ? calls : undefined;
}

function callOf(value: unknown): OutputPart | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const { name, arguments: given, parameters } = value as Record<'name' | 'arguments' | 'parameters', unknown>;
  const args = given ?? parameters;
  if (typeof name !== 'string' || name === '') return undefined;
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return undefined;
  return { kind: 'tool_call', name, arguments: JSON.stringify(args) };
}
