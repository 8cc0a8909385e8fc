/** `npm run chaos -- [options]` runs test/chaos/main.ts; its last line of output is one JSON object of figures. */
import { register } from 'tsx/esm/api';

register();
await import(new URL('../test/chaos/main.ts', import.meta.url).href);
