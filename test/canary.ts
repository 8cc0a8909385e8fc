/**
 * Personal data of invented people through all of Pawl: into the gateway in every place that a caller or a model server can write to,
 * through scoring and curating into exported files, and then looked for in every byte that is left: the database's files and
 * its log, the journal, the process's output, and the exports. Names and addresses too, since entities are looked for
 * before recording here.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { canariesOf } from './identities.ts';
import { startPawl, until } from './pawl.ts';
import { startUpstream } from './upstream.ts';

const run = promisify(execFile);
const AT_ONCE = 8;

export type CanaryResult = {
  /** `kind in file`, of each value that survived. */
  readonly survivors: string[];
  readonly kinds: number;
  readonly turns: number;
  readonly files: number;
  /** Lines of the exported files. */
  readonly exported: number;
};

export async function runCanary(people: number): Promise<CanaryResult> {
  const upstream = await startUpstream();
  const folder = mkdtempSync(join(tmpdir(), 'pawl-canary-'));
  const config = join(folder, 'pawl.config.ts');
  const curate = { minScore: 0, minMeasured: 0, kAnonymity: 1, nearDuplicate: 1, maxUserShare: 1 };
  const agent = { name: 'agent', curate };
  const settings = { agents: [agent], upstreams: { echo: { baseUrl: upstream.url } }, pii: { entities: 'record' } };
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
    let turns = 0;
    const one = async (number: number): Promise<void> => {
      const canaries = canariesOf(number);
      const user = `zq${number}@canary-mail.com`;
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
        const model = i % 7 === 6 ? 'refuse' : 'echo';
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
        await response.arrayBuffer();
        if (turn !== null)
          await post('/v1/feedback', { turn, vote: 'up', user, comment: text, correction: `Say ${text}` });
      }
    };
    for (let from = 0; from < people; from += AT_ONCE)
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, people - from) }, (_, i) => one(from + i)));
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
      ['trl-sft', 'openai-chat'].map(async (format) => {
        const out = join(folder, `${format}.jsonl`);
        await command('datasets', 'export', dataset.id, '--format', format, '--out', out);
        return out;
      }),
    );
    const exported = outputs.reduce(
      (sum, path) => sum + readFileSync(path, 'utf8').split('\n').filter(Boolean).length,
      0,
    );
    const said = await command('pii', 'report', '--since', '1d', '--json');
    await pawl.kill();
    const texts: [string, Buffer][] = [
      ['output', Buffer.from(pawl.output() + said)],
      ...filesIn(folder).map((path): [string, Buffer] => [path.slice(folder.length), readFileSync(path)]),
    ];
    const survivors = search(texts, people);
    return { survivors, kinds: canariesOf(0).length, turns, files: texts.length, exported };
  } finally {
    await pawl.kill();
    await upstream.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

const filesIn = (folder: string): string[] =>
  (readdirSync(folder, { recursive: true }) as string[])
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile() && !path.endsWith('pawl.config.ts'));

function search(texts: readonly (readonly [string, Buffer])[], people: number): string[] {
  const survivors = new Set<string>();
  for (let number = 0; number < people; number++)
    for (const { kind, raw } of canariesOf(number))
      for (const value of raw)
        for (const [where, bytes] of texts) if (bytes.includes(value)) survivors.add(`${kind} in ${where}`);
  return [...survivors];
}
