/**
 * Personal data of invented people through all of Pawl: into the gateway in every place that a caller or a model server can write to, by
 * every door that records, by labels and by import, through scoring and curating into exported files, and then looked for in every byte that is left: the database's files and
 * its log, the journal, the process's output, and the exports. Names and addresses too, since entities are looked for
 * before recording here; where they are looked for when a dataset is made (`entities`), they are in the database and what shows it, and nowhere else. With `learns` a model is trained on them as well and a release made of it: then also in what the run keeps of
 * itself (episodes, curves, weights), what an MLflow server is told, the model card, and what commands say.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startMlflow } from '../src/train/fixtures/mlflow.ts';
import { canariesOf } from './identities.ts';
import { startPawl, until } from './pawl.ts';
import { startUpstream } from './upstream.ts';

const run = promisify(execFile);
const AT_ONCE = 8;
const IMPORTED_AT_ONCE = 50;
const userOf = (number: number): string => `zq${number}@canary-mail.com`;

export type CanaryResult = {
  /** `kind in file: …what stands around it…`, the first of each value that survived. */
  readonly survivors: string[];
  readonly kinds: number;
  readonly turns: number;
  readonly files: number;
  /** Lines of the exported files. */
  readonly exported: number;
};

export async function runCanary(
  people: number,
  { learns = false, entities = 'record' }: { learns?: boolean; entities?: 'record' | 'curate' } = {},
): Promise<CanaryResult> {
  const mlflow = await startMlflow();
  const upstream = await startUpstream();
  const folder = mkdtempSync(join(tmpdir(), 'pawl-canary-'));
  const config = join(folder, 'pawl.config.ts');
  const curate = { minScore: 0, minMeasured: 0, kAnonymity: 1, nearDuplicate: 1, maxUserShare: 1 };
  const agent = { name: 'agent', curate };
  const settings = {
    agents: [agent],
    upstreams: { echo: { baseUrl: upstream.url } },
    pii: { entities },
    mlflow: { url: mlflow.url },
  };
  writeFileSync(config, `export default ${JSON.stringify(settings)};`);
  const home = join(folder, 'home');
  const pawl = await startPawl({}, home, undefined, ['--config', config]);
  try {
    const post = (path: string, body: object, headers: Record<string, string> = {}) =>
      fetch(pawl.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${pawl.key}`, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
    const asAdmin = (path: string, body: object | string) =>
      fetch(pawl.url + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${pawl.adminToken}`,
          'content-type': typeof body === 'string' ? 'application/x-ndjson' : 'application/json',
        },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      });
    let turns = 0;
    const one = async (number: number): Promise<void> => {
      const canaries = canariesOf(number);
      const user = userOf(number);
      const ssn = canaries.find(({ kind }) => kind === 'us-ssn')!.raw[0]!;
      await fetch(`${pawl.url}/api/consent/${encodeURIComponent(user)}?agent=agent`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${pawl.adminToken}` },
      });
      for (const [i, { text }] of canaries.entries()) {
        const call = {
          id: 'c1',
          type: 'function',
          function: { name: 'find', arguments: JSON.stringify({ note: text }) },
        };
        const places: object[][] = [
          [{ role: 'user', content: text }],
          [{ role: 'user', content: [{ type: 'text', text: `${text} ` }] }],
          [
            { role: 'system', content: `About the caller: ${text}` },
            { role: 'user', content: `Number ${number}.` },
          ],
          [
            { role: 'user', content: 'Find it.' },
            { role: 'assistant', content: null, tool_calls: [call] },
            {
              role: 'tool',
              tool_call_id: 'c1',
              content: JSON.stringify({ found: text, deep: JSON.stringify({ text }) }),
            },
            { role: 'user', content: `Thanks, ${number}.` },
          ],
        ];
        const model = i % 7 === 6 ? 'refuse-echo' : i % 7 === 3 ? 'cut' : 'echo';
        const response = await post(
          '/v1/chat/completions',
          {
            model,
            user,
            stream: i % 2 === 0,
            messages: places[(i + number) % places.length],
            metadata: { note: text },
          },
          {
            'x-pawl-trajectory': `c${number}.${i}:${ssn}`, // what is allowed in an id can be somebody's number
            'x-pawl-key': `mail:${user}`,
            'x-request-note': encodeURIComponent(text),
          },
        );
        if (response.status === 400 && model === 'echo') throw new Error(await response.text());
        turns++;
        const turn = response.headers.get('x-pawl-turn');
        await response.arrayBuffer().catch(() => {}); // one that was cut
        if (turn === null) continue;
        await post('/v1/feedback', { turn, vote: 'up', user, comment: text, correction: `Say ${text}` });
        await post('/v1/events', { turn, event: 'edited', user, text: `Rather ${text}` });
        const said = { score: 0.5, reviewer: user, comment: text, correction: `Better ${text}` };
        const labelled = await asAdmin('/api/labels', { agent: 'agent', labels: [{ turn, ...said }] });
        if (!labelled.ok) throw new Error(await labelled.text());
        const [path, body] = otherDoors(text)[(i + number) % 4]!;
        const other = await post(
          path,
          { model: 'echo', user, max_tokens: 50, ...body },
          { 'x-pawl-key': `mail:${user}` },
        );
        await other.arrayBuffer();
        if (other.headers.get('x-pawl-turn') === null) throw new Error(`${path} was not recorded: ${other.status}.`);
        turns++;
      }
    };
    let few = '';
    for (let from = 0; from < people; from += AT_ONCE) {
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, people - from) }, (_, i) => one(from + i)));
      few ||= new Date().toISOString();
    }
    for (let from = 0; from < people; from += IMPORTED_AT_ONCE) {
      const numbers = Array.from({ length: Math.min(IMPORTED_AT_ONCE, people - from) }, (_, i) => from + i);
      const lines = numbers.flatMap(importLines);
      const imported = await asAdmin('/api/trajectories/import?agent=agent', lines.join('\n'));
      const counts = await imported.text();
      if (!imported.ok) throw new Error(counts);
      turns += lines.length;
    }
    const store = await pawl.store();
    const stored = async () =>
      Number(
        (
          await store.db
            .selectFrom('turns')
            .select((e) => e.fn.countAll().as('n'))
            .executeTakeFirstOrThrow()
        ).n,
      );
    await until(stored, (n) => n >= turns).finally(() => store.close());
    const command = async (...args: string[]) =>
      (
        await run(process.execPath, ['bin/pawl.js', ...args, '--config', config], {
          maxBuffer: 1 << 28,
          env: { ...process.env, PAWL_HOME: home, DATABASE_URL: '' },
        })
      ).stdout;
    const dataset = JSON.parse(await command('curate', 'run', '--since', '1d', '--json')) as { id: string };
    const outputs = await Promise.all(
      ['trl-sft', 'trl-preference', 'openai-chat'].map(async (format) => {
        const out = join(folder, `${format}.jsonl`);
        await command('datasets', 'export', dataset.id, '--format', format, '--out', out);
        return out;
      }),
    );
    const exported = outputs.reduce(
      (sum, path) => sum + readFileSync(path, 'utf8').split('\n').filter(Boolean).length,
      0,
    );
    const said = [await command('pii', 'report', '--since', '1d', '--json'), await command('overview')];
    /** What is stored, to who may look at it. */
    const shown: string[] = [];
    if (learns) {
      const without = ['--without', 'points,clean,private,types,balance,canaries,shifts'];
      const practice = ['--environment', 'examples/support-desk/desk.ts#supportDesk', '--steps', '1'];
      const little = [...practice, '--tasks-per-step', '2', '--attempts', '2', '--budget-tokens', '200000'];
      const base = ['--base', 'examples/support-desk/model', '--recipe', 'sft-grpo', '--id', 'seen'];
      // Of the first few: what they would teach is not the question.
      const some = JSON.parse(await command('curate', 'run', '--since', '1d', '--until', few, '--json')) as {
        id: string;
      };
      const trained = await command('train', '--dataset', some.id, ...base, ...little, ...without, '--json');
      said.push(trained, await command('runs', 'show', 'seen'), await command('runs', 'episodes', 'seen'));
      const weights = (JSON.parse(trained) as { model: string }).model;
      said.push(await command('releases', 'create', 'seen', '--checkpoint', weights, '--run', 'seen'));
      said.push(await command('releases', 'card', 'seen'), await command('reward', 'what-if', 'feedback:1'));
      for (const list of ['reward status', 'audit list', 'overview --json'])
        said.push(await command(...list.split(' ')));
      for (const list of ['labels list', 'labels export', 'review list']) shown.push(await command(...list.split(' ')));
      if (mlflow.runs.length !== 1) throw new Error(`MLflow was told of ${mlflow.runs.length} runs.`);
    }
    await pawl.kill();
    const told = mlflow.runs.map(({ params, tags, ...run }) => ({ ...run, params: [...params], tags: [...tags] }));
    const texts: [string, Buffer][] = [
      ['output', Buffer.from(pawl.output() + said.join('\n'))],
      ['shown', Buffer.from(shown.join('\n'))],
      ['MLflow', Buffer.from(JSON.stringify(told))],
      ...filesIn(folder).map((path): [string, Buffer] => [path.slice(folder.length), readFileSync(path)]),
    ];
    const isStored = /^(?:shown$|\/home\/(?:postgres|journal)\/)/;
    const isSought = (kind: string, where: string) =>
      entities === 'record' || !['person', 'kr-person', 'address'].includes(kind) || !isStored.test(where);
    const survivors = search(texts, people, isSought);
    return { survivors, kinds: canariesOf(0).length, turns, files: texts.length, exported };
  } finally {
    await pawl.kill();
    await upstream.close();
    await mlflow.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The doors beside chat, in the forms of their own. */
const otherDoors = (text: string): [string, object][] => [
  ['/v1/embeddings', { input: [text, `again ${text}`] }],
  ['/v1/completions', { prompt: text }],
  ['/v1/responses', { instructions: text, input: [{ role: 'user', content: [{ type: 'input_text', text }] }] }],
  ['/v1/messages', { system: text, messages: [{ role: 'user', content: [{ type: 'text', text }] }] }],
];

const importLines = (number: number): string[] => {
  const canaries = canariesOf(number);
  const ssn = canaries.find(({ kind }) => kind === 'us-ssn')!.raw[0]!;
  return canaries.map(({ text }, i) => importLine(`i${number}.${i}:${ssn}`, userOf(number), text));
};
const importLine = (id: string, user: string, text: string): string => {
  const call = { id: 'c1', type: 'function', function: { name: 'find', arguments: JSON.stringify({ note: text }) } };
  return JSON.stringify({
    ...{ id, user, task_type: text, keys: [`mail:${user}`], at: Date.now(), outcomes: { resolved: true } },
    label: { score: 1, comment: text, correction: `Say ${text}` },
    messages: [
      { role: 'system', content: `About the caller: ${text}` },
      { role: 'user', content: text },
      { role: 'assistant', content: `${text} `, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c1', content: JSON.stringify({ found: text }) },
    ],
  });
};

const filesIn = (folder: string): string[] =>
  (readdirSync(folder, { recursive: true }) as string[])
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile() && !path.endsWith('pawl.config.ts'));

/** One pass over the bytes however many values there are: only where four bytes of one begin it is compared. */
function search(
  texts: readonly (readonly [string, Buffer])[],
  people: number,
  isSought: (kind: string, where: string) => boolean,
): string[] {
  const values = new Map<number, { readonly kind: string; readonly bytes: Buffer }[]>();
  const begins = new Uint8Array(2 ** 24);
  const placeOf = (four: number): number => Math.imul(four, 0x9e3779b1) >>> 8;
  for (let number = 0; number < people; number++)
    for (const { kind, raw } of canariesOf(number))
      for (const bytes of raw.map((value) => Buffer.from(value))) {
        if (bytes.length < 4) throw new Error(`${bytes} is too short to be looked for.`);
        const four = bytes.readInt32BE();
        begins[placeOf(four)] = 1;
        values.set(four, [...(values.get(four) ?? []), { kind, bytes }]);
      }
  const survivors = new Map<string, string>();
  for (const [where, bytes] of texts) {
    let four = 0;
    for (let i = 0; i < bytes.length; i++) {
      four = (four << 8) | bytes[i]!;
      if (i < 3 || begins[placeOf(four)] === 0) continue;
      for (const { kind, bytes: value } of values.get(four) ?? [])
        if (
          bytes.compare(value, 0, value.length, i - 3, Math.min(bytes.length, i - 3 + value.length)) === 0 &&
          !isPartOfNumber(bytes, i - 3, value) &&
          !survivors.has(`${kind} in ${where}`) &&
          isSought(kind, where)
        )
          survivors.set(`${kind} in ${where}`, bytes.toString('latin1', Math.max(0, i - 43), i + 40));
    }
  }
  return [...survivors].map(([what, around]) => `${what}: …${around.replace(/[^ -~]+/g, ' ')}…`);
}

/**
 * Seven digits are in one of a thousand times in milliseconds by chance, and two, a dash and five in one of 500,000 UUIDs: what is left
 * of somebody's number has no digit of either beside it.
 */
function isPartOfNumber(bytes: Buffer, at: number, value: Buffer): boolean {
  const isHex = (byte: number | undefined): boolean => byte !== undefined && /[0-9a-f]/.test(String.fromCharCode(byte));
  const isShort = value.length < 10 && value.every((byte) => byte === 45 || (byte >= 48 && byte <= 57));
  return isShort && (isHex(bytes[at - 1]) || isHex(bytes[at + value.length]));
}
