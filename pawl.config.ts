/** The demo's settings, and what a user's own look like. */
import { defineConfig } from './src/config.ts';

export default defineConfig({
  agent: 'support-desk',
  world: './examples/support-desk/world.ts#deskWorld',
});
