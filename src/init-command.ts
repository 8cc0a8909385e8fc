/** `pawl init`: the files of a new installation, which work as they are. Nothing that is there is written over unasked. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Command } from 'commander';
import { parseConfig } from './config.ts';
import { ConfigError } from './errors.ts';
import { initialFiles } from './init-files.ts';

type Options = { readonly agent: string; readonly upstream: string; readonly force?: boolean; readonly json?: boolean };

export function initCommand(): Command {
  return new Command('init')
    .description('Write pawl.config.ts, an agent and a few golden cases that work as they are, with comments.')
    .argument('[folder]', 'where to; made if it is not there', '.')
    .option('-a, --agent <name>', 'name of the agent', 'agent')
    .option('-u, --upstream <url>', 'address of an OpenAI-compatible server', 'http://127.0.0.1:8000/v1')
    .option('-f, --force', 'write over files that are there')
    .option('--json', 'print what was written as JSON')
    .addHelpText('after', '\nExample:\n  pawl init --agent support-desk --upstream http://127.0.0.1:8000/v1\n')
    .action((folder: string, options: Options) => {
      const files = writeInitial(resolve(folder), options);
      console.log(options.json ? JSON.stringify({ folder: resolve(folder), files }) : told(folder, files));
    });
}

/** The paths it wrote, from the folder. */
export function writeInitial(folder: string, { agent: name, upstream, force = false }: Options): string[] {
  const { upstreams } = checked(name, upstream, folder);
  const files = initialFiles({ name, upstream: upstreams.main!.baseUrl });
  const there = Object.keys(files).filter((path) => existsSync(join(folder, path)));
  if (there.length > 0 && !force)
    throw new ConfigError(
      `${there.join(' and ')} ${there.length === 1 ? 'is' : 'are'} in ${folder} already. Give another folder, or --force to write over ${there.length === 1 ? 'it' : 'them'}.`,
    );
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return Object.keys(files).reverse();
}

/** Refuses what the settings would refuse, in the same words, and names the option that was typed. */
function checked(name: string, upstream: string, folder: string) {
  try {
    return parseConfig({ agents: [{ name }], upstreams: { main: { baseUrl: upstream } } }, {}, folder);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const problems = error.message
      .replaceAll(' (in the settings)', '')
      .replace('agents.0.name:', `--agent ${name}:`)
      .replace('upstreams.main.baseUrl:', `--upstream ${upstream}:`);
    throw new ConfigError(problems.replace('The settings cannot be used:', 'Nothing was written:'));
  }
}

function told(folder: string, files: readonly string[]): string {
  return [
    `Wrote ${files.map((path) => join(folder, path)).join(', ')}.`,
    '',
    'What to do next:',
    ...(resolve(folder) === process.cwd() ? [] : [`  cd ${folder}`]),
    '  npx pawl serve                 gateway and API; shows the key for your client once',
    '  http://127.0.0.1:4700/v1       the base URL to give to your client, instead of the model server’s',
    '  npx pawl trajectories list     what was recorded',
    '  npx pawl doctor                checks everything, and says what to do',
    '',
    'Keep .pawl/ out of version control: it holds the recorded conversations.',
  ].join('\n');
}
