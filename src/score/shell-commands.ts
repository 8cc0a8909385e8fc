/**
 * A shell's text as the commands it is made of: words, here-documents, where input comes from and output goes, pipes, `&&` and `||`,
 * subshells. POSIX's "Shell Command Language", and of bash what agents rely on. It is read and never run: a word that only running would
 * show (a variable, another command's output, a pattern for names of files) is not known, nor is whether what stands in a loop or behind `||` is
 * done. Each character is looked at a few times at most.
 */
/** A word; null: it is known when it is run. */
export type Word = string | null;
type Input = { text: Word } | { readonly path: Word };
type Output = { readonly path: Word; readonly isAppended: boolean; readonly isSaid: boolean };
export type ShellCommand = {
  readonly words: readonly Word[];
  readonly input: Input | null;
  readonly outputs: readonly Output[];
  /** It reads what the one before it says. */
  readonly isPiped: boolean;
  /** It stands for a whole group: `(…) > f`, `done > f`. */
  readonly isGroup: boolean;
  /** Whether it is run at all, and how often, is not known. */
  readonly isPerhaps: boolean;
};
export type ShellStep = ShellCommand | 'enter' | 'leave';

const maxDepth = 30;

const opens = new Set(['if', 'for', 'while', 'until', 'case', 'select', 'function']);
const closes = new Set(['fi', 'done', 'esac']);
const between = new Set(['then', 'do', 'else', 'elif', '!', 'time', '{']);

