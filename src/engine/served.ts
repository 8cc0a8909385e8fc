/**
 * The models a server answers with: a name → the engine's model behind it, with its tokenizer and chat template. A name
 * can be given a new checkpoint, or taken away, while requests are running: each request keeps the model it began with,
 * and a model leaves the engine when the last of them is done. Nothing is dropped, nothing changes under a request.
 */
import { resolve } from 'node:path';
import { EngineError, RequestError } from '../errors.ts';
import { type Chat, chatTemplateOf, createChat } from './chat.ts';
import { inspectCheckpoint, readModelFiles } from './checkpoint.ts';
import type { Engine, LoraSpec, ModelInfo } from './engine.ts';
import { stopTokens } from './stop-tokens.ts';
import { type Tokenizer, tokenizerFromFiles } from './tokenizer.ts';

export type Served = {
  readonly name: string;
  /** What the engine calls it. */
  readonly model: string;
  readonly info: ModelInfo;
  readonly folder: string | undefined;
  readonly tokenizer: Tokenizer | undefined;
  /** undefined: no tokenizer, or no chat template. */
  readonly chat: Chat | undefined;
  /** Tokens that end a generation: see stop-tokens.ts. */
  readonly stopTokens: readonly number[];
};

export type LoadOptions = { readonly lora?: LoraSpec };
export type Loaded = { readonly name: string; readonly folder: string; readonly lora?: LoraSpec };

export type ServedModels = {
  /** As Engine.load: the name must be free. */
  load(name: string, folder: string, options?: LoadOptions): Promise<ModelInfo>;
  /** Gives the name another checkpoint. Requests go to the old one until the new one can take them. */
  replace(name: string, folder: string, options?: LoadOptions): Promise<ModelInfo>;
  snapshot(model: string, name: string): Promise<ModelInfo>;
  /** Takes the name away at once; resolves when the last request has finished and the memory is free. */
  unload(name: string): Promise<void>;
  /** Runs `work` with the model that now has this name, which stays until `work` is done. */
  use<T>(name: string, work: (served: Served) => Promise<T>): Promise<T>;
  list(): readonly Served[];
  /**
   * What a restart must load again: where the weights of each name were last read from or written to. Not those that have
   * learned since: they are lost with the process, and older ones under their name would be taken for them.
   */
  loaded(): readonly Loaded[];
  /** A trainable model is learning: until it is saved again, its folder does not hold what it knows. */
  learning(name: string): void;
  /** A trainable model was saved with its optimizer: a restart continues from there. */
  saved(name: string, folder: string): void;
  requests(): number;
};

type Entry = {
  served: Served;
  users: number;
  retired: boolean;
  gone: Promise<void>;
  release: () => void;
  loaded: Loaded | undefined;
  learned: boolean;
};

