// The pages that the team shares: a list of them, each with its text when it is opened.

import { read } from './api.js';
import { timeAgo } from './clock.js';
import { byId, el, keyed } from './dom.js';
import { attempt } from './notices.js';
import { current } from './state.js';
import { block, visible } from './text.js';

let list = null;

/** Show them as they are now. */
export async function open() {
  if (!list) {
    list = el('ul', { class: 'asks', 'aria-label': 'Pages' });
    byId('view-pages').replaceChildren(list);
  }
  show(current());
}

/** Show them anew when one was changed. */
export function show(snapshot) {
  if (!snapshot || !list) return;
  const { name } = snapshot.team;
  const rows = snapshot.pages.map((page) => ({ ...page, teamName: name }));
  keyed(list, rows, { key: ({ teamName, key }) => `${teamName} ${key}`, create, fill });
}

function create({ key }) {
  const head = el('summary', {}, el('b', {}, key), ' ', el('span', { class: 'about muted' }), ' ', el('span', { class: 'hit', dir: 'auto' }));
  const details = el('details', {}, head, el('div', { class: 'page-text' }));
  details.addEventListener('toggle', () => details.open && fetchText(details, key));
  return el('li', { class: 'ask page', 'data-page': key }, details);
}

/** A page that is open is fetched again when it has another version. */
function fill(node, { key, version, author, updatedAt, line }) {
  const details = node.querySelector('details');
  node.querySelector('.about').replaceChildren(`version ${version} by ${author}, `, timeAgo(updatedAt));
  node.querySelector('.hit').replaceChildren(...visible(line));
  if (details.dataset.version !== String(version)) {
    details.dataset.version = String(version);
    if (details.open) fetchText(details, key);
  }
}

function fetchText(details, key) {
  const place = details.querySelector('.page-text');
  return attempt(place, async () => {
    const page = await read('shared', { key });
    place.replaceChildren(block(page.text, 'said plan-text'));
  });
}
