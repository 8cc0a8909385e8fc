/**
 * Whether a text is a picture, a recording or a document in a `data:` URL: base64 all through, and beginning as files of
 * such a kind begin. That is not text, and a card number found in it would only spoil it. What merely says so
 * (`data:x;base64,bob@example.com`), what is short enough to be words, and what is larger than any file people send is
 * read like any other text.
 */
const head = /^data:(?:image|audio|video|application)\/[a-z0-9.+-]{1,64}(?:;[a-z0-9=.+-]{1,64}){0,3};base64,/i;
/** PNG, JPEG, GIF, WebP and WAV, BMP, TIFF, PDF, MP3, Ogg, FLAC, MP4, WebM, zip: their first bytes, in base64. */
const beginning =
  /^(?:iVBORw0KGgo|\/9j\/|R0lGOD|UklGR|Qk[0-9]|SUkq|TU0A|JVBERi0|SUQz|\/\/[s-v]|T2dnU|ZkxhQ|AAAA|GkXfo|UEsDB)/;
const base64 = /[A-Za-z0-9+/]*={0,2}$/y;
const least = 200;
const most = 12 * 1024 * 1024;

export function isMedia(text: string): boolean {
  if (!text.startsWith('data:') || text.length < least || text.length > most) return false;
  const length = head.exec(text.slice(0, 300))?.[0].length;
  if (length === undefined || !beginning.test(text.slice(length, length + 16))) return false;
  base64.lastIndex = length;
  return base64.test(text);
}
