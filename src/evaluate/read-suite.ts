/**
 * A suite from its file: one JSON object a line, all of one kind. A line with `messages` is a case (case.ts), any other a task
 * of the agent's environment. Everything that is wrong is said at once, each with its line.
 */
import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { z } from 'zod';
import { isObject, parseUntrusted } from '../collect/untrusted.ts';
import { ConfigError } from '../errors.ts';
import { type Environment, parseTask } from '../simulate/environment.ts';
import { caseSchema } from './case.ts';
import { makeCaseSuite, makeSuite, type Suite } from './suite.ts';

export const limits = { fileBytes: 64 * 1024 * 1024, lineCharacters: 1024 * 1024, lines: 10_000 };
const problemsShown = 10;

export async function readSuite<Data, Database>(
  path: string,
  agent: string,
  environment: Environment<Data, Database> | null,
): Promise<Suite<Data>> {
  const size = await stat(path).then(
    (found) => found.size,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') throw new ConfigError(`There is no suite ${path}: no such file.`, { cause: error });
      throw new ConfigError(`The suite ${path} cannot be read: ${error.message}`, { cause: error });
    },
  );
  if (size > limits.fileBytes)
    throw new ConfigError(`The suite ${path} has ${size} bytes; at most ${limits.fileBytes} are read.`);
  return parseSuite(path, await readFile(path, 'utf8'), agent, environment);
}

type Line = { readonly number: number; readonly value: Record<string, unknown> };

export function parseSuite<Data, Database>(
  path: string,
  text: string,
  agent: string,
  environment: Environment<Data, Database> | null,
): Suite<Data> {
  const problems: string[] = [];
  const lines = linesOf(text, path, problems);
  const first = lines[0];
  if (first === undefined && problems.length === 0)
    throw new ConfigError(`The suite ${path} is empty; write one case a line: {"id", "type", "messages", "expect"}.`);
  const isCase = ({ value }: Line): boolean => Object.hasOwn(value, 'messages');
  const hasCases = first !== undefined && isCase(first);
  const twin = new Map<unknown, number>();
  const each = <Entry extends { readonly id: string }>(parse: (value: unknown) => Entry): Entry[] =>
    lines.flatMap((line) => {
      try {
        if (isCase(line) !== hasCases)
          throw new Error(
            `is a ${hasCases ? 'task' : 'case'}, where line ${first!.number} is a ${hasCases ? 'case' : 'task'}; a suite is all of one kind`,
          );
        const entry = parse(line.value);
        const before = twin.get(entry.id);
        if (before !== undefined) throw new Error(`has the id ${entry.id} of line ${before}; ids must differ`);
        twin.set(entry.id, line.number);
        return [entry];
      } catch (error) {
        problems.push(`line ${line.number}: ${sentenceOf(error)}`);
        return [];
      }
    });
  const name = basename(path).replace(/\.jsonl?$/i, '');
  let suite: Suite<Data> | null = null;
  if (hasCases)
    suite = makeCaseSuite(
      name,
      each((value) => caseSchema.parse(value)),
    );
  else if (first !== undefined && environment === null)
    problems.push(
      `line ${first.number}: has no \`messages\`, so it is a task of an environment, and agent ${agent} has none; set \`environment\` in its file, or write cases: {"id", "type", "messages", "expect"}`,
    );
  else if (environment !== null) {
    const tasks = each((value) => {
      const task = parseTask(environment, value);
      if (task.split === 'train') throw new Error(`is from the train split; judge by tasks that are not trained on`);
      return task;
    });
    if (problems.length === 0) suite = makeSuite(name, tasks);
  }
  if (problems.length > 0 || suite === null) throw unusable(path, problems);
  return suite;
}

function linesOf(text: string, path: string, problems: string[]): Line[] {
  const lines: Line[] = [];
  for (const [i, line] of text
    .replace(/^\ufeff/, '')
    .split('\n')
    .entries()) {
    if (line.trim() === '') continue;
    if (lines.length === limits.lines)
      throw new ConfigError(
        `The suite ${path} has more than ${limits.lines} lines; a smaller one is told apart as well.`,
      );
    const value = line.length > limits.lineCharacters ? null : parseUntrusted(line);
    if (isObject(value)) lines.push({ number: i + 1, value });
    else
      problems.push(
        `line ${i + 1}: ${value === null && line.length > limits.lineCharacters ? `has ${line.length} characters; at most ${limits.lineCharacters} are read` : 'is no JSON object'}`,
      );
  }
  return lines;
}

const sentenceOf = (error: unknown): string =>
  error instanceof z.ZodError
    ? error.issues.map(({ path, message }) => `${path.join('.') || 'the whole'}: ${message}`).join('; ')
    : (error as Error).message;

function unusable(path: string, problems: readonly string[]): ConfigError {
  const inOrder = [...problems].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const shown = inOrder.slice(0, problemsShown).map((problem) => `  ${problem}`);
  const more = problems.length - shown.length;
  return new ConfigError(
    `The suite ${path} cannot be used:\n${shown.join('\n')}${more > 0 ? `\n  and ${more} more` : ''}`,
  );
}