export function createServedModels(
  engine: Engine,
  options: {
    readonly onChange?: (loaded: readonly Loaded[]) => void;
  } = {},
): ServedModels {
  const byName = new Map<string, Entry>();
  let turn: Promise<unknown> = Promise.resolve();
  let counter = 0;
  let requests = 0;

  /** Names in the engine. A model that finishes its last requests still has its own, so a new one may need another. */
  const taken = new Set<string>();
  const freeName = (name: string): string => {
    const free = taken.has(name) ? `${name}#${++counter}` : name;
    taken.add(free);
    return free;
  };
  const claiming = async <T>(model: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      taken.delete(model);
      throw error;
    }
  };

  // Loads one after the other: two models at once might not fit where one after the other does.
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = turn.then(work);
    turn = result.catch(() => {});
    return result;
  };
  const announce = () => options.onChange?.(loaded());
  const loaded = () => [...byName.values()].flatMap((entry) => (entry.loaded && !entry.learned ? [entry.loaded] : []));

  const put = (name: string, served: Served, from: Loaded | undefined): Entry | undefined => {
    let release = () => {};
    const gone = new Promise<void>((done) => {
      release = done;
    });
    const before = byName.get(name);
    byName.set(name, { served, users: 0, retired: false, gone, release, loaded: from, learned: false });
    return before;
  };

  const retire = async (entry: Entry): Promise<void> => {
    entry.retired = true;
    if (entry.users === 0) entry.release();
    await entry.gone;
    await engine.unload(entry.served.model);
    taken.delete(entry.served.model);
  };

  const entryOf = (name: string): Entry => {
    const entry = byName.get(name);
    if (!entry) {
      const names = [...byName.keys()];
      throw new RequestError(
        404,
        'model_not_found',
        `There is no model "${name.slice(0, 200)}" here; ${names.length === 0 ? 'none is loaded' : `loaded: ${names.join(', ')}`}.`,
      );
    }
    return entry;
  };

  const refuseTaken = (name: string): void => {
    if (byName.has(name)) {
      throw new EngineError(`A model called ${name} is loaded already; replace or unload it, or use another name.`);
    }
  };

  const load = (name: string, folder: string, loadOptions: LoadOptions, replaces: boolean): Promise<ModelInfo> =>
    inTurn(async () => {
      checkName(name);
      if (!replaces) refuseTaken(name);
      const at = resolve(folder);
      const summary = await inspectCheckpoint(at);
      const files = await readModelFiles(at);
      const tokenizer = tokenizerFromFiles(files);
      const template = tokenizer && chatTemplateOf(files, tokenizer);
      const chat = template === undefined ? undefined : createChat(tokenizer!, template);
      const model = freeName(name);
      const info = await claiming(model, async () => {
        const made = await engine.load(model, at, loadOptions);
        if (!tokenizer || tokenizer.vocabulary <= made.vocabulary) return made;
        await engine.unload(model);
        throw new EngineError(
          `The tokenizer in ${at} has ${tokenizer.vocabulary} tokens, but the model only ${made.vocabulary}.`,
        );
      });
      const stops = stopTokens(summary.config, files, tokenizer, chat);
      const before = put(
        name,
        { name, model, info, folder: at, tokenizer, chat, stopTokens: stops },
        { name, folder: at, ...loadOptions },
      );
      if (before) void retire(before).catch(() => {}); // requests on the old one finish first; nobody waits for that
      announce();
      return { ...info, name };
    });

  return {
    load: (name, folder, loadOptions = {}) => load(name, folder, loadOptions, false),
    replace: (name, folder, loadOptions = {}) => load(name, folder, loadOptions, true),

    // At once and not in turn: a step made after this call must not come before it in the engine.
    async snapshot(model, name) {
      checkName(name);
      refuseTaken(name);
      const { served } = entryOf(model);
      const target = freeName(name);
      const info = await claiming(target, () => engine.snapshot(served.model, target));
      // Frozen in memory only: it is not among what a restart can load again.
      put(name, { ...served, name, model: target, info, folder: undefined }, undefined);
      announce();
      return { ...info, name };
    },

    async unload(name) {
      const entry = entryOf(name);
      byName.delete(name);
      announce();
      await retire(entry);
    },

    async use(name, work) {
      const entry = entryOf(name);
      entry.users++;
      requests++;
      try {
        return await work(entry.served);
      } finally {
        requests--;
        if (--entry.users === 0 && entry.retired) entry.release();
      }
    },

    list: () => [...byName.values()].map(({ served }) => served),
    loaded,
    learning(name) {
      const entry = byName.get(name);
      if (!entry || entry.learned) return;
      entry.learned = true;
      announce();
    },
    saved(name, folder) {
      const entry = byName.get(name);
      if (!entry?.loaded) return;
      entry.loaded = { name, folder: resolve(folder) }; // the folder now brings its own adapter
      entry.learned = false;
      announce();
    },
    requests: () => requests,
  };
}

function checkName(name: string): void {
  if (!/^[\w][\w.:/@-]{0,199}$/.test(name)) {
    throw new EngineError(
      `"${name.slice(0, 200)}" cannot be a model's name; use letters, digits and . _ : / @ - (200 at most).`,
    );
  }
}
