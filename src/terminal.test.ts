import { describe, expect, test } from 'vitest';
import { cut, oneLine, openTerminal, paint, plain, table, width, wrap } from './terminal.ts';

const bare = { columns: 80, paint: paint(false) };

describe('plain', () => {
  test('an escape sequence in recorded text becomes visible signs that a terminal does not obey', () => {
    expect(plain('a\u001b[31mred\u001b]0;title\u0007b')).toBe('a␛[31mred␛]0;title␇b');
  });

  test('no control character of either set survives, except line breaks', () => {
    const all = Array.from({ length: 0xa0 }, (_, code) => String.fromCharCode(code)).join('');
    const left = [...plain(all)].filter((c) => c.charCodeAt(0) < 0x20 || (c >= '\u007f' && c <= '\u009f'));
    expect(left).toEqual(['\n']);
  });

  test('a lone carriage return cannot overwrite the line, and Windows line ends are line ends', () => {
    expect(plain('safe\rEVIL')).toBe('safe␍EVIL');
    expect(plain('a\r\nb')).toBe('a\nb');
  });

  test('characters that turn the writing direction or are half a pair are replaced', () => {
    expect(plain('user\u202egnp.exe')).toBe('user\ufffdgnp.exe');
    expect(plain('\ud83d!')).toBe('\ufffd!');
  });

  test('ordinary text of any script stays as it is', () => {
    const text = 'naïve 주문 注文 🚚 👩‍💻 שלום';
    expect(plain(text)).toBe(text);
  });
});

describe('columns', () => {
  test('Korean, Chinese and emoji take two columns, accents none, colours none', () => {
    expect(width('주문')).toBe(4);
    expect(width('a注b')).toBe(4);
    expect(width('👩‍💻')).toBe(2);
    expect(width('e\u0301')).toBe(1);
    expect(width(paint(true).red('four'))).toBe(4);
  });

  test('cutting never exceeds the columns and never splits a wide character', () => {
    expect(cut('주문번호', 5)).toBe('주문…');
    expect(cut('주문번호', 8)).toBe('주문번호');
    expect(cut('order', 4)).toBe('ord…');
    expect(cut('x'.repeat(1_000_000), 3)).toBe('xx…');
  });

  test('wrapping breaks at spaces, and inside a word only when the word is too long', () => {
    expect(wrap('where is my order', 9)).toEqual(['where is', 'my order']);
    expect(wrap('abcdefghijkl', 8)).toEqual(['abcdefgh', 'ijkl']);
    expect(wrap('a\n\nb', 20)).toEqual(['a', '', 'b']);
  });

  test('one line shows line breaks as a sign', () => {
    expect(oneLine('a\n  b')).toBe('a ⏎ b');
  });
});

describe('table', () => {
  const columns = [
    { title: 'id', shrinkTo: 4 },
    { title: 'turns', right: true },
  ];

  test('columns are aligned by width, numbers to the right', () => {
    expect(
      table(
        columns,
        [
          ['주문', '7'],
          ['a', '12'],
        ],
        bare,
      ),
    ).toEqual(['id    turns', '주문      7', 'a        12']);
  });

  test('only columns that may shrink do, and no line is wider than the terminal', () => {
    const lines = table(columns, [['x'.repeat(50), '3']], { ...bare, columns: 20 });
    expect(lines[1]).toBe(`${'x'.repeat(12)}…      3`);
    expect(lines.every((line) => width(line) <= 20)).toBe(true);
  });

  test('a cell cannot smuggle an escape sequence or a second line', () => {
    expect(table(columns, [['\u001b[2J\nx', '1']], bare).join('')).not.toContain('\u001b');
  });
});

test('colours are for a terminal that has them; a pipe gets none and wide lines', () => {
  const stream = (isTTY: boolean, colours: boolean) =>
    ({ isTTY, columns: 90, hasColors: () => colours, listenerCount: () => 1 }) as unknown as NodeJS.WriteStream;
  const red = (isTTY: boolean, colours: boolean) => openTerminal(stream(isTTY, colours)).paint.red('x');
  expect([red(true, true), red(true, false), red(false, true)]).toEqual(['\u001b[31mx\u001b[39m', 'x', 'x']);
  expect([openTerminal(stream(true, true)).columns, openTerminal(stream(false, true)).columns]).toEqual([90, 160]);
});

test('a long text is measured and broken in time in proportion to it, its graphemes whole', () => {
  const timeOf = (length: number) => {
    const started = process.cpuUsage();
    wrap('漢'.repeat(length), 80);
    const { user, system } = process.cpuUsage(started);
    return Math.max(4, (user + system) / 1000);
  };
  const [few, many] = [3_000, 24_000].map((length) => Math.min(timeOf(length), timeOf(length)));
  expect(many! / few!).toBeLessThan(24); // 64 where each grapheme has all of the text looked at
  for (const one of ['👩‍👩‍👧 ', '🇩🇪', 'e\u0301', '각', '漢'])
    for (const before of ['', 'a', '🚚']) {
      const text = before + one.repeat(1_200);
      expect(width(text), one).toBe(width(before) + 1_200 * width(one));
      expect(wrap(text, 40).join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''));
    }
});
