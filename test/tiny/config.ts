/** The settings of an installation with the tiny agent, for commands that go on with its runs. */
import { definition } from './world.ts';

export default { agents: [definition] };
