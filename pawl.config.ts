/** The demo's settings, and what a user's own look like. */
import { defineConfig } from 'pawl';
import supportDesk from './examples/support-desk/agent.ts';

export default defineConfig({ agents: [supportDesk] });
