/**
 * The thread in which a user's scorers run: loads the settings file, then measures one conversation at a time. What a scorer says
 * is put into plain data here, so that nothing of the user's comes back but numbers and a sentence. Started by isolate.ts through
 * isolate-boot.js; nothing else imports it.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { importUserModule } from '../user-module.ts';
import type { FromThread, ToThread, Whose } from './isolate.ts';
import type { Measured } from './scorer.ts';
import type { RewardSpec } from './weighted.ts';

const { file, agent } = workerData as Whose;
const port = parentPort!;
const say = (message: FromThread): void => port.postMessage(message);
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 500);

type Settings = { readonly agents?: readonly { readonly name: string; readonly reward?: RewardSpec }[] };

async function rewardOf(): Promise<RewardSpec> {
  const { default: settings } = await importUserModule(file);
  const found = (settings as Settings).agents?.find(({ name }) => name === agent)?.reward;
  if (found === undefined) throw new Error(`${file} no longer has the reward of ${agent}`);
  return found;
}

const plain = ({ value, reason, turns }: Measured): Measured => ({
  value: value === null ? null : Number(value),
  reason: String(reason).slice(0, 2000),
  turns: new Map([...(turns ?? [])].map(([id, one]) => [String(id), Number(one)])),
});

async function measure(reward: RewardSpec, { part, input }: ToThread): Promise<Measured> {
  const found = reward.parts.find(({ name }) => name === part);
  if (found === undefined) throw new Error(`the reward of ${agent} in ${file} no longer has the part ${part}`);
  return plain(await found.scorer.score(input, { signal: new AbortController().signal }));
}

try {
  const reward = await rewardOf();
  port.on('message', (work: ToThread) => {
    measure(reward, work).then(
      (measured) => say({ kind: 'measured', measured }),
      (error) => say({ kind: 'failed', message: messageOf(error) }),
    );
  });
  say({ kind: 'ready' });
} catch (error) {
  say({ kind: 'failed', message: messageOf(error) });
}
