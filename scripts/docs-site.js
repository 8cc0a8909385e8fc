/**
 * Makes dist/docs-site/ out of README.md and docs/: plain pages that Pawl serves at /docs, with a search of their own and nothing from another
 * host. Part of `npm run build`; `node scripts/docs-site.js` makes it alone.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { Marked } from 'marked';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const out = join(root, 'dist', 'docs-site');

/** Pages in the order of the menu; one that is named nowhere comes under More. */
const menu = {
  Begin: ['index', 'start', 'concepts', 'dashboard', 'faq'],
  'The loop': [
    ...[
      'gateway',
      'import',
      'explore',
      'score',
      'curate',
      'train',
      'algorithms/index',
      'practise',
      'evaluate',
      'review',
    ],
    ...['rollouts', 'releases', 'loop'],
  ],
  Operate: ['operations', 'scale', 'serving', 'engines', 'artifacts', 'store', 'monitoring', 'reliability', 'chaos'],
  Trust: ['security', 'privacy', 'pii'],
  Reference: ['settings', 'routes', 'engine', 'log'],
};

/** @typedef {{ path: string, source: string, text: string, title: string }} Page */

/** @param {string} text */
const escaped = (text) =>
  text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c] ?? c);

/** @param {string} text */
const slugOf = (text) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .trim()
    .replaceAll(' ', '-');

/** Headings as people see them: without marks. @param {string} text */
const bare = (text) => text.replace(/[`*_]|\[([^\]]*)\]\([^)]*\)/g, '$1');

/** @returns {Page[]} */
function readPages() {
  const files = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => ({
      source: `docs/${name}`,
      path: name.replace(/(^|\/)README\.md$/, '$1index.md').replace(/\.md$/, ''),
    }));
  return [{ source: 'README.md', path: 'index' }, ...files].map(({ source, path }) => {
    const text = readFileSync(join(root, source), 'utf8');
    return { source, path, text, title: bare(/^# (.*)$/m.exec(text)?.[1] ?? path) };
  });
}

/** Where a link of a page leads on the site; null: to what is not part of it. @param {Page} page @param {string} href @param {ReadonlySet<string>} known */
function linkOf(page, href, known) {
  if (/^[a-z]+:/i.test(href) || href.startsWith('/')) return href;
  const [target = '', anchor] = href.split('#', 2);
  if (target === '') return href;
  const source = posix.normalize(posix.join(posix.dirname(page.source), target));
  if (/^docs\/.*\.(png|svg)$/.test(source)) return `/docs/${source.slice('docs/'.length)}`;
  const path =
    source === 'README.md'
      ? 'index'
      : source
          .replace(/^docs\//, '')
          .replace(/(^|\/)README\.md$/, '$1index.md')
          .replace(/\.md$/, '');
  if (!known.has(path)) return null;
  const at = path === 'index' ? '/docs' : `/docs/${path.replace(/\/index$/, '/')}`;
  return anchor === undefined ? at : `${at}#${anchor}`;
}

/** @param {Page} page @param {ReadonlySet<string>} known */
function htmlOf(page, known) {
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        return `<h${depth} id="${escaped(slugOf(bare(text)))}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const words = this.parser.parseInline(tokens);
        const to = linkOf(page, href, known);
        return to === null ? words : `<a href="${escaped(to)}">${words}</a>`;
      },
      image({ href, text }) {
        const to = linkOf(page, href, known);
        return to === null ? escaped(text) : `<img src="${escaped(to)}" alt="${escaped(text)}" loading="lazy">`;
      },
      html: () => '', // comments that scripts write between
    },
  });
  return marked
    .parse(page.text, { async: false })
    .replaceAll('<table>', '<div class="table" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>');
}

/** @param {readonly Page[]} pages @param {Page} here */
function menuOf(pages, here) {
  const named = new Set(Object.values(menu).flat());
  const others = pages.filter(
    ({ path }) => !named.has(path) && !path.startsWith('decisions/') && !path.startsWith('algorithms/'),
  );
  const decisions = pages
    .filter(({ path }) => path.startsWith('decisions/'))
    .toSorted((a, b) => (a.path < b.path ? -1 : 1));
  const groups = [
    ...Object.entries(menu).map(([name, paths]) => ({
      name,
      list: paths.flatMap((path) => pages.find((page) => page.path === path) ?? []),
    })),
    { name: 'More', list: others },
    { name: 'Decisions', list: decisions },
  ];
  return groups
    .filter(({ list }) => list.length > 0)
    .map(({ name, list }) => {
      const items = list.map((page) => {
        const to = page.path === 'index' ? '/docs' : `/docs/${page.path.replace(/\/index$/, '/')}`;
        const title = page.path === 'index' ? 'Pawl' : page.title;
        return `<li><a href="${to}"${page === here ? ' aria-current="page"' : ''}>${escaped(title)}</a></li>`;
      });
      const isOpen = name !== 'Decisions' || list.includes(here);
      return `<details${isOpen ? ' open' : ''}><summary>${name}</summary><ul>${items.join('')}</ul></details>`;
    })
    .join('\n');
}

/** @param {readonly Page[]} pages @param {Page} page @param {ReadonlySet<string>} known */
const wholeOf = (pages, page, known) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(page.title)} – Pawl</title>
<link rel="stylesheet" href="/docs/site.css">
<script src="/docs/search.js" defer></script>
</head>
<body>
<a class="skip" href="#main">To the text</a>
<header><a href="/docs">Pawl</a><a href="/">Dashboard</a>
<form role="search"><label for="words">Search</label><input id="words" type="search" autocomplete="off"></form></header>
<div class="sides">
<nav aria-label="Pages">${menuOf(pages, page)}</nav>
<main id="main"><section id="found" aria-live="polite" hidden></section>
${htmlOf(page, known)}</main>
</div>
</body>
</html>
`;

/** Each heading with the words below it, for the search. @param {readonly Page[]} pages */
function indexOf(pages) {
  return pages.flatMap(({ path, title, text }) => {
    const at = path === 'index' ? '/docs' : `/docs/${path.replace(/\/index$/, '/')}`;
    return text.split(/^(?=#{1,4} )/m).map((part) => {
      const heading = bare(/^#{1,4} (.*)$/m.exec(part)?.[1] ?? title);
      const words = bare(part.replace(/^#.*$/m, '').replace(/<!--.*?-->/g, ''))
        .replace(/[\s|]+/g, ' ')
        .trim();
      return { at: `${at}#${slugOf(heading)}`, page: title, heading, text: words.slice(0, 4000) };
    });
  });
}

export function buildDocs() {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const pages = readPages();
  const known = new Set(pages.map(({ path }) => path));
  /** @param {string} name @param {string} text */
  const put = (name, text) => {
    const file = join(out, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    writeFileSync(`${file}.br`, brotliCompressSync(text));
    writeFileSync(`${file}.gz`, gzipSync(text));
  };
  for (const page of pages) put(`${page.path}.html`, wholeOf(pages, page, known));
  put('search-index.json', JSON.stringify(indexOf(pages)));
  for (const name of ['site.css', 'search.js'])
    put(name, readFileSync(join(root, 'scripts', 'docs-site', name), 'utf8'));
  const pictures = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.(png|svg)$/.test(name),
  );
  for (const name of pictures) {
    mkdirSync(dirname(join(out, name)), { recursive: true });
    cpSync(join(root, 'docs', name), join(out, name));
  }
  return pages.length;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(`${buildDocs()} pages in dist/docs-site`);
