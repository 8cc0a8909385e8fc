/**
 * The packages that are built into dist/ (build.js) instead of loaded from node_modules. They consist of many small files, and finding, reading
 * and compiling those one by one was a third of what a command takes. All others stay where they are: native ones, those with
 * files of their own beside their code, and those that few commands need.
 */
export const bundledPackages = [
  ...['@asteasolutions/zod-to-openapi', '@hono/node-server', '@hono/zod-openapi', '@hono/zod-validator', 'hono'],
  ...['openapi3-ts', 'yaml'],
  ...['@cfworker/json-schema', 'commander', 'kysely', 'libphonenumber-js', 'undici', 'validator', 'zod'],
  ...['pg', 'pg-connection-string', 'pg-int8', 'pg-pool', 'pg-protocol', 'pg-types', 'pgpass', 'split2'],
  ...['postgres-array', 'postgres-bytea', 'postgres-date', 'postgres-interval', 'xtend'],
  ...['prom-client', '@opentelemetry/api', 'bintrees', 'tdigest'],
];

/** The package of an import: `hono` of `hono/body-limit`. @param {string} name */
export const packageOf = (name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/');
