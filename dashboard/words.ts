/** Numbers, times and commands as people read them. */
const thousand = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const count = (n: number): string => thousand.format(n);

/** 1,234 → 1,234; 45,600 → 45.6k; 7,800,000 → 7.8M. */
export function short(n: number): string {
  if (Math.abs(n) < 10_000) return thousand.format(n);
  const [divisor, unit] = Math.abs(n) < 1e6 ? [1e3, 'k'] : Math.abs(n) < 1e9 ? [1e6, 'M'] : [1e9, 'G'];
  return `${(n / divisor).toFixed(Math.abs(n / divisor) < 100 ? 1 : 0)}${unit}`;
}

export const percent = (share: number, digits = 1): string => `${(100 * share).toFixed(digits)}%`;

/** Points between two shares, with its sign. */
export const points = (difference: number): string =>
  `${difference < 0 ? '−' : '+'}${Math.abs(100 * difference).toFixed(1)}`;

export const fixed = (n: number, digits = 3): string => n.toFixed(digits);

export function duration(ms: number): string {
  if (ms < 1) return '< 1 ms';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  if (ms < 172_800_000) return `${(ms / 3_600_000).toFixed(1)} h`;
  return `${(ms / 86_400_000).toFixed(1)} days`;
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  const at = Math.min(4, Math.floor(Math.log2(n) / 10));
  return `${(n / 1024 ** at).toFixed(1)} ${['B', 'kB', 'MB', 'GB', 'TB'][at]}`;
}

export const money = (n: number): string =>
  new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', maximumFractionDigits: n < 100 ? 2 : 0 }).format(n);

const two = (n: number): string => String(n).padStart(2, '0');
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** In the reader's zone: 14:02:11 of today, 3 Nov 14:02 of this year, 3 Nov 2025 of another. */
export function clock(at: Date, now: Date): string {
  const time = `${two(at.getHours())}:${two(at.getMinutes())}`;
  if (at.toDateString() === now.toDateString()) return `${time}:${two(at.getSeconds())}`;
  const day = `${at.getDate()} ${months[at.getMonth()]}`;
  return at.getFullYear() === now.getFullYear() ? `${day} ${time}` : `${day} ${at.getFullYear()}`;
}

export function ago(at: Date, now: Date): string {
  const seconds = Math.round((now.getTime() - at.getTime()) / 1000);
  const [n, unit] =
    Math.abs(seconds) < 60
      ? [seconds, 's']
      : Math.abs(seconds) < 3600
        ? [Math.round(seconds / 60), 'min']
        : Math.abs(seconds) < 172_800
          ? [Math.round(seconds / 3600), 'h']
          : [Math.round(seconds / 86_400), 'days'];
  return n < 0 ? `in ${-n} ${unit}` : `${n} ${unit} ago`;
}

/** One word of a command, so that a shell takes it as it stands. */
export const shellWord = (word: string): string =>
  /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** `pawl …` with every word safe to paste; what is undefined is left out, a pair is an option with its value. */
export const pawl = (...words: readonly (string | undefined | readonly [string, string | undefined])[]): string =>
  [
    'pawl',
    ...words.flatMap((word) =>
      word === undefined
        ? []
        : typeof word === 'string'
          ? [shellWord(word)]
          : word[1] === undefined || word[1] === ''
            ? []
            : [word[0], shellWord(word[1])],
    ),
  ].join(' ');
