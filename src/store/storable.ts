/** JSON that the database takes. Pure. */

/** Undefined for what JSON has no word for. */
export function storable(value: object | string | number | null): string;
export function storable(value: unknown): string | undefined;
export function storable(value: unknown): string | undefined {
  const plain = plainJson(value);
  if (plain !== null) return plain;
  const json = JSON.stringify(value) as string | undefined;
  return json === undefined ? undefined : storableJson(json);
}

const shortPlain = /^[\w .:/-]*$/;

/** Most values are numbers, null or short plain words, and need no call of JSON.stringify; null: this is none of them. */
function plainJson(value: unknown): string | null {
  switch (typeof value) {
    case 'string':
      return value.length < 64 && shortPlain.test(value) ? `"${value}"` : null;
    case 'number':
      return Number.isFinite(value) ? `${value}` : 'null';
    case 'boolean':
      return value ? 'true' : 'false';
    default:
      return value === null ? 'null' : null;
  }
}

/**
 * The database holds neither NUL nor half a surrogate pair, and OpenAI bodies contain both now and then. Both become U+FFFD.
 * JSON.stringify writes whole pairs as themselves, so every \ud… it writes is a lone half; escapes are consumed in
 * pairs so that an escaped backslash before a `u0000` stays what it is.
 */
export const storableJson = (json: string): string =>
  json.includes('\\u') && /\\u0000|\\ud/.test(json) // most texts have none, and a plain search is cheaper
    ? json.replace(/\\(?:u0000|ud[89a-f][0-9a-f]{2}|.)/g, (written) =>
        /^\\u(?:0000|d)/.test(written) ? '\\ufffd' : written,
      )
    : json;

/** The same of a text that is no JSON. */
export const storableText = (text: string): string =>
  /[\0\ud800-\udfff]/.test(text)
    ? text.replace(/\0|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd')
    : text;
