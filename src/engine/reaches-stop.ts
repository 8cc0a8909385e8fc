/**
 * Whether text that is being generated has come to a stop string. A stop string may begin in one token and end in another,
 * and one character may take several tokens; so the tail of the text is decoded again with every token, and only the tail:
 * decoding everything each time would make long answers quadratic.
 */

/** True when the text contains a stop string. To be asked after every token: it looks only at what the last one may have completed. */
export function reachesStop(
  tokens: readonly number[],
  stop: readonly string[],
  decodeText: (tokens: readonly number[]) => string,
): boolean {
  const longest = Math.max(...stop.map((s) => s.length));
  // What stands before the last token must be as long as the longest stop string. Most tokens are a character or more;
  // where they are less (pieces of a character, silent ones) the tail grows. The 4 is for a character cut at its start.
  for (let count = longest + 8; ; count *= 2) {
    const whole = count >= tokens.length;
    if (!whole && decodeText(tokens.slice(-count, -1)).length < longest + 4) continue;
    const text = decodeText(whole ? tokens : tokens.slice(-count));
    return stop.some((s) => text.includes(s));
  }
}
