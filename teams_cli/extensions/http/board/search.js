// Searching all that was written, by the server; and going to what was found.

import { openTask } from './task_dialog.js';
import { read } from './api.js';
import { timeAgo } from './clock.js';
import { byId, el } from './dom.js';
import { showMessage } from './messages.js';
import { refuse, say } from './notices.js';
import { go, link, said } from './place.js';
import { visible } from './text.js';
import { showView } from './views.js';

const REST = 250; // milliseconds without a key before it is looked for
const PLACES = { tasks: 'task', messages: 'message', results: 'result', notes: 'note', pages: 'page' };
let timer = 0;
let asked = '';

export function startSearch() {
  const field = byId('search');
  field.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => look(field.value.trim()), REST);
  });
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') look(field.value.trim());
    if (event.key === 'Escape') close();
    if (event.key !== 'ArrowDown') return;
    event.preventDefault();
    byId('found').querySelector('a')?.focus();
  });
  byId('found').addEventListener('keydown', step);
  document.addEventListener('pointerdown', ({ target }) => target.closest('#found, .search') ?? close(false));
  if (said('find')) {
    field.value = said('find');
    look(field.value);
  }
}

/** Show what has the words; nothing for none. */
async function look(words) {
  asked = words;
  go({ find: words });
  if (!words) return close(false);
  try {
    const found = await read('search', { words });
    if (asked === words) show(words, found);
  } catch (refusal) {
    if (asked === words) {
      byId('found').hidden = false;
      refuse(refusal, byId('found'));
    }
  }
}

function show(words, found) {
  const some = found.length === 50 ? 'the newest 50' : String(found.length);
  say(`${found.length ? some : 'nothing'} found`);
  const head = el('p', { class: 'muted' }, found.length ? `Found: ${some}` : `Nothing found for “${words}”. Words match at their beginning.`);
  byId('found').hidden = false;
  byId('found').replaceChildren(head, el('ul', {}, found.map(row)));
}

function row(hit) {
  const place = hit.in === 'messages' ? { message: hit.id } : hit.in === 'pages' ? { view: 'pages' } : { task: hit.id };
  const open = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    close(false);
    if (hit.in === 'messages') showMessage(hit.id);
    else if (hit.in === 'pages') showView('pages');
    else openTask(hit.id);
  };
  const about = [hit.from && `${hit.from}${hit.to ? ` → ${hit.to}` : ''}`, hit.in === 'tasks' ? '' : hit.title].filter(Boolean).join(' · ');
  return el('li', {}, el('a', { href: link({ ...place, find: '' }), onclick: open },
    el('span', { class: 'tag' }, PLACES[hit.in] ?? hit.in), ' ', el('span', { class: 'id' }, hit.id), ' ',
    el('span', { class: 'muted' }, about, ' '), hit.at ? timeAgo(hit.at) : null,
    el('span', { class: 'hit', dir: 'auto' }, ...visible(hit.text))));
}

function step(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === 'Escape') return close();
  if (!by) return undefined;
  event.preventDefault();
  const links = [...byId('found').querySelectorAll('a')];
  const next = links[links.indexOf(document.activeElement) + by];
  return (next ?? (by < 0 ? byId('search') : null))?.focus();
}

function close(focus = true) {
  asked = '';
  go({ find: '' });
  byId('found').hidden = true;
  if (focus) byId('search').focus();
  return undefined;
}
