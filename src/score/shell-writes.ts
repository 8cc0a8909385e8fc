/**
 * What a shell's command does to files, where its words say so: echo, printf, cat and tee into a file, sed -i with a script that
 * needs no regular expression (sed-script.ts), rm, mv, cp, patches, and what git does of these. Nothing is run. Whatever else may have
 * changed a file (another program, a word that is known when it is run, a loop) is never guessed; the file is in doubt from then on.
 */
import { posix } from 'node:path';
import { edited, sedCommands, sedCost } from './sed-script.ts';
import { escaped, type ShellCommand, shellSteps, type Word } from './shell-commands.ts';

/** What is known of files, and what becomes of them. A text null: something that cannot be told. */
export type ShellFiles = {
  /** What a file holds, where all of it is known. `times`: how often it will be gone through. */
  held(path: string, times: number): string | null;
  write(path: string, text: string | null): void;
  append(path: string, text: string | null): void;
  /** It is another one now. A path null: whichever file. */
  alter(path: string | null, text: string | null): void;
  remove(path: string): void;
  move(from: string, to: string): void;
  /** As git has it. */
  restore(path: string): void;
  /** From now on git has what is there. */
  commit(): void;
  /** `path`: of a diff that names no file. */
  patch(text: string | null, path?: string): void;
  /** In another language; it may write. */
  program(text: string): void;
};

const maxCharacters = 200_000;
/** What is copied is parsed once more. */
const copying = 50;
const maxTold = 1000;
/** Shells in a shell. */
const maxLevels = 3;

const shells = /^(?:ba|z|da|k)?sh$/;
const languages = /^(?:python[\d.]*|node|nodejs|deno|bun|ruby|perl|php|tsx|ts-node)$/;
const prefixes = new Set(['sudo', 'command', 'exec', 'nohup', 'builtin', 'env']);
/** In a text that cannot be taken apart. */
const mayWrite = />|\bsed\s+-\w*i|\btee\b|\bpatch\b/;
/** Programs that write the files they are given anew, and what they are told then. */
const rewrites: Readonly<Record<string, RegExp>> = {
  ...{
    black: /^(?!.*--(?:check|diff))/,
    isort: /^(?!.*--(?:check|diff))/,
    autopep8: /-i|--in-place/,
    yapf: /-i|--in-place/,
  },
  ...{
    gofmt: /-w/,
    rustfmt: /^(?!.*--check)/,
    prettier: /-w|--write/,
    eslint: /--fix/,
    ruff: /^format (?!.*--(?:check|diff))|--fix/,
  },
  ...{ truncate: /^/, dos2unix: /^/ },
};

/**
 * Follows a command, one text or its words. `isSure`: it went well. What comes back is the path of the file that it shows, whole, and
 * does nothing else; null: it is another command.
 */
