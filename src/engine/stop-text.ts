/**
 * Stop strings, found in text as it comes, as OpenAI's `stop` asks: what comes out never contains one, not even the
 * beginning of one that is completed later. Text that cannot be the beginning of a stop string comes out at once. A
 * character costs one step for each stop string, however long it is and however it repeats itself (Knuth, Morris and
 * Pratt 1977): nothing is looked through, or decoded, again with every token.
 */
import type { TextStream } from './tokenizer.ts';

/** Prepared once, for all answers that they may end. */
export type StopStrings = readonly StopString[];
type StopString = {
  readonly text: string;
  /** [n] How much of it is matched where its first n characters were and the next one is not. */
  readonly falls: Int32Array;
};

export const stopStrings = (texts: readonly string[]): StopStrings =>
  texts.map((text) => ({ text, falls: fallsOf(text) }));

function fallsOf(text: string): Int32Array {
  const falls = new Int32Array(text.length);
  for (let n = 1, matched = 0; n < text.length; n++) {
    falls[n] = matched;
    matched = step({ text, falls }, matched, text[n]!);
  }
  return falls;
}

/** How much is matched once this character has come. */
function step({ text, falls }: StopString, before: number, character: string): number {
  let matched = before;
  while (matched > 0 && text[matched] !== character) matched = falls[matched]!;
  return text[matched] === character ? matched + 1 : matched;
}

export type StopText = {
  push(text: string): string;
  end(): string;
  readonly stopped: boolean;
};

export function createStopText(stops: StopStrings): StopText {
  /** [stop string] */
  const matched = stops.map(() => 0);
  let held = '';
  let stopped = false;
  return {
    push(text) {
      if (stopped) return '';
      let first = Number.POSITIVE_INFINITY; // where in what is held the first one begins
      for (const [i, stop] of stops.entries()) {
        for (let at = 0; at < text.length && matched[i]! < stop.text.length; at++) {
          matched[i] = step(stop, matched[i]!, text[at]!);
          if (matched[i] === stop.text.length) first = Math.min(first, held.length + at + 1 - stop.text.length);
        }
      }
      held += text;
      stopped = first < Number.POSITIVE_INFINITY;
      const out = held.slice(0, stopped ? first : held.length - Math.max(0, ...matched));
      held = held.slice(out.length);
      return out;
    },
    end() {
      const rest = stopped ? '' : held;
      held = '';
      return rest;
    },
    get stopped() {
      return stopped;
    },
  };
}

/** Whether what is being generated has come to a stop string; to be told every token. */
export function createStopWatch(stops: StopStrings, decoded: TextStream): (token: number) => boolean {
  const text = createStopText(stops);
  return (token) => {
    text.push(decoded.push(token));
    return text.stopped;
  };
}
