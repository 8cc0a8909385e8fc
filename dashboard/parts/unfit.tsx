/** What a dialog says before something begins to serve: it is checked first, or a person says why not. */
import { useState } from 'react';
import { Entry } from './field.tsx';

/** What never served is checked first, which may take a while; a person may let it through all the same. */
export function useUnfit() {
  const [why, set] = useState('');
  const said = why.trim();
  return {
    argument: ['--unfit', said === '' ? undefined : said] as [string, string | undefined],
    json: said === '' ? {} : { unfit: said },
    entry: (
      <>
        <p>What never served is first asked whether it fits its server; that can take two minutes.</p>
        <Entry label="Let it through unchecked, because" value={why} set={set} hint="leave empty to have it checked" />
      </>
    ),
  };
}
