/** The package as a user gets it: what is in it, what it exports, and a first hour with it in an empty folder. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { builtinModules, createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { manifestIn, type Project, packedProject, ran } from './packed.ts';
import { until } from './pawl.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

let project: Project;
let own: string;
let upstream: TestUpstream;
beforeAll(async () => {
  project = await packedProject();
  own = join(project.folder, 'node_modules', 'pawl');
  upstream = await startUpstream();
});
afterAll(async () => {
  await project.remove();
  await upstream.close();
});

const files = () => readdirSync(own, { recursive: true, encoding: 'utf8' }).sort();

describe('what is in it', () => {
  test('what was built, the documents, and nothing of the source or the tests', () => {
    expect(readdirSync(own).sort()).toEqual(['LICENSE', 'README.md', 'bin', 'dist', 'docs', 'package.json']);
    expect(files().filter((path) => /\.test\.|fixtures|conformance|(?<!\.d)\.ts$/.test(path))).toEqual([]);
    expect(files()).toContain('dist/migrations/0001-collect.sql');
  });

  test('every package it imports is a dependency, and every dependency is asked for', () => {
    const code = files()
      .filter((path) => path.startsWith('dist/') && path.endsWith('.js'))
      .map((path) => readFileSync(join(own, path), 'utf8'))
      .join('\n');
    const imported = [
      ...code.matchAll(/^(?:import .* from |.*\bimport\()"((?:@[a-z0-9-]+\/)?[a-z][a-z0-9.-]*)(?:\/[\w./-]*)?"/gm),
    ];
    const declared = Object.keys(manifestIn(own).dependencies);
    const isNodes = (name: string) => builtinModules.includes(name);
    const foreign = imported.map(([, name]) => name!).filter((name) => !isNodes(name));
    expect(foreign).toContain('jiti');
    expect(foreign.filter((name) => !declared.includes(name))).toEqual([]);
    const inside = [...readFileSync(join(own, 'dist/THIRD-PARTY.txt'), 'utf8').matchAll(/^(\S+) \S+ \([^)]+\)$/gm)].map(
      ([, name]) => name!,
    );
    expect(inside.sort()).toEqual(expect.arrayContaining(['kysely', 'zod']));
    const isAskedFor = (name: string) => inside.includes(name) || new RegExp(`['"\`]${name}['"\`/]`).test(code);
    expect(declared.filter((name) => !isAskedFor(name))).toEqual([]);
  });
});

const exported = {
  pawl: [
    ...['agentEndpoint', 'agentProcess', 'defineAgent', 'defineConfig', 'gate'],
    ...['answerLength', 'answerRelevance', 'codeParses', 'contextPrecision', 'contextRecall', 'faithfulness'],
    ...['feedback', 'fitsSchema', 'implicit', 'judge', 'label', 'language', 'latency', 'matches', 'minimalDiff'],
    ...['outcome', 'penalty', 'rewardModel', 'rubric', 'rule', 'steps', 'thinking', 'tone', 'toolUse', 'unmeasured'],
    ...['weighted', 'words'],
    ...['makeTask', 'makeTasks', 'parseTask', 'splits', 'tool', 'toolSpec', 'weigh'],
    ...['hash', 'httpPlayer', 'llmUser', 'personas', 'play', 'random', 'scriptedUser', 'spoken'],
  ],
  'pawl/engine': [
    ...['chatCodec', 'createOnnxEngine', 'createTokenizer', 'enginePlayer', 'exampleFrom', 'loadChatCodec'],
    ...['measureSuccess', 'modelConfigJson', 'parameterCount', 'parameterShapes', 'randomWeights', 'readCheckpoint'],
    ...['supervisedStep', 'tokenizerConfig', 'trainTokenizer', 'writeCheckpoint'],
  ],
};
const exportedTypes = [
  ...['AgentInput', 'ConfigInput', 'Consent', 'Measured', 'OutcomeRange', 'RewardSpec', 'Scorer', 'ScorerInput'],
  ...['Signal', 'Trajectory', 'Turn', 'EndView', 'Environment', 'Grade', 'Limits', 'Outcome', 'Split', 'Spoken'],
  ...['Task', 'Tool', 'ToolStep', 'TurnView', 'User', 'AssistantMessage', 'Message', 'ToolCall', 'ToolSpec'],
  ...['Conversation', 'Episode', 'HttpPlayerOptions', 'Persona', 'PlayedTurn', 'Player', 'Random', 'Script'],
  ...['UserBrief', 'Voices', 'EndGrade', 'AgentCall', 'AgentGrade', 'AgentLimits', 'AgentOptions', 'AgentRun'],
  ...['AgentView', 'DoorPlace', 'EndpointOptions', 'ProcessOptions', 'OwnGate', 'Row', 'ScorerContext', 'Verdict'],
  ...[
    'Ask',
    'Asked',
    'Block',
    'Call',
    'Question',
    'JudgeChoice',
    'JudgeOptions',
    'Criterion',
    'Level',
    'RubricOptions',
  ],
  ...['ContextRecallOptions', 'RetrievalScorerOptions', 'ImplicitWorth', 'LatencyRange', 'LengthRule', 'WordRule'],
  ...['MinimalDiffOptions', 'OutcomeCurve', 'OutcomeRatio', 'RuleAnswer', 'ThinkingOptions', 'Tone', 'ToolUseOptions'],
];

const generic = (name: string): string => {
  if (/^(EndView|Environment|TurnView)$/.test(name)) return `${name}<unknown, unknown>`;
  if (name === 'Question') return 'Question<{}>';
  return /^(Tool|AgentOptions|AgentView)$/.test(name) ? `${name}<unknown>` : name;
};

describe('what it exports', () => {
  /** What a program that stands in the folder prints as JSON. */
  const told = async (program: string): Promise<unknown> => {
    const { out, err } = await ran(process.execPath, ['--input-type=module', '-e', program], { cwd: project.folder });
    return JSON.parse(out || `"${err.replaceAll(/[\n"\\]/g, ' ')}"`);
  };

  test.each(Object.entries(exported))('exactly these names from %s', async (entry, names) => {
    const found = await told(`console.log(JSON.stringify(Object.keys(await import('${entry}'))))`);
    expect(found).toEqual([...names].sort());
  });

  test('exactly these types from pawl', () => {
    const index = readFileSync(join(own, 'dist/index.d.ts'), 'utf8');
    const names = [...index.matchAll(/export (type )?\{([^}]*)\}/g)].flatMap(([, type, list]) =>
      list!
        .split(',')
        .map((name) => name.trim())
        .filter((name) => type || name.startsWith('type '))
        .map((name) => name.replace(/^type /, '')),
    );
    expect(names.sort()).toEqual([...exportedTypes].sort());
  });

  test('pawl is light: it loads no database driver and no engine', async () => {
    const program = `
      import { builtinModules, createRequire } from 'node:module';
      await import('pawl');
      const { cache } = createRequire(import.meta.url);
      console.log(JSON.stringify([Object.keys(cache), process.moduleLoadList.filter((name) => /worker_threads|NativeModule net$/.test(name))]));`;
    expect(await told(program)).toEqual([[], []]);
  });

  test('its types hold in strict mode, without those of Node, and say what is wrong', async () => {
    writeFileSync(
      join(project.folder, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: { strict: true, target: 'es2023', module: 'nodenext', types: [], noEmit: true },
        files: ['typed.ts'],
      }),
    );
    const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');
    const compiled = async (more: string) => {
      writeFileSync(
        join(project.folder, 'typed.ts'),
        `import { defineAgent, defineConfig, outcome, tool, unmeasured, weighted } from 'pawl';
         import type { ${exportedTypes.join(', ')} } from 'pawl';
         import { createOnnxEngine, type Engine } from 'pawl/engine';
         import { z } from 'zod';
         const polite: Scorer = { name: 'polite', version: '1', score: ({ turns }) => unmeasured(\`of \${turns.length}\`) };
         export const lookup: Tool<Map<string, string>> = tool('lookup', 'An order.', { id: z.string() }, ({ id }, orders) => orders.get(id));
         export const engine: (folder: never) => unknown = createOnnxEngine;
         export const agent = defineAgent({ name: 'desk', reward: weighted({ polite: [1, polite], done: [1, outcome('done')] }) });
         export default defineConfig({ agents: [agent], port: 4700 });
         export type All = [${exportedTypes.map((name) => generic(name)).join(', ')}, Engine];
         ${more}`,
      );
      return (await ran(process.execPath, [tsc], { cwd: project.folder })).out;
    };
    expect(await compiled('')).toBe('');
    const wrong = await compiled(`defineConfig({ port: 'x' });\n defineAgent({ name: 'x', colour: 'red' });`);
    expect(wrong).toMatch(/typed\.ts\(\d+,\d+\): error TS2322/);
    expect(wrong).toMatch(/error TS2353.*colour/);
  });
});

