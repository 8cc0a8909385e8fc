/**
 * What a process of Pawl gets of this process's environment: where programs are found, and that it is to run what was built (built.ts).
 * Settings of whoever runs the tests stay away.
 */
const passed = ['PATH', 'HOME', 'TMPDIR', 'PAWL_BUILT'];

export const bareEnvironment = (): Record<string, string> => ({
  TZ: 'UTC',
  ...Object.fromEntries(
    passed.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]!]])),
  ),
});
