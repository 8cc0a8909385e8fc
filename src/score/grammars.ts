/**
 * Code read by tree-sitter: grammars compiled to wasm, of one package without install scripts, loaded when the first piece of code
 * in their language comes. What comes back is a small tree of our own, so that nobody has to free anything. Code is a stranger's:
 * its length, the time of parsing and the nodes of a tree are capped; beyond them nothing is known of it.
 */
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

export type CodeLanguage = 'typescript' | 'tsx' | 'javascript' | 'python' | 'go' | 'java' | 'rust';

const names: Readonly<Record<string, CodeLanguage>> = {
  ...{ typescript: 'typescript', ts: 'typescript', mts: 'typescript', cts: 'typescript', tsx: 'tsx' },
  ...{ javascript: 'javascript', js: 'javascript', jsx: 'javascript', mjs: 'javascript', cjs: 'javascript' },
  ...{ python: 'python', py: 'python', go: 'go', golang: 'go', java: 'java', rust: 'rust', rs: 'rust' },
};

/** By the word after a fence, or the end of a file's name; null: not one of these. */
export const codeLanguage = (name: string): CodeLanguage | null => {
  const plain = name.toLowerCase();
  return Object.hasOwn(names, plain) ? names[plain]! : null;
};

export type CodeNode = {
  readonly kind: string;
  /** Of a leaf: its words. */
  readonly text: string;
  readonly children: readonly CodeNode[];
  /** Where it stands in the text. */
  readonly start: number;
  readonly end: number;
  /** Nodes in it, itself included. */
  readonly size: number;
  /** The same for trees that are the same. */
  readonly shape: string;
};
export type ParsedCode = { readonly root: CodeNode; readonly hasError: boolean };

const maxCharacters = 200_000;
const maxNodes = 50_000;
const maxDepth = 500;
const limitMs = 2000;

type TreeSitter = typeof import('@vscode/tree-sitter-wasm');
type Loaded = { readonly sitter: TreeSitter; readonly folder: string };

async function load(): Promise<Loaded> {
  const { default: sitter } = (await import('@vscode/tree-sitter-wasm')) as unknown as { default: TreeSitter };
  await sitter.Parser.init();
  return { sitter, folder: dirname(createRequire(import.meta.url).resolve('@vscode/tree-sitter-wasm')) };
}

let loading: Promise<Loaded> | null = null;
const parsers = new Map<CodeLanguage, Promise<InstanceType<TreeSitter['Parser']>>>();

function parserOf(language: CodeLanguage): Promise<InstanceType<TreeSitter['Parser']>> {
  const make = async () => {
    loading ??= load();
    const { sitter, folder } = await loading;
    const parser = new sitter.Parser();
    parser.setLanguage(await sitter.Language.load(join(folder, `tree-sitter-${language}.wasm`)));
    return parser;
  };
  const known = parsers.get(language) ?? make();
  parsers.set(language, known);
  return known;
}

/** null: too long, too intricate, or it took too long. */
export async function parseCode(language: CodeLanguage, text: string): Promise<ParsedCode | null> {
  if (text.length > maxCharacters) return null;
  const parser = await parserOf(language);
  const until = Date.now() + limitMs;
  const tree = parser.parse(text, null, { progressCallback: () => Date.now() > until });
  if (tree === null) {
    parser.reset();
    return null;
  }
  try {
    const { rootNode } = tree;
    if (rootNode.descendantCount > maxNodes) return null;
    const cursor = tree.walk();
    const read = (depth: number): CodeNode => {
      const { nodeType: kind, startIndex: start, endIndex: end } = cursor;
      const children: CodeNode[] = [];
      let upTo = start;
      // Some grammars name the escapes of a string and not the words between them, where spaces mean something.
      const unnamed = (until: number) => {
        const words = upTo < until ? text.slice(upTo, until) : '';
        if (words !== '' && (quotes.test(kind) || words.trim() !== ''))
          children.push(codeNode(`${kind} text`, words, [], upTo, until));
      };
      if (depth < maxDepth && cursor.gotoFirstChild()) {
        do {
          unnamed(cursor.startIndex);
          children.push(read(depth + 1));
          upTo = cursor.endIndex;
        } while (cursor.gotoNextSibling());
        cursor.gotoParent();
        unnamed(end);
      }
      const words = children.length === 0 ? text.slice(start, end) : '';
      return codeNode(kind, kind === 'jsx_text' ? jsxWords(words) : words, children, start, end);
    };
    return { root: read(0), hasError: rootNode.hasError };
  } finally {
    tree.delete();
  }
}

/** Nodes whose every character counts; not what is put together of several, or stands in braces between them. */
const quotes =
  /^(?:string|string_content|string_literal|template_string|raw_string_literal|interpreted_string_literal|multiline_string_fragment|character_literal|char_literal|rune_literal|regex)$/;

/** What JSX says by it: a line break, with the spaces around it, is one space or nothing. */
const jsxWords = (text: string): string => {
  const lines = text.split('\n');
  const last = lines.length - 1;
  return lines
    .map((line, i) => (i > 0 ? (i < last ? line.trim() : line.trimStart()) : i < last ? line.trimEnd() : line))
    .filter((line) => line !== '')
    .join(' ');
};

export function codeNode(
  kind: string,
  text: string,
  children: readonly CodeNode[],
  start: number,
  end: number,
): CodeNode {
  const size = children.reduce((sum, child) => sum + child.size, 1);
  const shape = createHash('sha1')
    .update(JSON.stringify([kind, text, children.map(({ shape }) => shape)]))
    .digest('base64url');
  return { kind, text, children, start, end, size, shape };
}
