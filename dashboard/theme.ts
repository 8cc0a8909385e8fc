/** Light or dark: as the system has it, unless somebody chose. */
export type Theme = 'system' | 'light' | 'dark';
const themes: readonly Theme[] = ['system', 'light', 'dark'];
const key = 'pawl.theme';

export const currentTheme = (): Theme => themes.find((theme) => theme === localStorage.getItem(key)) ?? 'system';

export function setTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(key);
  else localStorage.setItem(key, theme);
  applyTheme();
}

/** `data-theme` is always light or dark; the style sheet knows nothing else. */
export function applyTheme(): void {
  const chosen = currentTheme();
  const isDark = chosen === 'dark' || (chosen === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
}

export function keepTheme(): void {
  applyTheme();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', applyTheme);
}
