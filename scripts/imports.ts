/**
 * The tree is the architecture: `npm run check` looks at every import in src/ and says which ones it does not allow. Imports of
 * types, dynamic imports and files directly in src/ count too; tests and fixtures may import what they like.
 *
 * By hand, because dependency-cruiser reads TypeScript with a compiler older than ours, or with one that does not tell an
 * import of types from one of values.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync, Visitor } from 'rolldown/utils';

/** What each stage, and each thing the stages stand on, may import from besides itself. */
const upstream: Readonly<Record<string, readonly string[]>> = {
  store: [], // and the types of every record
  artifacts: ['store'],
  engine: ['artifacts'],
  collect: ['store'],
  score: ['artifacts', 'collect', 'engine', 'store'],
  curate: ['artifacts', 'collect', 'score', 'store'],
  simulate: ['collect', 'score', 'engine'],
  train: ['artifacts', 'collect', 'score', 'curate', 'simulate', 'engine', 'store'],
  evaluate: ['artifacts', 'collect', 'score', 'curate', 'simulate', 'train', 'engine', 'store'],
  deploy: ['artifacts', 'collect', 'score', 'curate', 'train', 'evaluate', 'engine', 'store'],
  gateway: ['collect', 'deploy', 'engine', 'store'],
  loop: ['artifacts', 'collect', 'score', 'curate', 'simulate', 'train', 'evaluate', 'deploy', 'engine', 'store'],
  review: ['collect', 'score', 'evaluate', 'deploy', 'store'],
  privacy: ['artifacts', 'collect', 'curate', 'deploy', 'store'],
  api: [
    ...['artifacts', 'collect', 'score', 'curate', 'simulate', 'train', 'evaluate', 'deploy', 'gateway', 'loop'],
    ...['privacy', 'review', 'engine', 'store'],
  ],
  roles: [
    ...['artifacts', 'collect', 'score', 'curate', 'simulate', 'train', 'evaluate', 'deploy', 'gateway', 'loop'],
    ...['privacy', 'review', 'api', 'engine', 'store'],
  ],
};
/** Files directly in src/ that stages may import; the others put stages together. */
const forStages = [
  ...['agent.ts', 'audit.ts', 'client-keys.ts', 'command.ts', 'config.ts', 'errors.ts', 'terminal.ts', 'version.ts'],
  ...['collector.ts', 'durable.ts', 'priority.ts', 'root.ts', 'typescript.js', 'up-to.ts', 'user-module.ts'],
];
/** Where a process begins: nothing imports these but each other. */
const beginnings = ['main.ts', 'commands.ts'];

export type Import = {
  /** Files below src/. */
  readonly from: string;
  readonly to: string;
  readonly isType: boolean;
  readonly isDynamic: boolean;
};

/** The loop is a page, src/loop.ts, and what turns it. */
const folderOf = (file: string): string =>
  file === 'loop.ts' ? 'loop' : file.includes('/') ? file.slice(0, file.indexOf('/')) : '';

/** Why the import is not allowed; null: it is. */
export function problemOf({ from, to, isType }: Import): string | null {
  const stage = folderOf(from);
  const target = folderOf(to);
  if (beginnings.includes(to) && !beginnings.includes(from)) return 'a process begins there, and nothing else does';
  if (stage === '' || stage === target) return null;
  if (stage === 'store' && isType) return null;
  if (stage === 'loop' && to === 'loop.ts') return null;
  if (target === '') return forStages.includes(to) ? null : 'that file puts stages together';
  if (stage === 'store') return 'store/ knows of stages only the types of their records';
  const allowed = upstream[stage];
  if (allowed === undefined) return `${stage}/ is not in the list of scripts/imports.ts`;
  return allowed.includes(target) ? null : `${target}/ is not upstream of ${stage}/`;
}

export function importsOf(from: string, text: string): Import[] {
  const { module, program, errors } = parseSync(from, text);
  if (errors[0] !== undefined) throw new Error(`src/${from} cannot be read: ${errors[0].message}`);
  const found: (Pick<Import, 'isType' | 'isDynamic'> & { readonly specifier: string })[] = [];
  for (const { moduleRequest, entries } of module.staticImports) {
    const isType = entries.length > 0 && entries.every((entry) => entry.isType);
    found.push({ specifier: moduleRequest.value, isType, isDynamic: false });
  }
  for (const { moduleRequest, isType } of module.staticExports.flatMap(({ entries }) => entries))
    if (moduleRequest) found.push({ specifier: moduleRequest.value, isType, isDynamic: false });
  for (const { moduleRequest: at } of module.dynamicImports)
    found.push({ specifier: text.slice(at.start + 1, at.end - 1), isType: false, isDynamic: true });
  new Visitor({
    TSImportType: ({ source }) => void found.push({ specifier: source.value, isType: true, isDynamic: false }),
  }).visit(program);
  return found
    .filter(({ specifier }) => /^\.\.?\//.test(specifier))
    .map(({ specifier, ...kind }) => ({ from, to: normalize(join(dirname(from), specifier)), ...kind }));
}

/** Files that cannot be loaded one after the other, as paths that end where they begin. */
export function cyclesIn(imports: readonly Import[]): string[][] {
  const next = new Map<string, string[]>();
  for (const { from, to, isType, isDynamic } of imports)
    if (!isType && !isDynamic) next.set(from, [...(next.get(from) ?? []), to]);
  const cycles: string[][] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file]);
    if (path.includes(file) || done.has(file)) return;
    for (const to of next.get(file) ?? []) visit(to, [...path, file]);
    done.add(file);
  };
  for (const file of next.keys()) visit(file, []);
  return cycles;
}

const isForTests = (file: string): boolean =>
  /\.test\.ts$|(^|\/)fixtures|conformance\.ts$|test-(store|server)\.ts$/.test(file);

function problemsIn(root: string): string[] {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (file) => /\.[tj]s$/.test(file) && !isForTests(file),
  );
  const imports = files.flatMap((file) => importsOf(file, readFileSync(join(root, file), 'utf8')));
  return [
    ...imports.flatMap((one) => {
      const problem = problemOf(one);
      return problem === null ? [] : [`src/${one.from} imports ${one.to}: ${problem}.`];
    }),
    ...cyclesIn(imports).map((cycle) => `A cycle: ${cycle.join(' → ')}.`),
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = problemsIn(fileURLToPath(new URL('../src', import.meta.url)));
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
