/**
 * Text for people at a terminal: making recorded text harmless, measuring and cutting it by columns, colours, tables.
 *
 * Recorded text comes from strangers. A terminal obeys control characters (it can be made to rewrite lines, set the
 * clipboard, change its title) and shows bidirectional overrides as other words than were written, so `plain` replaces
 * all of them by visible signs. Everything that was recorded goes through it before anything else here touches it.
 * Widths follow Unicode's East Asian Width in coarse ranges: good enough for columns, not a typesetter.
 */
import { stripVTControlCharacters } from 'node:util';

const control =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the purpose
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;

/** Nothing in the result moves the cursor, starts an escape sequence or turns the writing direction. Line breaks stay. */
export const plain = (text: string): string =>
  text
    .replace(/\r\n/g, '\n')
    .replace(/\t/g, '    ')
    .replace(control, (found) => {
      const code = found.charCodeAt(0);
      if (code < 0x20) return String.fromCharCode(0x2400 + code);
      return code === 0x7f ? '\u2421' : '\ufffd';
    });

/** `plain`, on one line. */
export const oneLine = (text: string): string =>
  plain(text.slice(0, 4000))
    .replace(/\s*\n\s*/g, ' ⏎ ')
    .trim();

/** `1 conversation`, `1,200 conversations`. */
export const counted = (n: number, one: string, more = `${one}s`): string =>
  `${n.toLocaleString('en-US')} ${n === 1 ? one : more}`;

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
// biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII is counted without looking further
const ascii = /^[\u0000-\u007f]*$/;
const invisible = /^[\p{Mark}\p{Default_Ignorable_Code_Point}]+$/u;
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u;

const widthOfGrapheme = (grapheme: string): number => (invisible.test(grapheme) ? 0 : wide.test(grapheme) ? 2 : 1);

/** So much is cut into graphemes at a time: the library looks at all that it was given for each of them. */
const together = 500;

function* graphemesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    // Half a character would begin a grapheme that it is no part of; the last one may go on.
    const end = at + together + (/[\ud800-\udbff]/.test(text.charAt(at + together - 1)) ? 1 : 0);
    const found = [...segmenter.segment(text.slice(at, end))];
    if (end < text.length && found.length > 1) found.pop();
    for (const { segment } of found) {
      yield segment;
      at += segment.length;
    }
  }
}

/** Columns the text takes on a terminal; colours count nothing. */
export function width(text: string): number {
  const bare = text.includes('\u001b') ? stripVTControlCharacters(text) : text;
  if (ascii.test(bare)) return bare.length;
  let columns = 0;
  for (const grapheme of graphemesOf(bare)) columns += widthOfGrapheme(grapheme);
  return columns;
}

/** The text if it fits, else as much as fits and an ellipsis. For text without colours. */
export function cut(text: string, columns: number): string {
  if (text.length <= columns && ascii.test(text)) return text;
  // Never measure a megabyte for one line: no grapheme is narrower than nothing, but few are.
  const head = text.slice(0, columns * 8 + 64);
  if (head === text && width(text) <= columns) return text;
  let out = '';
  let used = 0;
  for (const grapheme of graphemesOf(head)) {
    const next = widthOfGrapheme(grapheme);
    if (used + next > columns - 1) break;
    out += grapheme;
    used += next;
  }
  return columns < 1 ? '' : `${out}…`;
}

const pad = (text: string, columns: number, right: boolean): string => {
  const space = ' '.repeat(Math.max(0, columns - width(text)));
  return right ? space + text : text + space;
};

/** Lines of at most `columns`, broken at spaces where there are some. For text without colours. */
export function wrap(text: string, columns: number): string[] {
  const room = Math.max(8, columns);
  const lines: string[] = [];
  for (const paragraph of text.split('\n')) {
    let line = '';
    let used = 0;
    const push = () => {
      lines.push(line.trimEnd());
      line = '';
      used = 0;
    };
    for (const word of paragraph.split(/(?<= )(?! )/)) {
      const needs = width(word.trimEnd());
      if (used > 0 && used + needs > room) push();
      if (needs <= room) {
        line += word;
        used += width(word);
        continue;
      }
      for (const grapheme of graphemesOf(word)) {
        const next = widthOfGrapheme(grapheme);
        if (used + next > room) push();
        line += grapheme;
        used += next;
      }
    }
    lines.push(line.trimEnd());
  }
  return lines;
}

const shades = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;
export type Paint = Readonly<Record<keyof typeof shades, (text: string) => string>>;

export function paint(colours: boolean): Paint {
  const entries = Object.entries(shades).map(([name, [on, off]]) => [
    name,
    (text: string) => (colours && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text),
  ]);
  return Object.fromEntries(entries) as Paint;
}

export type Terminal = { readonly columns: number; readonly paint: Paint; write(text: string): void };

/** Standard output. Node's `hasColors` honours NO_COLOR and TERM=dumb. A pipe gets no colours and wide lines. */
export function openTerminal(stream: NodeJS.WriteStream = process.stdout): Terminal {
  const tty = stream.isTTY === true;
  return {
    columns: tty ? Math.max(40, stream.columns ?? 80) : 160,
    paint: paint(tty && stream.hasColors()),
    write: (text) => void stream.write(`${text}\n`),
  };
}

export type Column = {
  readonly title: string;
  /** Numbers read best when their last digits stand below each other. */
  readonly right?: boolean;
  /** May be cut, down to this many columns, when the terminal is too narrow; without it the column keeps its width. */
  readonly shrinkTo?: number;
};

/** Rows under titles. Cells are recorded text as it is; `colour` may paint a finished cell by its row. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  terminal: Pick<Terminal, 'columns' | 'paint'>,
  colour: (cell: string, row: number, column: number) => string = (cell) => cell,
): string[] {
  const cells = rows.map((row) => row.map(oneLine));
  const widths = columns.map(({ title }, i) => Math.max(width(title), ...cells.map((row) => width(row[i] ?? ''))));
  let over = widths.reduce((sum, w) => sum + w + 2, -2) - terminal.columns;
  while (over > 0) {
    // Take from the widest that may still shrink, so that no one column loses everything.
    let widest = -1;
    for (const [i, { shrinkTo }] of columns.entries())
      if (shrinkTo !== undefined && widths[i]! > shrinkTo && (widest < 0 || widths[i]! > widths[widest]!)) widest = i;
    if (widest < 0) break;
    widths[widest]!--;
    over--;
  }
  const line = (values: readonly string[], dress: (cell: string, column: number) => string) =>
    columns
      .map(({ right }, i) => dress(pad(cut(values[i] ?? '', widths[i]!), widths[i]!, right ?? false), i))
      .join('  ')
      .trimEnd();
  return [
    line(
      columns.map(({ title }) => title),
      (cell) => terminal.paint.dim(cell),
    ),
    ...cells.map((row, r) => line(row, (cell, c) => colour(cell, r, c))),
  ];
}

/** For work that takes longer than people wait without a word: how far it is, on standard error, every two seconds. */
export function sayProgress(everyMs = 2000): (line: () => string) => void {
  let next = Date.now() + everyMs;
  return (line) => {
    if (Date.now() < next) return;
    next = Date.now() + everyMs;
    console.error(plain(line()));
  };
}
