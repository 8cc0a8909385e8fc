/**
 * Reward models at work: a scorer that asks one, and whoever answers it. The model is loaded when it is first asked for, into an engine
 * that the caller lends, or into a process of its own that ends when nobody has asked for a while: native code can die, and
 * whoever scores goes on.
 */
import type { Artifacts } from '../artifacts/artifacts.ts';
import { redact } from '../collect/redact/redact.ts';
import { createRules } from '../collect/redact/rules.ts';
import type { Turn } from '../collect/turn.ts';
import { readModelFiles } from '../engine/checkpoint.ts';
import type { Engine } from '../engine/engine.ts';
import { openEngineProcess } from '../engine/open.ts';
import type { EngineProcess } from '../engine/process.ts';
import type { EngineSettings } from '../engine/settings.ts';
import { type Tokenizer, tokenizerFromFiles } from '../engine/tokenizer.ts';
import { EngineError } from '../errors.ts';
import type { Store } from '../store/postgres.ts';
import { readRewardModel } from '../store/reward-models.ts';
import { calibrated, modelText, type Verdicts } from './reward-model.ts';
import type { RewardModels } from './reward-model-scorer.ts';
import { opinionsOf } from './train-reward-model.ts';

export const verdictsOf = (tokenizer: Tokenizer): Verdicts => {
  const [plus, minus] = [tokenizer.encodePlain('+')[0], tokenizer.encodePlain('-')[0]];
  if (plus === undefined || minus === undefined || plus === minus)
    throw new EngineError('The tokenizer has no tokens of their own for + and -, which are the verdicts.');
  return { plus, minus };
};

/**
 * The end of a conversation: what was said last, and the question, are in it whatever the context. Names are masked, here where a model
 * learns and where it is asked alike: what it has learned cannot be taken back, and none of it is worth more by whose name is in it.
 */
export async function tokensOf(turns: readonly Turn[], tokenizer: Tokenizer, context: number): Promise<number[]> {
  // A token is a few characters; reading many times the context from the end is enough.
  const text = modelText(turns).slice(-context * 16);
  const { entities } = await import('../collect/entities/entities.ts');
  const rules = createRules({ also: [entities], shares: 8 });
  return tokenizer.encodePlain(redact(text, {}, { rules })).slice(-context);
}

export async function tokenizerIn(folder: string): Promise<Tokenizer> {
  const found = tokenizerFromFiles(await readModelFiles(folder));
  if (found === undefined) throw new EngineError(`${folder} has no tokenizer.json, so its model can read nothing.`);
  return found;
}

export type Lent = { readonly store: Store; readonly artifacts: Artifacts };
const lingerMs = 1_500;

/** An engine in a process of its own, as long as somebody uses it. */
export function lendEngine(settings: EngineSettings): <T>(work: (engine: Engine) => Promise<T>) => Promise<T> {
  let opened: Promise<EngineProcess> | null = null;
  let users = 0;
  let timer: NodeJS.Timeout | undefined;
  const end = () => {
    const ending = opened;
    opened = null;
    void ending?.then((process) => process.close()).catch(() => {});
  };
  return async (work) => {
    clearTimeout(timer);
    users++;
    try {
      opened ??= openEngineProcess(settings, () => {});
      const process = await opened.catch((error: unknown) => {
        opened = null;
        throw error;
      });
      return await work(process.engine);
    } finally {
      if (--users === 0) timer = setTimeout(end, lingerMs);
    }
  };
}

type Ready = { readonly tokenizer: Tokenizer; readonly verdicts: Verdicts; readonly folder: string };

export function openRewardModels(
  { store, artifacts }: Lent,
  withEngine: <T>(work: (engine: Engine) => Promise<T>) => Promise<T>,
): RewardModels {
  const readied = new Map<string, Promise<Ready>>();
  const ready = (artifact: string): Promise<Ready> => {
    let found = readied.get(artifact);
    if (found === undefined) {
      found = (async () => {
        const folder = await artifacts.folder(artifact);
        const tokenizer = await tokenizerIn(folder);
        return { folder, tokenizer, verdicts: verdictsOf(tokenizer) };
      })();
      readied.set(artifact, found);
      found.catch(() => readied.delete(artifact));
    }
    return found;
  };
  /** One at a time: each fills the engine by itself. */
  let last: Promise<unknown> = Promise.resolve();
  return {
    async value({ agent, name, version, turns, signal }) {
      const model = await readRewardModel(store, { agent, name, version });
      if (model === null)
        throw new Error(
          `there is no reward model ${name} ${version} of ${agent}; \`pawl reward models\` lists those there are`,
        );
      if (model.refused !== null) throw new Error(`reward model ${name} ${version} was refused: ${model.refused}`);
      const { folder, tokenizer, verdicts } = await ready(model.artifact);
      const mine = last.then(() => {
        signal.throwIfAborted();
        return withEngine(async (engine) => {
          const loaded = `reward-${version}`;
          const known = (await engine.models()).find((one) => one.name === loaded);
          const { context } = known ?? (await engine.load(loaded, folder));
          return opinionsOf(engine, loaded, verdicts, [await tokensOf(turns, tokenizer, context)], signal);
        });
      });
      last = mine.catch(() => {});
      return calibrated((await mine)[0]!, model.report.calibration);
    },
  };
}
