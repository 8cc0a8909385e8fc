/**
 * Folders of built files over HTTP: the dashboard at `/`, the documentation at `/docs`. They are read into memory once, when they are
 * first asked for: a few hundred kilobytes, so that no request names a path on disk. Nothing here holds data of an installation.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join, sep } from 'node:path';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
};

/** Of every page: nothing from elsewhere, no inline script, no frame around it, no form. */
export const pageHeaders: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

type Encoding = 'br' | 'gzip';
type File = {
  readonly bytes: Buffer;
  readonly type: string;
  readonly etag: string;
  /** The same, packed at build time. */
  readonly packed: ReadonlyMap<Encoding, Buffer>;
};

/** No folder that is served is near this; one that is was not built by us. */
const mostBytes = 64 * 1024 * 1024;
const mostFiles = 2_000;

/** Files by their path below the folder, with `/` between its parts; null: there is no such folder, or no index in it. */
function readFolder(folder: string): ReadonlyMap<string, File> | null {
  let names: string[];
  try {
    names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const found = new Map<string, Buffer>();
  let bytes = 0;
  for (const name of names) {
    const path = join(folder, name);
    const { size, isFile } = ((at) => ({ size: at.size, isFile: at.isFile() }))(statSync(path));
    if (!isFile) continue;
    bytes += size;
    if (bytes > mostBytes || found.size >= mostFiles)
      throw new Error(`${folder} holds more than was built into it: build it again with \`npm run build\`.`);
    found.set(name.split(sep).join('/'), readFileSync(path));
  }
  const files = new Map<string, File>();
  for (const [name, content] of found) {
    const type = types[extname(name)];
    if (type === undefined) continue; // packed ones, maps
    const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
    const packed = new Map<Encoding, Buffer>();
    for (const [encoding, ending] of [['br', '.br'] as const, ['gzip', '.gz'] as const]) {
      const same = found.get(`${name}${ending}`);
      if (same !== undefined) packed.set(encoding, same);
    }
    files.set(name, { bytes: content, type, etag, packed });
  }
  return files.has('index.html') ? files : null;
}

/** Vite's names end in a hash of what is in the file: `index-BXqf3k2L.js`. */
const isHashed = (name: string): boolean => /-[\w-]{8,}\.\w+$/.test(name) && name.startsWith('assets/');

function encodingFor(accepted: string | undefined, file: File): [Encoding, Buffer] | null {
  const takes = (accepted ?? '').split(',', 20).map((one) => one.split(';', 1)[0]!.trim());
  for (const encoding of ['br', 'gzip'] as const) {
    const packed = takes.includes(encoding) ? file.packed.get(encoding) : undefined;
    if (packed !== undefined) return [encoding, packed];
  }
  return null;
}

export type Files = {
  /** Whether the folder is there. */
  exists(): boolean;
  /** Answers if it has something at this path, which begins with `/`; false: nothing was sent. */
  answer(path: string, request: IncomingMessage, response: ServerResponse): boolean;
};

/** `/deploy/releases/v1.2` leads to a release; `/robots.txt` and `/assets/gone.js` are files that are not there. */
const isDeepLink = (name: string): boolean =>
  !name.includes('.') || (name.includes('/') && !name.includes('..') && !name.startsWith('assets/'));

/** `deepLinks`: paths that are no files get the index, which knows what to show. */
export function openFiles(folder: string, { deepLinks = false } = {}): Files {
  let files: ReadonlyMap<string, File> | null = null;
  const all = () => {
    files ??= readFolder(folder); // a folder that is built later is found then
    return files;
  };

  const nameOf = (path: string): string | null => {
    const known = all();
    let name: string;
    try {
      name = decodeURIComponent(path.slice(1));
    } catch {
      return null;
    }
    if (known?.has(name)) return name;
    const index = name === '' || name.endsWith('/') ? `${name}index.html` : `${name}.html`;
    if (known?.has(index)) return index;
    return deepLinks && known !== null && isDeepLink(name) ? 'index.html' : null;
  };

  return {
    exists: () => all() !== null,
    answer(path, request, response) {
      const name = nameOf(path);
      const file = name === null ? undefined : all()?.get(name);
      if (name === null || file === undefined) return false;
      const headers = {
        ...pageHeaders,
        'content-type': file.type,
        etag: file.etag,
        vary: 'accept-encoding',
        'cache-control': isHashed(name) ? 'public, max-age=31536000, immutable' : 'no-cache',
      };
      if (request.headers['if-none-match'] === file.etag) {
        response.writeHead(304, headers).end();
        return true;
      }
      const packed = encodingFor(request.headers['accept-encoding'], file);
      const bytes = packed?.[1] ?? file.bytes;
      response.writeHead(200, {
        ...headers,
        'content-length': bytes.length,
        ...(packed === null ? {} : { 'content-encoding': packed[0] }),
      });
      response.end(request.method === 'HEAD' ? undefined : bytes);
      return true;
    },
  };
}
