/**
 * The tables of docs/settings.md, written from the code: settings from the schema, environment variables from their list.
 * Run (`npx tsx scripts/settings-page.ts`) it brings the page up to date; test/settings-page.test.ts checks that it is.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { agentSchema } from '../src/agent.ts';
import { settingsSchema } from '../src/config.ts';
import { variables } from '../src/environment.ts';

type Described = {
  readonly type?: string;
  readonly description?: string;
  readonly unit?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Described>>;
  readonly additionalProperties?: Described | boolean;
};
type Row = { readonly name: string; readonly default: string; readonly unit: string; readonly sentence: string };

function rowsOf(schema: Described, prefix = ''): Row[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, one]) => {
    const name = `${prefix}${key}`;
    const inner = one.additionalProperties;
    const row: Row = {
      name,
      default: one.default === undefined ? '' : `\`${JSON.stringify(one.default)}\``,
      unit: one.unit ?? '',
      sentence: one.description ?? '',
    };
    if (one.properties) return rowsOf(one, `${name}.`);
    if (typeof inner === 'object' && inner.properties) return [row, ...rowsOf(inner, `${name}.NAME.`)];
    return [row];
  });
}

const table = (titles: readonly string[], rows: readonly (readonly string[])[]): string =>
  [titles, titles.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

const rowsOfSchema = (schema: z.ZodType): Row[] =>
  rowsOf(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Described);
/** Agents have a table of their own. */
export const settingRows = (): Row[] =>
  rowsOfSchema(settingsSchema).map((row) => (row.name === 'agents' ? { ...row, default: '' } : row));
export const agentRows = (): Row[] =>
  rowsOfSchema(agentSchema).map((row) => (row.name === 'reward' ? { ...row, default: '' } : row));

const variableOfSetting = (name: string): string =>
  Object.entries(variables)
    .filter(([, { setting }]) => setting?.join('.').replace('upstreams.default.', 'upstreams.NAME.') === name)
    .map(([variable]) => `\`${variable}\``)
    .join(', ');

const tables: Readonly<Record<string, () => string>> = {
  settings: () =>
    table(
      ['setting', 'default', 'unit', 'what it says', 'variable'],
      settingRows().map((row) => [`\`${row.name}\``, row.default, row.unit, row.sentence, variableOfSetting(row.name)]),
    ),
  agent: () =>
    table(
      ['setting', 'default', 'unit', 'what it says'],
      agentRows().map((row) => [`\`${row.name}\``, row.default, row.unit, row.sentence]),
    ),
  variables: () =>
    table(
      ['variable', 'what it says'],
      Object.entries(variables).map(([name, { sentence, inner }]) => [
        `\`${name}\``,
        inner ? `${sentence} Not for users.` : sentence,
      ]),
    ),
};

export const page = new URL('../docs/settings.md', import.meta.url);

/** The page with its tables as the code has them. */
export const pageFrom = (text: string): string =>
  Object.entries(tables).reduce(
    (at, [name, make]) =>
      at.replace(
        new RegExp(`(<!-- ${name} -->\n)[\\s\\S]*?(<!-- /${name} -->)`),
        (_, begin: string, end: string) => `${begin}${make()}\n${end}`,
      ),
    text,
  );

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(page, pageFrom(readFileSync(page, 'utf8')));