export function followShell(
  given: string | readonly string[],
  files: ShellFiles,
  folder = '',
  isSure = true,
  level = 0,
): string | null {
  const steps = stepsIn(given);
  if (steps === null) {
    if (typeof given !== 'string' || mayWrite.test(given)) files.alter(null, null);
    return null;
  }
  /** Where each subshell is; null: somewhere. */
  const folders: (string | null)[] = [folder];
  const shown: (string | null)[] = [];
  let said: Word = null;
  /** What a pipeline reads: it is gone, or not, where the pipeline writes there too. */
  const sources = new Set<string>();
  for (const step of steps) {
    if (step === 'enter') folders.push(folders.at(-1)!);
    else if (step === 'leave') folders.pop();
    else said = follow(step);
  }
  return shown.length === 1 ? shown[0]! : null;

  function pathOf(word: Word | undefined): string | null {
    if (!word || word.length > 1000) return null;
    const path = posix.join(/^[/~]/.test(word) ? '' : (folders.at(-1) ?? ''), word);
    return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
  }

  function held(word: Word | undefined, times = copying): Word {
    const path = pathOf(word);
    if (path !== null) sources.add(path);
    return path === null ? null : files.held(path, times);
  }

  /** What it says; null: nobody can tell. */
  function follow({ words: all, input, outputs, isPiped, isGroup, isPerhaps }: ShellCommand): Word {
    const does = isSure && !isPerhaps ? files : doubting(files);
    if (!isPiped) sources.clear();
    const isPrefix = (word: Word, i: number) => prefixes.has(word ?? '') || (i > 0 && /^\w+=/.test(word ?? ''));
    const words = all.slice(all.findIndex((word, i) => !isPrefix(word, i)));
    const [name, ...args] = words;
    const read = input === null ? (isPiped ? said : undefined) : 'path' in input ? held(input.path) : input.text;
    const isEmpty = name === undefined && !isGroup;
    const says = isEmpty ? '' : isGroup || name == null ? null : run(posix.basename(name), args, does, read);
    if (!isEmpty && name !== 'cd') shown.push(outputs.some(({ isSaid }) => isSaid) ? null : shownBy(words));
    const last = outputs.findLast(({ isSaid }) => isSaid);
    for (const output of outputs)
      put(output.path, output === last ? says : null, output.isAppended, output.isSaid, does);
    return last === undefined ? says : null;
  }

  /** `isMuch`: of what the command is for, not of what it complains about. */
  function put(word: Word, text: Word, isAppended: boolean, isMuch: boolean, does: ShellFiles): void {
    const path = pathOf(word);
    if (path?.startsWith('/dev/')) return;
    const known = path !== null && sources.has(path) ? null : text;
    if (path === null && isMuch) does.alter(null, null);
    else if (path !== null && isAppended) does.append(path, known);
    else if (path !== null) does.write(path, known);
  }

  function shownBy([name, ...args]: readonly Word[]): string | null {
    const options = args.filter((word) => word?.startsWith('-')).join(' ');
    const paths = args.filter((word) => !word?.startsWith('-'));
    const isWhole = (name === 'cat' && /^(?:-n)?$/.test(options)) || (name === 'nl' && options === '-ba');
    return isWhole && paths.length === 1 ? pathOf(paths[0]) : null;
  }

  /** `read`: what it is given to read; undefined: nothing is. */
  function run(name: string, args: readonly Word[], does: ShellFiles, read: Word | undefined): Word {
    const isOption = (word: Word) => word !== null && /^-./.test(word);
    const named = args.filter((word) => !isOption(word));
    const has = (...options: readonly string[]) => args.some((word) => options.includes(word ?? ''));
    if (shells.test(name)) {
      const at = args.findIndex((word) => /^-\w*c$/.test(word ?? ''));
      const script = at >= 0 ? args[at + 1] : named.length === 0 ? read : undefined;
      if (script === null || level >= maxLevels) does.alter(null, null);
      else if (script !== undefined) followShell(script, files, folders.at(-1) ?? '', does === files, level + 1);
      return null;
    }
    if (languages.test(name)) {
      const at = args.findIndex((word) => /^-[ce]$|^--eval$/.test(word ?? ''));
      const isInPlace = /^(?:perl|ruby)$/.test(name) && args.some((word) => /^-[pnl0]*i/.test(word ?? ''));
      if (isInPlace) for (const word of named) does.alter(pathOf(word), null);
      else if (at >= 0) does.program(args[at + 1] ?? '');
      else if (named.every((word) => word === '-')) does.program(read ?? '');
      return null;
    }
    switch (name) {
      case 'cd': {
        const [to = null] = named;
        const isKnown = to !== null && to !== '-' && (folders.at(-1) !== null || to.startsWith('/'));
        folders[folders.length - 1] = isKnown ? pathOf(to) : null;
        return '';
      }
      case ':':
      case 'true':
        return '';
      case 'echo':
        return echoed(args);
      case 'printf':
        return printed(args);
      case 'cat': {
        if (args.some(isOption)) return null;
        const texts = (args.length === 0 ? ['-'] : args).map((word) => (word === '-' ? (read ?? null) : held(word)));
        const text = texts.join('');
        return texts.includes(null) || text.length > maxCharacters ? null : text;
      }
      case 'tee': {
        const isAppended = has('-a', '--append');
        for (const word of named) put(word, read ?? null, isAppended, true, does);
        return read ?? null;
      }
      case 'sed':
      case 'gsed':
        return sed(args, does, read ?? null);
      case 'rm':
      case 'unlink':
        for (const word of named) {
          const path = pathOf(word);
          if (path !== null) does.remove(path);
        }
        return '';
      case 'mv':
      case 'cp':
        carry(name, named, does);
        return '';
      case 'apply_patch':
      case 'applypatch':
        does.patch(named.length > 0 ? named[0]! : (read ?? null));
        return null;
      case 'patch': {
        const at = args.findIndex((word) => word === '-i' || word === '--input');
        const own = args.find((word) => word?.startsWith('--input='))?.slice('--input='.length);
        const file = at < 0 ? own : args[at + 1];
        const text = file === undefined ? (read ?? null) : held(file);
        const path = pathOf(named.find((word) => word !== file)) ?? undefined;
        if (!has('--dry-run')) does.patch(has('-R', '--reverse') ? null : text, path);
        return null;
      }
      case 'git':
        git(args, does, read ?? null);
        return null;
      case 'find':
      case 'xargs':
        if (has('sed', 'perl') && args.some((word) => /^-[npElr0]*i/.test(word ?? ''))) does.alter(null, null);
        return null;
      default: {
        const told = Object.hasOwn(rewrites, name) ? args.map((word) => word ?? '').join(' ') : null;
        if (told !== null && rewrites[name]!.test(told.slice(0, maxTold))) {
          for (const word of named) does.alter(word === null || word === '.' ? null : pathOf(word), null);
        }
        return null;
      }
    }
  }

  function carry(name: 'mv' | 'cp', named: readonly Word[], does: ShellFiles): void {
    const to = named.at(-1);
    const from = named.slice(0, -1);
    for (const word of from) {
      const source = pathOf(word);
      const target = pathOf(source === null || !to ? to : targetOf(source, to, from.length > 1));
      if (source === null || target === null) does.alter(target ?? (name === 'mv' ? source : null), null);
      else if (name === 'mv') does.move(source, target);
      else does.write(target, held(word));
    }
  }

  function sed(args: readonly Word[], does: ShellFiles, read: Word): Word {
    const { isInPlace, kept, paths, script, isExtended } = sedArguments(args);
    const commands = script === null ? null : sedCommands(script, isExtended);
    if (!isInPlace) {
      const text = paths.length === 0 ? read : paths.length === 1 ? held(paths[0]) : null;
      return commands === null || text === null ? null : edited(text, commands, maxCharacters);
    }
    for (const word of paths) {
      const path = pathOf(word);
      if (path !== null && kept !== '' && !/[*/]/.test(kept)) does.write(path + kept, held(word));
      const text = commands === null ? null : held(word, sedCost(commands));
      does.alter(path, text === null ? null : edited(text, commands!, maxCharacters));
    }
    return '';
  }

  function git(all: readonly Word[], does: ShellFiles, read: Word): void {
    const [name, ...args] = all;
    const has = (...options: readonly string[]) => args.some((word) => options.includes(word ?? ''));
    const divide = args.indexOf('--');
    const paths = args.slice(divide + 1).filter((word) => !word?.startsWith('-'));
    if (name === 'commit') does.commit();
    else if (name === 'mv' || (name === 'rm' && !has('--cached'))) run(name, args, does, undefined);
    else if (name === 'apply' && !has('--check', '--stat', '--numstat', '--summary', '--cached')) {
      const isReversed = has('-R', '--reverse');
      for (const text of paths.length === 0 ? [read] : paths.map((word) => held(word)))
        does.patch(isReversed ? null : text);
    } else if (name === 'restore' || name === 'checkout') {
      if (has('--staged', '-S') && !has('--worktree', '-W')) return;
      const isOther = divide > 0 || args.some((word) => /^(?:-s|--source)/.test(word ?? ''));
      for (const word of paths) {
        const path = pathOf(word);
        if (path !== null && !isOther) does.restore(path);
        else if (path !== null) does.alter(path, null);
      }
    }
  }
}