const spaces = /[ \t\r]+/y;
const comment = /#[^\n]*/y;
const redirection = /(\d*|&)(<<<|<<-?|<>|<&|>>|>&|>\||<|>)/y;
const ordinary = /[^\s;&|<>()'"\\$`*?[{]+/y;
const inQuotes = /[^"\\$`]+/y;
const variable = /\w+|[@*#?$!-]/y;
/** What a shell would put in, in a here-document whose end is not quoted. */
const expands = /\$[\w{(@*#?$!-]|`/;

/** The commands of a text in order; null: it cannot be taken apart. */
export function shellSteps(text: string): ShellStep[] | null {
  const steps: ShellStep[] = [];
  /** Here-documents that begin on the next line. */
  const waiting: { readonly input: { text: Word }; end: string; isLiteral: boolean; isIndented: boolean }[] = [];
  let at = 0;
  let depth = 0;
  let unsure = 0; // ifs and loops that are open
  let muted = 0; // what is run for its output
  let isBroken = false;

  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found !== null) at = pattern.lastIndex;
    return found;
  };
  const giveUp = (): void => {
    isBroken = true;
    at = text.length;
  };
  const skipPast = (end: string, from: number): void => {
    const found = text.indexOf(end, from);
    if (found < 0) giveUp();
    else at = found + end.length;
  };

  function substitution(): void {
    muted++;
    list(true);
    muted--;
  }

  function backquoted(): void {
    for (at++; at < text.length && text[at] !== '`'; at++) if (text[at] === '\\') at++;
    if (at >= text.length) giveUp();
    at++;
  }

  /** From a `$` on. What stands there as it is; null: the shell puts something in. */
  function dollar(isQuoted: boolean): Word {
    const next = text[at + 1];
    if (next === '(') {
      if (text[at + 2] === '(') skipPast('))', at + 3);
      else {
        at += 2;
        substitution();
      }
      return null;
    }
    if (next === '{') {
      let open = 0;
      for (at++; at < text.length; at++) {
        if (text[at] === '{') open++;
        else if (text[at] === '\\') at++;
        else if (text[at] === '}' && --open === 0) break;
      }
      if (at >= text.length) giveUp();
      at++;
      return null;
    }
    if (next === "'" && !isQuoted) {
      const from = at + 2;
      for (at = from; at < text.length && text[at] !== "'"; at++) if (text[at] === '\\') at++;
      if (at >= text.length) {
        giveUp();
        return null;
      }
      return escaped(text.slice(from, at++));
    }
    at++;
    if (next === '"' && !isQuoted) return quoted();
    return take(variable) === null ? '$' : null;
  }

  /** From the `"` on. */
  function quoted(): Word {
    let [said, isKnown] = ['', true];
    for (at++; at < text.length && text[at] !== '"'; ) {
      const plain = take(inQuotes);
      if (plain !== null) said += plain[0];
      else if (text[at] === '\\') {
        const next = text[at + 1] ?? '';
        if (next !== '\n') said += '$`"\\'.includes(next) ? next : `\\${next}`;
        at += 2;
      } else if (text[at] === '`') {
        isKnown = false;
        backquoted();
      } else {
        const word = dollar(true);
        if (word === null) isKnown = false;
        else said += word;
      }
    }
    if (at >= text.length) giveUp();
    at++;
    return isKnown ? said : null;
  }

  function word(): { readonly text: Word; readonly isQuoted: boolean } {
    let [said, isKnown, isQuoted, hasBrace] = ['', true, false, false];
    const add = (one: Word) => {
      if (one === null) isKnown = false;
      else said += one;
    };
    for (; at < text.length; ) {
      const plain = take(ordinary);
      if (plain !== null) {
        said += plain[0];
        continue;
      }
      const letter = text[at]!;
      if (' \t\r\n;&|<>()'.includes(letter)) break;
      if (letter === "'") {
        const end = text.indexOf("'", at + 1);
        if (end < 0) giveUp();
        else {
          said += text.slice(at + 1, end);
          at = end + 1;
        }
        isQuoted = true;
      } else if (letter === '"') {
        add(quoted());
        isQuoted = true;
      } else if (letter === '\\') {
        if (text[at + 1] !== '\n') said += text[at + 1] ?? '';
        isQuoted = true;
        at += 2;
      } else if (letter === '$') add(dollar(false));
      else if (letter === '`') {
        isKnown = false;
        backquoted();
      } else {
        // Names of files that are there would take its place.
        if (letter === '{') hasBrace = true;
        else isKnown = false;
        said += letter;
        at++;
      }
    }
    if (hasBrace && /,|\.\./.test(said)) isKnown = false;
    return { text: isKnown ? said : null, isQuoted };
  }

  /** At the beginning of a line. */
  function documents(): void {
    for (const { input, end, isLiteral, isIndented } of waiting.splice(0)) {
      const lines: string[] = [];
      while (at < text.length) {
        const stop = text.indexOf('\n', at);
        const line = text.slice(at, stop < 0 ? text.length : stop);
        at = stop < 0 ? text.length : stop + 1;
        const own = isIndented ? line.replace(/^\t+/, '') : line;
        if (own === end) break;
        lines.push(`${own}\n`);
      }
      const body = lines.join('');
      if (isLiteral) input.text = body;
      else if (!expands.test(body.replace(/\\[\s\S]/g, '')))
        input.text = body.replace(/\\([$`\\\n])/g, (_, letter: string) => (letter === '\n' ? '' : letter));
    }
  }

  /** Commands up to the end, or the `)` that closes them. */
  function list(isInside: boolean): void {
    if (++depth > maxDepth) giveUp();
    let words: Word[] = [];
    let outputs: Output[] = [];
    let input: Input | null = null;
    let [isGroup, isPiped, isAlternative] = [false, false, false];
    const end = (isPipe: boolean, isOr: boolean): void => {
      if ((words.length > 0 || outputs.length > 0 || isGroup) && muted === 0)
        steps.push({ words, input, outputs, isPiped, isGroup, isPerhaps: unsure > 0 || isAlternative });
      [words, outputs, input, isGroup] = [[], [], null, false];
      isAlternative = isOr || (isPipe && isAlternative);
      isPiped = isPipe;
    };
    const redirect = (handle: string, sign: string): void => {
      const isProcess = text[at] === '(' && (sign === '<' || sign === '>');
      if (isProcess) {
        at++;
        substitution();
        words.push(null);
        return;
      }
      take(spaces);
      const target = word();
      if (sign === '<<' || sign === '<<-') {
        if (target.text === null) {
          giveUp();
          return;
        }
        const document = { text: null };
        waiting.push({ input: document, end: target.text, isLiteral: target.isQuoted, isIndented: sign === '<<-' });
        input = document;
      } else if (sign === '<<<') input = { text: target.text === null ? null : `${target.text}\n` };
      else if (sign === '<') input = { path: target.text };
      else if (sign === '<>' || sign === '<&') input = { text: null };
      // `2>&1`
      else if (sign !== '>&' || !/^(?:\d+|-)$/.test(target.text ?? '')) {
        const isSaid = handle === '' || handle === '1' || handle === '&';
        outputs.push({ path: target.text, isAppended: sign === '>>', isSaid });
      }
    };

    while (at < text.length) {
      if (take(spaces) !== null || take(comment) !== null) continue;
      const letter = text[at]!;
      const sign = letter === '&' && text[at + 1] !== '>' ? null : take(redirection);
      if (sign !== null) redirect(sign[1]!, sign[2]!);
      else if (letter === '\\' && text[at + 1] === '\n') at += 2;
      else if (letter === '\n' || letter === ';') {
        end(false, false);
        at++;
        if (letter === '\n') documents();
      } else if (letter === '&' || letter === '|') {
        const isTwo = text[at + 1] === letter;
        end(letter === '|' && !isTwo, letter === '|' && isTwo);
        at += isTwo || text.startsWith('|&', at) ? 2 : 1;
      } else if (letter === '(') {
        // A function's body is run when it is called, which what follows may do.
        if (words.length === 1 && text[at + 1] === ')') {
          at += 2;
          unsure++;
          words = [];
        } else if (words.length > 0) giveUp();
        else if (text[at + 1] === '(') skipPast('))', at + 2);
        else {
          at++;
          if (muted === 0) steps.push('enter');
          list(true);
          if (muted === 0) steps.push('leave');
          isGroup = true;
        }
      } else if (letter === ')') {
        at++;
        end(false, false);
        if (isInside) {
          depth--;
          return;
        }
      } else {
        const isFirst = words.length === 0;
        if (isFirst && text.startsWith('[[ ', at)) {
          skipPast(' ]]', at);
          isGroup = true;
          continue;
        }
        const from = at;
        const { text: said, isQuoted } = word();
        if (isFirst && /^\w+\+?=/.test(text.slice(from, Math.min(at, from + 100)))) {
          if (text[at] === '(') {
            at++;
            substitution();
          }
        } else if (isFirst && !isQuoted && opens.has(said ?? '')) unsure++;
        else if (isFirst && !isQuoted && closes.has(said ?? '')) {
          unsure = Math.max(0, unsure - 1);
          isGroup = true;
        } else if (isFirst && !isQuoted && said === '}') isGroup = true;
        else if (!isFirst || isQuoted || !between.has(said ?? '')) words.push(said);
      }
    }
    end(false, false);
    if (isInside) giveUp();
    depth--;
  }

  list(false);
  return isBroken ? null : steps;
}

const letters: Readonly<Record<string, string>> = {
  ...{ n: '\n', t: '\t', r: '\r', '\\': '\\', "'": "'", '"': '"' },
};
/** With `\n` and the like in place; null: one that is not as simple. */
export function escaped(text: string): Word {
  let isKnown = true;
  const said = text.replace(/\\([\s\S]?)/g, (_, letter: string) => {
    isKnown &&= Object.hasOwn(letters, letter);
    return letters[letter] ?? '';
  });
  return isKnown ? said : null;
}
