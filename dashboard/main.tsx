import { createRoot } from 'react-dom/client';
import { OfAgent } from './agent.tsx';
import { Signed } from './session.tsx';
import { Shell } from './shell.tsx';
import './theme.css';
import './stages.css';
import { keepTheme } from './theme.ts';

keepTheme();
createRoot(document.getElementById('root')!).render(
  <Signed>
    <OfAgent>
      <Shell />
    </OfAgent>
  </Signed>,
);