function stepsIn(given: string | readonly string[]): ReturnType<typeof shellSteps> {
  if (typeof given === 'string') return shellSteps(given);
  const [program = '', flag = '', script = ''] = given;
  if (shells.test(posix.basename(program)) && /^-\w*c$/.test(flag)) return shellSteps(script);
  return [{ words: given, input: null, outputs: [], isPiped: false, isGroup: false, isPerhaps: false }];
}

/** A file goes into a folder, or gets another name: what has no ending is a folder where the file has one. */
function targetOf(file: string, to: string, isFolder: boolean): string {
  const isName = /^\.?[^.]+\.|^\.[^.]/.test(posix.basename(to)) || !posix.basename(file).includes('.');
  return isFolder || to.endsWith('/') || !isName ? posix.join(to, posix.basename(file)) : to;
}

/** Each change is one that there may have been. */
function doubting(files: ShellFiles): ShellFiles {
  const doubt = (path: string | null): void => files.alter(path, null);
  return {
    ...{ held: () => null, commit: () => files.commit(), program: (text) => files.program(text) },
    ...{ write: doubt, append: doubt, alter: doubt, remove: doubt, restore: doubt, patch: () => doubt(null) },
    move(from, to) {
      doubt(from);
      doubt(to);
    },
  };
}

