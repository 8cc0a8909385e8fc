/**
 * Names of fields whose value is a credential, whatever it looks like: `{"password": "hunter2"}`. In running text the
 * same names are read by secret.ts. `token` and `secret` also name harmless things (a page token, a question's secret),
 * so under them only what looks like a credential counts.
 */
const passwords = /(?:^|[^a-z])(?:pass(?:word|wd|phrase|wort)|pwd)$|[a-z]Pass(?:word|phrase)$|비밀번호$/i;
const keys = /(?:api|access|secret|private|auth|account|master)[-_ ]?key$|authorization$|(?:secret|token)$/i;
/** What stands for a value: `<password>`, `${PASSWORD}`, `***`, or what was replaced before. */
const placeholder = /^[[<{$*%]/;
const credential = /^(?:(?:basic|bearer|token)\s+\S{4,}|(?=\S{0,63}?\d|\S{16})[A-Za-z0-9_.~+/=-]{6,})$/i;

export type SecretName = 'password' | 'key' | null;

export function secretName(name: string): SecretName {
  if (passwords.test(name)) return 'password';
  return keys.test(name) ? 'key' : null;
}

export function isSecretUnder(name: SecretName, value: unknown): boolean {
  if (name === null) return false;
  if (name === 'password' && typeof value === 'number') return true;
  if (typeof value !== 'string' || value.length < 4 || placeholder.test(value)) return false;
  return name === 'password' || (value.length <= 8192 && credential.test(value));
}
