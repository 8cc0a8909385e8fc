/**
 * Whether a pattern of the settings can be tried at every place of a text without ever taking long: every repetition has an upper
 * bound, none stands inside another, nothing refers back, and the ways in which it can be matched at one place are few.
 * Then the work is in proportion to the text, whatever the text. Reads the pattern's own grammar, without running it.
 */
const MOST_WAYS = 10_000;
const MOST_TIMES = 256;

/** What is wrong with it, as a sentence; null: nothing. */
export function boundedPattern(source: string): string | null {
  try {
    new RegExp(source, 'u');
  } catch {
    return 'not a regular expression';
  }
  let ways = 1;
  const groups: boolean[] = []; // whether the open group holds a repetition
  let closed = false; // whether what was just read is a group that holds one
  for (let at = 0; at < source.length; at++) {
    const one = source[at]!;
    if (one === '\\') {
      if (/[1-9k]/.test(source[at + 1] ?? ''))
        return 'refers back to what it found (\\1), which takes too long on some texts';
      at++;
      closed = false;
    } else if (one === '[') {
      for (at++; at < source.length && source[at] !== ']'; at++) if (source[at] === '\\') at++;
      closed = false;
    } else if (one === '(') {
      groups.push(false);
      closed = false;
      if (source[at + 1] === '?') at++; // (?: and its kin: the mark is no repetition
    } else if (one === ')') closed = groups.pop() ?? false;
    else if (one === '|') {
      ways += 1;
      closed = false;
    } else if (one === '*' || one === '+') return `repeats without an upper bound (${one}); write {0,64} or so instead`;
    else if (one === '?' || one === '{') {
      const times = one === '?' ? ([0, 1] as const) : timesAt(source, at);
      if (times === null) return 'repeats without an upper bound; write {1,64} or so instead';
      if (times[1] > MOST_TIMES) return `repeats more than ${MOST_TIMES} times`;
      if (closed && times[1] > 1)
        return 'repeats a group that itself repeats something; write it without the inner repetition';
      ways *= times[1] - times[0] + 1;
      if (groups.length > 0 && times[1] > times[0]) groups.fill(true);
      if (one === '{') at = source.indexOf('}', at);
      if (source[at + 1] === '?') at++; // lazy
      closed = false;
    } else closed = false;
    if (ways > MOST_WAYS) return 'can be matched in too many ways; narrow its repetitions';
  }
  return null;
}

function timesAt(source: string, at: number): readonly [number, number] | null {
  const found = /^\{(\d+)(?:(,)(\d*))?\}/.exec(source.slice(at, at + 16));
  if (found === null || (found[2] !== undefined && found[3] === '')) return null;
  return [Number(found[1]), Number(found[3] ?? found[1])];
}
