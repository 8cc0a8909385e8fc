// Every read, write and end of a stream makes one of Node's small objects for process.nextTick. V8 forgets a shape that no living
// object has when it collects garbage, and code that met it anew afterwards makes such objects the slow way for good: a tenth of what
// an answer costs. So one of each kind is kept alive from the start on.
import { createHook } from 'node:async_hooks';

/** @type {object[]} */
const kept = [];
const hook = createHook({
  init(_id, type, _trigger, resource) {
    if (type === 'TickObject') kept.push(resource);
  },
}).enable();
process.nextTick(() => {});
process.nextTick(() => {}, kept);
hook.disable();

/** Named so that nothing takes them for unused. */
export const shapes = Object.freeze(kept);
