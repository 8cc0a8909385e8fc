/**
 * Scripts of sed that can be followed without a regular expression of somebody else's: words to look for, perhaps at the beginning or the
 * end of a line (`.` is any letter, `.*` a whole line), what is put in their place, lines taken out or in by number or by what they say.
 * Any other script is none that is known here.
 */
type Put = readonly (string | null)[];
export type SedCommand = {
  /** Lines count from 1; the last one, whichever it is, is Infinity. */
  readonly from: number;
  readonly to: number;
  /** Instead of numbers: what the line has. */
  readonly near: RegExp | null;
} & (
  | { readonly kind: 's'; readonly sought: RegExp; readonly put: Put }
  | { readonly kind: 'd' }
  | { readonly kind: 'a' | 'i' | 'c'; readonly text: string }
);

const maxCommands = 100;
const maxSought = 200;
const maxPut = 40;

/** Put together of single letters, so that looking for it takes no longer than the line times what is sought. */
function soughtBy(pattern: string, isExtended: boolean, isEvery = false): RegExp | null {
  if (/^\^?\.\*\$?$/.test(pattern)) return /^[\s\S]*/;
  if (pattern.length > maxSought) return null;
  const special = isExtended ? '*[]^$+?{}|()' : '*[]^$';
  let sought = '';
  for (let i = 0; i < pattern.length; i++) {
    const letter = pattern[i]!;
    const next = pattern[i + 1];
    if (letter === '\\') {
      if (next === 't') sought += '\\t';
      else if (
        next !== undefined &&
        (`.*[]^$\\/-:#,;@%&=!~"' `.includes(next) || (isExtended && '+?{}|()'.includes(next)))
      )
        sought += plain(next);
      else return null;
      i++;
    } else if ((letter === '^' && i === 0) || (letter === '$' && next === undefined)) sought += letter;
    else if (letter === '.') sought += '[\\s\\S]';
    else if (special.includes(letter)) return null;
    else sought += plain(letter);
  }
  return sought === '' ? null : new RegExp(sought, isEvery ? 'g' : '');
}
const plain = (letter: string): string =>
  /\w|[^ -~]/.test(letter) ? letter : `\\x${letter.charCodeAt(0).toString(16)}`;

/** null among them: what was found. */
function putBy(words: string): Put | null {
  const put: (string | null)[] = [];
  let said = '';
  for (let i = 0; i < words.length; i++) {
    const letter = words[i]!;
    if (letter === '&') {
      put.push(said, null);
      said = '';
    } else if (letter !== '\\') said += letter;
    else {
      const next = words[++i] ?? '';
      if (next === 'n') said += '\n';
      else if (next === 't') said += '\t';
      else if (next === '' || /\w/.test(next)) return null;
      else said += next;
    }
  }
  return put.length < maxPut ? [...put, said] : null;
}

/** null: a script that takes more than that. */
export function sedCommands(script: string, isExtended: boolean): SedCommand[] | null {
  const commands: SedCommand[] = [];
  let at = 0;
  const skip = (letters: string): void => {
    while (at < script.length && letters.includes(script[at]!)) at++;
  };
  const upTo = (sign: string): string | null => {
    const from = at;
    for (; at < script.length && script[at] !== sign; at++) if (script[at] === '\\') at++;
    if (at >= script.length) return null;
    return script.slice(from, at++);
  };
  const line = (): number | null => {
    const from = at;
    if (script[at] === '$') {
      at++;
      return Number.POSITIVE_INFINITY;
    }
    skip('0123456789');
    return at === from ? null : Number(script.slice(from, at));
  };

  while (commands.length < maxCommands) {
    skip(' \t\n;');
    if (at >= script.length) return commands;
    let [from, to] = [1, Number.POSITIVE_INFINITY];
    let near: RegExp | null = null;
    const first = line();
    if (first !== null) {
      [from, to] = [first, first];
      if (script[at] === ',') {
        at++;
        to = line() ?? -1;
        if (to < from) return null;
      }
    } else if (script[at] === '/') {
      at++;
      near = soughtBy(upTo('/') ?? '', isExtended);
      if (near === null) return null;
    }
    skip(' ');
    const place = { from, to, near };
    const kind = script[at++];
    if (kind === 's') {
      const sign = script[at++] ?? '';
      if (sign === '' || '\\\n.*[]^$+?{}()&'.includes(sign)) return null;
      const [pattern, words] = [upTo(sign), upTo(sign)];
      // What is written between may not be what means something else there.
      if (pattern === null || words === null || (sign !== '/' && pattern.includes(`\\${sign}`))) return null;
      const isEvery = script[at] === 'g';
      if (isEvery) at++;
      const [sought, put] = [soughtBy(pattern, isExtended, isEvery), putBy(words)];
      if (sought === null || put === null) return null;
      commands.push({ ...place, kind, sought, put });
    } else if (kind === 'd') commands.push({ ...place, kind });
    else if (kind === 'a' || kind === 'i' || kind === 'c') {
      if (kind === 'c' && (to !== from || near !== null)) return null;
      const start = at;
      for (; at < script.length && script[at] !== '\n'; at++) if (script[at] === '\\') at++;
      const said = script.slice(start, at).replace(/^[ \t]*(?:\\(?:[ \t]*\n)?)?/, '');
      const text = said.replaceAll('\\\n', '\n');
      if (text === '' || text.includes('\\')) return null;
      commands.push({ ...place, kind, text });
    } else return null;
    skip(' \t');
    if (at < script.length && !';\n'.includes(script[at]!)) return null;
  }
  return null;
}

/** How often as long as looking once through a text they may take. */
export function sedCost(commands: readonly SedCommand[]): number {
  const lengths = commands.map(
    (one) => (one.kind === 's' ? one.sought.source.length : 0) + (one.near?.source.length ?? 0),
  );
  return lengths.reduce((sum, length) => sum + 8 + 2 * length, 8);
}

/** null: it becomes too long. */
export function edited(text: string, commands: readonly SedCommand[], maxCharacters: number): string | null {
  const lines = text.split('\n');
  const isEnded = lines.at(-1) === '';
  if (isEnded) lines.pop();
  const made: string[] = [];
  let length = 0;
  for (const [i, given] of lines.entries()) {
    const above: string[] = [];
    const below: string[] = [];
    let line: string | null = given;
    for (const command of commands) {
      const { from, to, near } = command;
      const isLast = i === lines.length - 1;
      const isNumbered = from === Number.POSITIVE_INFINITY ? isLast : i + 1 >= from && i + 1 <= to;
      if (!(near === null ? isNumbered : near.test(line))) continue;
      if (command.kind === 's') {
        const { sought, put } = command;
        let left: number = maxCharacters - length - line.length;
        line = line.replace(sought, (found: string): string => {
          left += found.length - put.reduce((sum, piece) => sum + (piece ?? found).length, 0);
          return left < 0 ? '' : put.map((piece) => piece ?? found).join('');
        });
        if (left < 0) return null;
      } else if (command.kind === 'a') below.push(command.text);
      else if (command.kind === 'i') above.push(command.text);
      else {
        if (command.kind === 'c') above.push(command.text);
        line = null;
        break;
      }
    }
    for (const one of [...above, ...(line === null ? [] : [line]), ...below]) {
      length += one.length + 1;
      if (length > maxCharacters) return null;
      made.push(one);
    }
  }
  return made.join('\n') + (isEnded && made.length > 0 ? '\n' : '');
}
