/**
 * A rubric as people write it: a Markdown file with a heading per level and a list item per criterion.
 *
 *     # Tone
 *     ## Essential
 *     - Answers in the language of the user.
 *     - Names the order it is about. `/order \d+/i`
 *     ## Pitfall
 *     - Promises a day of delivery. (2)
 *
 * A regular expression in backquotes at the end makes a criterion a rule, which nobody is asked about; a number in parentheses at the
 * end is a weight in place of the level's. All other text is for people. Pure. Levels and weights are those of "Rubrics as
 * Rewards" (arXiv 2507.17746).
 */
import { ConfigError } from '../errors.ts';

export const levels = { essential: 1, important: 0.7, optional: 0.3, pitfall: 0.9 } as const;
export type Level = keyof typeof levels;

export type Criterion = {
  readonly level: Level;
  /** What must be so; of a pitfall, what must not. */
  readonly text: string;
  readonly weight?: number;
  /** Looked for in what the assistant said. Without it the judge is asked. */
  readonly rule?: RegExp;
};

const most = { bytes: 64 * 1024, criteria: 100, characters: 2000 };

/** `file` is what it is called in complaints. */
export function parseRubric(text: string, file: string): Criterion[] {
  if (Buffer.byteLength(text) > most.bytes) throw new ConfigError(`${file} is larger than ${most.bytes / 1024} KB.`);
  const criteria: Criterion[] = [];
  let level: Level | null = null;
  for (const [i, line] of itemsOf(text)) {
    const heading = /^#{1,6}\s+(.+?)\s*#*$/.exec(line);
    if (heading) {
      const word = heading[1]!.toLowerCase().replace(/s$/, '');
      // A title may say anything; a heading further down that is no level would lose its criteria without a word.
      if (word in levels) level = word as Level;
      else if (/^##/.test(line))
        throw new ConfigError(
          `${file}, line ${i}: '${heading[1]}' is no level; use ${Object.keys(levels).join(', ')}.`,
        );
      continue;
    }
    const item = /^[-*+]\s+(.+)$/.exec(line)?.[1];
    if (item === undefined) continue;
    if (level === null)
      throw new ConfigError(`${file}, line ${i}: a criterion needs a level above it, such as '## Essential'.`);
    criteria.push(criterionOf(level, item, `${file}, line ${i}`));
  }
  return checkCriteria(criteria, file);
}

/** Lines with their numbers, an indented line joined to the item it goes on with. */
function itemsOf(text: string): [number, string][] {
  const items: [number, string][] = [];
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    const last = items.at(-1);
    if (/^\s{2,}\S/.test(line) && last !== undefined && /^[-*+]\s/.test(last[1])) last[1] += ` ${line.trim()}`;
    else items.push([i + 1, line.trim()]);
  }
  return items;
}

function criterionOf(level: Level, item: string, place: string): Criterion {
  const weighed = /^(.*\S)\s+\((\d{1,4}(?:\.\d{1,4})?)\)$/.exec(item);
  const ruled = /^(.*\S)\s+`\/(.+)\/([imsu]{0,4})`$/.exec(weighed?.[1] ?? item);
  const weight = weighed ? Number(weighed[2]) : undefined;
  try {
    return {
      level,
      text: ruled?.[1] ?? weighed?.[1] ?? item,
      ...(weight === undefined ? {} : { weight }),
      ...(ruled ? { rule: new RegExp(ruled[2]!, ruled[3]) } : {}),
    };
  } catch (error) {
    throw new ConfigError(`${place}: ${(error as Error).message}`);
  }
}

export function checkCriteria(criteria: readonly Criterion[], file: string): Criterion[] {
  if (criteria.length === 0)
    throw new ConfigError(`${file} has no criterion; write '## Essential' and below it '- Answers the question.'`);
  if (criteria.length > most.criteria)
    throw new ConfigError(`${file} has ${criteria.length} criteria; at most ${most.criteria} are read.`);
  for (const { text, level, weight = levels[level] } of criteria) {
    if (text.trim() === '' || text.length > most.characters)
      throw new ConfigError(`${file}: a criterion has ${text.length} characters; 1 to ${most.characters} are allowed.`);
    if (!Number.isFinite(weight) || weight <= 0)
      throw new ConfigError(`${file}: '${text}' has weight ${weight}; give a number above 0.`);
  }
  return [...criteria];
}
