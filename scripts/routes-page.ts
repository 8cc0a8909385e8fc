/**
 * docs/routes.md, written from the declarations of /api: every route, who may ask, what it takes and answers. Run
 * (`npx tsx scripts/routes-page.ts`) it brings the page up to date; test/settings-page.test.ts checks that it is.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import { createApi } from '../src/api/api.ts';
import { documentOf } from '../src/api/document.ts';

type Schema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly required?: readonly string[];
};
type Operation = {
  readonly summary?: string;
  readonly 'x-pawl-role'?: string;
  readonly parameters?: readonly {
    in: string;
    name: string;
    required?: boolean;
    schema?: Schema;
    description?: string;
  }[];
  readonly requestBody?: { readonly content?: Readonly<Record<string, { schema?: Schema }>> };
  readonly responses?: Readonly<
    Record<string, { content?: Readonly<Record<string, { schema?: Schema }>>; description?: string }>
  >;
};

/** The declarations need a database's shape, not a database: nothing is asked of this one. */
const nowhere = new Kysely({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});

export function routesPage(): string {
  const api = createApi({
    store: { db: nowhere, pool: null, within: () => null } as never,
    artifacts: { home: '' } as never,
    config: { agents: [], upstreams: {}, engine: { kind: 'embedded' } } as never,
    ...{ secret: '', adminHash: '', recorder: () => null },
  });
  const { paths = {}, components } = documentOf(api) as unknown as {
    paths: Record<string, Record<string, Operation>>;
    components: { schemas: Record<string, Schema> };
  };
  const known = components.schemas;

  const shapeOf = (schema: Schema | undefined): string => {
    if (schema === undefined) return 'anything';
    if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1)!;
    if (schema.enum !== undefined) return schema.enum.map(String).join(', ');
    if (schema.anyOf !== undefined) return schema.anyOf.map(shapeOf).join(' or ');
    if (schema.items !== undefined) return `${shapeOf(schema.items)}[]`;
    if (schema.properties !== undefined) return `{ ${Object.keys(schema.properties).join(', ')} }`;
    return typeof schema.type === 'string' ? schema.type : (schema.type ?? ['anything']).join(' or ');
  };
  const bodyOf = (schema: Schema | undefined): Schema | undefined =>
    schema?.$ref === undefined ? schema : known[schema.$ref.split('/').at(-1)!];
  const cell = (text: string) =>
    text
      .replace(/(?<!\\)\|/g, '\\|')
      .replace(/\s+/g, ' ')
      .trim();

  const section = (path: string, method: string, operation: Operation): string => {
    const body = bodyOf(operation.requestBody?.content?.['application/json']?.schema);
    const fields = [
      ...(operation.parameters ?? []).map((one) => ({
        ...{
          name: one.name,
          place: one.in,
          needed: one.required === true || one.in === 'path',
          shape: shapeOf(one.schema),
        },
        said: one.description ?? one.schema?.description ?? '',
      })),
      ...Object.entries(body?.properties ?? {}).map(([name, schema]) => ({
        ...{ name, place: 'body', needed: body?.required?.includes(name) ?? false, shape: shapeOf(schema) },
        said: schema.description ?? '',
      })),
    ];
    const answers = Object.entries(operation.responses ?? {})
      .filter(([status]) => !['400', '401', '403', '503'].includes(status))
      .map(([status, { content = {}, description = '' }]) => {
        const [form] = Object.values(content);
        return `${status}: ${description}${form?.schema && Number(status) < 300 ? ` \`${shapeOf(form.schema)}\`` : ''}`;
      });
    return [
      `### ${method.toUpperCase()} ${path}`,
      '',
      `${operation.summary ?? ''}. Needs: ${operation['x-pawl-role'] ?? 'nobody in particular'}.`,
      '',
      ...(fields.length === 0
        ? []
        : [
            '| field | in | what it is |',
            '| --- | --- | --- |',
            ...fields.map(
              ({ name, place, needed, shape, said }) =>
                `| \`${name}\`${needed ? '' : ' (optional)'} | ${place} | ${cell(said === '' ? shape : `${shape}. ${said}`)} |`,
            ),
            '',
          ]),
      ...answers.map((answer) => `- ${answer}`),
    ].join('\n');
  };
  const sections = Object.entries(paths)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([path, item]) => Object.entries(item).map(([method, operation]) => section(path, method, operation)));
  return `# Every route of /api

Written from the code (\`npx tsx scripts/routes-page.ts\`). The same as JSON, with every shape, is \`/api/openapi.json\` of a running Pawl. Who may ask what, and
how, is in [the dashboard's page](dashboard.md#access-and-live-data). Every route may also answer 400 (a field is wrong, the message names it), 401, 403 and 503
(the database is away, or too many are reading; \`Retry-After\` says when to try again), as \`{ error: { message, code } }\`.

${sections.join('\n\n')}
`;
}

export const routesFile = new URL('../docs/routes.md', import.meta.url);

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(routesFile, routesPage());
