import { describe, expect, test } from 'vitest';
import { codeEdits } from './code-edits.ts';
import { converse } from './fixtures.ts';

const file = 'import os\n\n\ndef total(xs):\n    s = 0\n    return s + len(xs)\n';
const fixed = file.replace('s = 0', 's = 1');
type Call = readonly [command: string | readonly string[], result?: string];
const seen: Call = ['cat total.py', file];

/** `a.py: text` of each file that changed, `+` before what is new, and how many calls nobody can read. */
function followed(...calls: readonly Call[]) {
  const said = calls.map(([command, result = '']) => ({
    say: [['bash', JSON.stringify({ command })]] as const,
    results: [result],
  }));
  const tools = [{ type: 'function', function: { name: 'bash', parameters: {} } }];
  const turns = converse('Begin with 1.', [...said, { say: 'Done.' }]);
  const { changes, unread } = codeEdits(turns.map((one) => ({ ...one, request: { ...one.request, tools } })));
  return [...changes.map(({ path, after, isNew }) => `${isNew ? '+' : ''}${path}: ${after}`), unread];
}

describe('a file is written by', () => {
  test.each<[string, string, string]>([
    ['a here-document', "cat > a.py <<'EOF'\nx = '$HOME'\nEOF\n", "+a.py: x = '$HOME'\n"],
    ['one that is named before the file', 'cat <<"E O" >a.py\nEOF\nE O', '+a.py: EOF\n'],
    [
      'one whose end is not quoted, and that has nothing to put in',
      'cat <<EOF > a.py\nx = "\\$1 \\\\"\nEOF',
      '+a.py: x = "$1 \\"\n',
    ],
    ['an indented one', 'if_x=1\ncat <<-EOF > a.py\n\tx = 1\n\t\tEOF', '+a.py: x = 1\n'],
    ['two on one line', 'cat <<A > a.py; cat <<B > b.py\na = 1\nA\nb = 1\nB\n', '+a.py: a = 1\n,+b.py: b = 1\n'],
    ['tee', "tee a.py <<'EOF'\nx = 1\nEOF", '+a.py: x = 1\n'],
    ['tee behind a pipe', "cat <<'EOF' | sudo tee a.py > /dev/null\nx = 1\nEOF", '+a.py: x = 1\n'],
    ['echo', `echo "x = 'a'" > a.py`, "+a.py: x = 'a'\n"],
    ['echo without a line end, and twice', "echo -n 'x = ' > a.py && echo 1 >> a.py", '+a.py: x = 1\n'],
    ['printf', "printf '%s = %s\\n' x 1 y 2 > a.py", '+a.py: x = 1\ny = 2\n'],
    ['a string', 'cat <<< "x = 1" > a.py', '+a.py: x = 1\n'],
    ['a shell in a shell', `bash -lc "echo 'x = 1' > a.py"`, '+a.py: x = 1\n'],
    [
      'a command in a folder',
      'cd src/lib && (cd .. && echo a > a.py); echo b > b.py',
      '+src/a.py: a\n,+src/lib/b.py: b\n',
    ],
    ['what moves there', 'echo "x = 1" > t.txt && mv t.txt src/a.py', '+src/a.py: x = 1\n'],
    ['what is copied there', 'echo "x = 1" > a.py; cp a.py lib/', '+a.py: x = 1\n,+lib/a.py: x = 1\n'],
    [
      'a patch that lies in a file',
      "cat > p.diff <<'EOF'\n--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+x = 1\nEOF\ngit apply p.diff && rm p.diff",
      '+a.py: x = 1\n',
    ],
    [
      'a message beside it that looks like a shell’s',
      `git commit -qm "$(cat <<'EOF'\nIt's (done\nEOF\n)"; echo 1 > a.py`,
      '+a.py: 1\n',
    ],
  ])('%s', (_, command, expected) => {
    const [...all] = followed([command]);
    expect(all.pop()).toBe(0);
    expect(all.join()).toBe(expected);
  });

  test('a command as a list of words', () => {
    expect(followed([['bash', '-lc', 'echo 1 > a.py']], [['rm', '-f', 'a.py']])).toEqual([0]);
    expect(followed([['sed', '-i', 's/0/1/', 'total.py']], [['cat', '>', 'a.py']])).toEqual([1]);
  });
});

