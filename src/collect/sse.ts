/**
 * Server-sent events as text → events, after the WHATWG rules (CR, LF or CRLF; comments; several `data:` lines per
 * event), with two leniencies seen in the wild: the last event may lack its blank line, and lines that are no SSE field
 * are counted, not fatal. Pure; the caller decodes the bytes, so a character split across chunks is no concern here.
 */
export type SseEvent = { readonly event: string; readonly data: readonly string[] };
export type SseText = {
  readonly events: readonly SseEvent[];
  /** Lines that are no field and no comment. */
  readonly strange: number;
  /** The last event had no blank line after it: the stream may have been cut inside it. */
  readonly open: boolean;
};

export function parseSse(text: string): SseText {
  const events: SseEvent[] = [];
  let strange = 0;
  let name = '';
  let data: string[] = [];
  let at = 0;
  // The next of each at or after `at`; looked up again only once passed, to stay linear whatever the text.
  let cr = text.indexOf('\r');
  let lf = text.indexOf('\n');
  let colon = text.indexOf(':');
  while (at < text.length) {
    if (lf >= 0 && lf < at) lf = text.indexOf('\n', at);
    if (cr >= 0 && cr < at) cr = text.indexOf('\r', at);
    if (colon >= 0 && colon < at) colon = text.indexOf(':', at);
    let end = lf >= 0 ? lf : text.length;
    let next = lf >= 0 ? lf + 1 : end;
    if (cr >= 0 && cr < end) {
      end = cr;
      next = text.charCodeAt(cr + 1) === 10 ? cr + 2 : cr + 1;
    }
    if (end === at) {
      if (data.length > 0) events.push({ event: name, data });
      name = '';
      data = [];
    } else if (text.startsWith('data:', at)) {
      data.push(text.slice(text.charCodeAt(at + 5) === 32 ? at + 6 : at + 5, end));
    } else if (text.charCodeAt(at) !== 58 /* a comment */) {
      const field = text.slice(at, colon >= 0 && colon < end ? colon : end);
      if (field === 'event') name = text.slice(Math.min(colon + 1, end), end).trim();
      else if (field !== 'id' && field !== 'retry' && field !== 'data') strange++;
    }
    at = next;
  }
  const open = data.length > 0;
  if (open) events.push({ event: name, data });
  return { events, strange, open };
}
