/** The demo's settings, and what a user's own look like. */
import { defineConfig } from 'pawl';

export default defineConfig({
  agent: 'support-desk',
  world: './examples/support-desk/world.ts#deskWorld',
});