describe('a file that was shown is changed by', () => {
  test.each<[string, string, string]>([
    ['another text in its place', `cat > total.py <<'EOF'\n${fixed}EOF`, fixed],
    ['more behind it', "cat >> total.py <<'EOF'\nx = 1\nEOF", `${file}x = 1\n`],
    ['sed', "sed -i 's/s = 0/s = 1/' total.py", fixed],
    ['sed with other signs and a name kept', "sed -i.orig -e 's|s = 0|s = 1|g' total.py && rm total.py.orig", fixed],
    ['sed of BSD', "sed -i '' 's/s = 0/s = 1/' ./total.py", fixed],
    ['a line by its number', "sed -i '5s/.*/    s = 1/' total.py", fixed],
    ['lines taken out and in', "sed -i -e '2d;/s = 0/d' -e '4a\\    s = 1' total.py", fixed.replace('\n\n\n', '\n\n')],
    ['what is found again', "sed -i 's/^def total/async &/;s/0$/1/' total.py", fixed.replace('def', 'async def')],
    ['sed into another file that takes its place', "sed 's/0/1/' total.py > t && mv t total.py", fixed],
    ['a patch', "patch -p1 <<'EOF'\n--- a/total.py\n+++ b/total.py\n@@ -5 +5 @@\n-    s = 0\n+    s = 1\nEOF", fixed],
  ])('%s', (_, command, after) => {
    expect(followed(seen, [command])).toEqual([`total.py: ${after}`, 0]);
  });

  test('nothing, where it is as it was in the end', () => {
    expect(followed(seen, ["sed -i 's/0/1/' total.py"], ['git checkout -- total.py'])).toEqual([0]);
    expect(followed(seen, ["sed -i 's/0/1/' total.py"], ["sed -i 's/1/0/' total.py"])).toEqual([0]);
    expect(followed(seen, ["sed -i 's/7/1/' total.py"])).toEqual([0]);
    expect(followed(seen, ['mv total.py sum.py'])).toEqual([0]);
    expect(followed(['echo 1 > a.py'], ['rm -rf a.py'])).toEqual([0]);
  });

  test('the same call again that says the same', () => {
    const more: Call = ["echo 'x = 1' >> total.py"];
    expect(followed(seen, more, more)).toEqual([`total.py: ${file}x = 1\nx = 1\n`, 0]);
  });

  test('what is shown with numbers or in a frame is what the file holds', () => {
    const numbered = file.replace(/^(?=.*\n)/gm, () => '     1\t');
    for (const [command, result] of [
      ['cat -n total.py', numbered],
      ['cd /repo && cat total.py', JSON.stringify({ output: file, metadata: { exit_code: 0 } })],
      ['cat ./total.py', `<returncode>0</returncode>\n<output>\n${file}</output>`],
      ['cat total.py', `${file}\n[The command completed with exit code 0.]\n[Current working directory: /repo]`],
    ] as const)
      expect(followed([command, result], ["sed -i 's/s = 0/s = 1/' total.py"])[0]).toMatch(
        /total\.py: import os[\s\S]*s = 1\n/,
      );
  });
});

describe('what cannot be read is left out, and counted:', () => {
  test.each<[string, readonly Call[]]>([
    ['sed in a file that nobody showed', [["sed -i 's/0/1/' total.py"]]],
    ['sed in one of which a part was shown', [['sed -n 1,5p total.py', file], ["sed -i 's/0/1/' total.py"]]],
    [
      'sed in one that was shown shortened',
      [['cat total.py', 'import os\n[... 90 lines omitted ...]\n'], ["sed -i 's/os/re/' total.py"]],
    ],
    ['a regular expression', [seen, ["sed -i 's/s = [0-9]/s = 1/' total.py"]]],
    ['a group', [seen, ["sed -E -i 's/(s) = 0/\\1 = 1/' total.py"]]],
    ['a number of a line behind such a change', [seen, ["sed -i 's/^\\s*//' total.py && sed -i 5d total.py"]]],
    ['a variable', [['cat > a.py <<EOF\nx = "$HOME"\nEOF']]],
    ['what another command says', [['echo "$(date)" > a.py']]],
    ['a program', [['pg_dump > a.py']]],
    ['python', [seen, ["python3 - <<'EOF'\nopen('total.py', 'w').write('')\nEOF"]]],
    ['perl', [seen, ["perl -pi -e 's/0/1/' total.py"]]],
    ['a formatter', [seen, ['black -q total.py']]],
    ['many files at once', [seen, ["grep -rl s | xargs sed -i 's/0/1/'"]]],
    ['a loop', [['for i in 1 2; do echo $i >> a.py; done']]],
    ['a condition', [['test -f a.py || echo 1 > a.py']]],
    ['a name that only the shell knows', [seen, ['echo 1 > "$FILE"']]],
    ['quotes that do not end', [["echo 'x = 1 > a.py"]]],
    ['a call that an error answered', [['echo 1 > a.py; python a.py', 'Error: 1']]],
    ['what reads the file that it writes', [seen, ['cat total.py | sed s/0/1/ > total.py']]],
  ])('%s', (_, calls) => {
    expect(followed(...calls)).toEqual([1]);
  });

  test('and what was read beside it stays', () => {
    expect(followed(['echo 1 > a.py'], ["sed -i 's/0/1/' total.py"])).toEqual(['+a.py: 1\n', 1]);
    // It is another text now than the one that was followed.
    expect(followed(['echo 1 > a.py'], ['date > a.py'])).toEqual([1]);
    expect(followed(['echo 1 > a.py'], ['date > a.py'], ['echo 2 > a.py'])).toEqual(['+a.py: 2\n', 1]);
  });

  test('what only looks at files changes none', () => {
    const looks = [
      'ls > /dev/null 2>&1',
      'grep -n "a > b" *.py | head -5',
      'pytest -q 2>&1 | tail',
      'git diff',
      'sed -n 1,5p a.py',
      '[[ 2 > 1 ]] && ls',
    ];
    expect(followed(...looks.map((command): Call => [command, 'a.py:1']), ["python -c 'print(1)'", '1'])).toEqual([0]);
  });
});

describe('a text of somebody’s making', () => {
  test('is never run, and ends', () => {
    const texts = [
      '$(',
      '"$(',
      '`',
      '\\',
      '(',
      '<<',
      'cat <<A\n',
      'a|',
      '>a ',
      "$'",
      '${',
      '{',
      'if ',
      ';;&&||',
      'bash -c "',
    ].map((piece) => piece.repeat(20_000 / piece.length));
    for (const text of [...texts, 'rm -rf / --no-preserve-root', '`touch /tmp/x`'])
      expect(followed([text]).length).toBe(1);
  });

  test('does not grow beyond what a file may hold', () => {
    const twice = 'cat a.py a.py > b.py; mv b.py a.py; sed -i s/x/xxxxxxxx/g a.py;'.repeat(100);
    expect(followed([`echo x > a.py; ${twice}`])).toEqual([1]);
    expect(followed(seen, [`sed -i 's/^/${'&'.repeat(100)}/' total.py`])).toEqual([1]);
  });
});
