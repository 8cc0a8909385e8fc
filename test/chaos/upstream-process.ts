/**
 * The stand-in model server of a chaos run, in a process that can be killed, behind a proxy that can go silent. Says its
 * port to its parent and ends with it; takes `silence`, `resume` and `cut`.
 */
import { startProxy } from '../silent-proxy.ts';
import { startUpstream } from '../upstream.ts';

const upstream = await startUpstream();
const proxy = await startProxy({ port: upstream.port });
process.on('message', (word) => {
  if (word === 'silence' || word === 'resume' || word === 'cut') proxy[word]();
});
process.on('disconnect', () => process.exit(0));
process.send?.(proxy.port);
