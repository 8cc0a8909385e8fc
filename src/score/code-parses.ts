/**
 * A rule: code in fences (```python) parses. An answer is worth the share of its blocks that do, of the languages we have grammars
 * for: TypeScript, JavaScript, Python, Go, Java, Rust. A piece of a file often parses as a whole would; where it does not, that
 * counts against it, since nobody can run it as it stands. An answer without such a block is unmeasured.
 */
import { judgeable, together, type Verdict, verdictOn } from './answer-rule.ts';
import { type CodeLanguage, codeLanguage, parseCode } from './grammars.ts';
import type { Scorer } from './scorer.ts';

export type CodeBlock = { readonly language: CodeLanguage; readonly text: string };

/** In one pass over the lines. A fence that is never closed runs to the end. */
export function codeBlocks(text: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let open: { fence: string; language: CodeLanguage | null; lines: string[] } | null = null;
  const close = () => {
    if (open?.language) blocks.push({ language: open.language, text: open.lines.join('\n') });
    open = null;
  };
  for (const line of text.split('\n')) {
    const mark = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/.exec(line);
    if (open === null) {
      if (mark) open = { fence: mark[1]!, language: codeLanguage(mark[2]!), lines: [] };
    } else if (mark !== null && mark[1]!.startsWith(open.fence) && mark[2] === '') close();
    else open.lines.push(line);
  }
  close();
  return blocks;
}

const maxBlocks = 50;

async function check(text: string): Promise<Verdict> {
  const blocks = codeBlocks(text).slice(0, maxBlocks);
  if (blocks.length === 0) return { worth: null, why: 'no code in a language we can read' };
  const read = [];
  for (const { language, text: code } of blocks) read.push({ language, parsed: await parseCode(language, code) });
  const known = read.filter(({ parsed }) => parsed !== null);
  if (known.length === 0) return { worth: null, why: 'the code is too long to read' };
  const wrong = known.filter(({ parsed }) => parsed!.hasError);
  const why =
    wrong.length === 0 ? '' : `${wrong.length} of ${known.length} blocks do not parse (${wrong[0]!.language})`;
  return { worth: 1 - wrong.length / known.length, why };
}

export function codeParses(): Scorer {
  return {
    name: 'code parses',
    version: JSON.stringify(['code-parses', 1]),
    inProcess: true,
    async score(input) {
      const answers = judgeable(input);
      const verdicts: Verdict[] = [];
      for (const answer of answers) {
        const empty = verdictOn(answer, () => ({ worth: 1, why: '' }));
        verdicts.push(empty.worth === 0 ? empty : await check(answer.text));
      }
      return together(answers, verdicts);
    },
  };
}