function echoed(args: readonly Word[]): Word {
  let [from, end, isEscaped] = [0, '\n', false];
  for (; /^-[neE]+$/.test(args[from] ?? ''); from++) {
    if (args[from]!.includes('n')) end = '';
    if (/[eE]/.test(args[from]!)) isEscaped = /e[^E]*$/.test(args[from]!);
  }
  const words = args.slice(from);
  const text = isEscaped ? escaped(words.join(' ')) : words.join(' ');
  return words.includes(null) || text === null ? null : text + end;
}

/** `%s` and nothing more intricate, as often as there are words. */
function printed(given: readonly Word[]): Word {
  const [format, ...words] = given[0] === '--' ? given.slice(1) : given;
  if (format == null || words.includes(null)) return null;
  const pieces = format
    .split(/(%%|%s)/)
    .map((piece, i) => (i % 2 === 0 ? escaped(piece) : piece === '%%' ? '%' : piece));
  if (pieces.some((piece, i) => piece === null || (i % 2 === 0 && piece.includes('%')))) return null;
  let said = '';
  let next = 0;
  do {
    const from = next;
    for (const [i, piece] of pieces.entries()) said += i % 2 === 1 && piece === '%s' ? (words[next++] ?? '') : piece;
    if (said.length > maxCharacters) return null;
    if (next === from) break;
  } while (next < words.length);
  return said;
}

type Sed = {
  readonly isInPlace: boolean;
  /** What is put behind the name under which the file stays as it was. */
  readonly kept: string;
  readonly isExtended: boolean;
  readonly script: Word;
  readonly paths: readonly Word[];
};

function sedArguments(args: readonly Word[]): Sed {
  const scripts: Word[] = [];
  const rest: Word[] = [];
  let [isInPlace, kept, isExtended, isOdd] = [false, '', false, false];
  for (let i = 0; i < args.length; i++) {
    const word = args[i]!;
    if (word === null || !/^-./.test(word)) rest.push(word);
    else if (word.startsWith('--')) {
      const [, name, value] = /^--([\w-]+)(?:=([\s\S]*))?$/.exec(word) ?? [];
      if (name === 'in-place') [isInPlace, kept] = [true, value ?? ''];
      else if (name === 'regexp-extended') isExtended = true;
      else if (name === 'expression') scripts.push(value ?? args[++i] ?? null);
      else isOdd = true;
    } else {
      const [, letters = '', last = '', behind = ''] = /^-([Ersu]*)(.?)([\s\S]*)$/.exec(word)!;
      if (/[Er]/.test(letters)) isExtended = true;
      if (last === 'e') scripts.push(behind === '' ? (args[++i] ?? null) : behind);
      else if (last === 'i') {
        [isInPlace, kept] = [true, behind];
        // Where BSD's sed takes the next word for it.
        if (behind === '' && args[i + 1] === '') i++;
      } else if (last !== '') {
        isOdd = true;
        isInPlace ||= behind.includes('i');
      }
    }
  }
  if (scripts.length === 0) scripts.push(rest.shift() ?? null);
  return {
    isInPlace,
    kept,
    isExtended,
    script: isOdd || scripts.includes(null) ? null : scripts.join('\n'),
    paths: rest,
  };
}
