import { createRoot } from 'react-dom/client';
import { OfAgent } from './agent.tsx';
import { Signed } from './session.tsx';
import { Shell } from './shell.tsx';
import './theme.css';
import './stages.css';
import { keepTheme } from './theme.ts';

// A browser without a locale may say one that nobody knows (`en-US@posix`), and uPlot takes it at its word.
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en' });
}
keepTheme();
createRoot(document.getElementById('root')!).render(
  <Signed>
    <OfAgent>
      <Shell />
    </OfAgent>
  </Signed>,
);
