// @ts-nocheck: runs in a browser, whose types this project does not load
/** The search of the documentation: an index that is loaded when somebody begins to type, every word somewhere in a section. */
const input = /** @type {HTMLInputElement} */ (document.getElementById('words'));
const found = /** @type {HTMLElement} */ (document.getElementById('found'));
/** @type {Promise<{ at: string, page: string, heading: string, text: string }[]> | null} */
let index = null;

async function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 10);
  if (words.length === 0) {
    found.hidden = true;
    return;
  }
  index ??= fetch('/docs/search-index.json').then((answer) => answer.json());
  const sections = await index;
  const hits = sections
    .map((section) => {
      const heading = `${section.page} ${section.heading}`.toLowerCase();
      const all = `${heading} ${section.text.toLowerCase()}`;
      const rank = words.every((word) => all.includes(word))
        ? 1 + words.filter((word) => heading.includes(word)).length * 10
        : 0;
      return { section, rank };
    })
    .filter(({ rank }) => rank > 0)
    .sort((a, b) => b.rank - a.rank)
    .slice(0, 30);
  const list = document.createElement('ul');
  for (const { section } of hits) {
    const link = document.createElement('a');
    link.href = section.at;
    link.textContent = section.page === section.heading ? section.page : `${section.page}: ${section.heading}`;
    const place = section.text.toLowerCase().indexOf(words[0] ?? '');
    const words_ = document.createElement('p');
    words_.textContent = section.text.slice(Math.max(0, place - 60), Math.max(0, place - 60) + 180);
    const item = document.createElement('li');
    item.append(link, words_);
    list.append(item);
  }
  const count = document.createElement('p');
  count.textContent = hits.length === 0 ? 'Nothing found.' : `${hits.length} sections`;
  found.replaceChildren(count, list);
  found.hidden = false;
}

input.addEventListener('input', () => void search());
input.form?.addEventListener('submit', (event) => {
  event.preventDefault();
  void search();
});