const ask = (served: { url: string; key: string }, model: string): Promise<Response> =>
  fetch(`${served.url}/t/case-17/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${served.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello?' }], max_tokens: 4 }),
  });

describe('a first hour', () => {
  test('npx finds it', async () => {
    const { code, out } = await ran('npx', ['--no-install', 'pawl', '--help'], { cwd: project.folder });
    expect(code).toBe(0);
    expect(out).toMatch(/^ +init .*\n/m);
    expect(out).toMatch(/^ +serve .*\n/m);
  });

  test('init, serve, a call, and what was recorded', async () => {
    const made = await project.pawl(['init', '--agent', 'support-desk', '--upstream', upstream.url]);
    expect(made).toMatchObject({ code: 0, out: expect.stringContaining('npx pawl serve') });
    const served = await project.serve();
    const answer = await ask(served, 'echo');
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'You said: Hello?' } }] });
    const listed = await until(
      () => project.pawl(['trajectories', 'list', '--json']),
      ({ out }) => out.includes('case-17'),
    );
    expect(JSON.parse(listed.out)).toMatchObject({ id: 'case-17', agent: 'support-desk' });
    await served.stop();
  });

  test('a small model made, and served by the engine in a process of its own', async () => {
    expect(await project.pawl(['model', 'new', 'd32-l1-h2-v300', 'base'])).toMatchObject({ code: 0 });
    writeFileSync(
      join(project.folder, 'own.config.ts'),
      `import { defineAgent, defineConfig } from 'pawl';
       export default defineConfig({ home: 'own', agents: [defineAgent({ name: 'tiny', train: { base: 'base' } })] });`,
    );
    const served = await project.serve(['--config', 'own.config.ts']);
    const answer = await until(
      () => ask(served, 'tiny'),
      ({ status }) => status === 200,
      250,
    );
    expect(await answer.json()).toMatchObject({ usage: { completion_tokens: expect.any(Number) } });
    await served.stop();
  });
});
