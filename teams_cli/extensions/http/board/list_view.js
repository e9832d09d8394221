// A view that is a list: in words how many there are of what, a row for each, and what to do where there is none.

import { read } from './api.js';
import { byId, el, keyed, keepingFocus } from './dom.js';
import { attempt } from './notices.js';
import { block } from './text.js';

/**
 * The view of that name. *rowsOf* makes its rows of what the server said, each with a `key`; *create* and *fill* make a
 * row's node; *about* says how many there are of what.
 */
export function listView(name, label, { rowsOf, create, fill, about, none }) {
  const told = el('p', { class: 'muted', role: 'status' });
  const list = el('ul', { class: 'rows', 'aria-label': label });
  byId(`view-${name}`).replaceChildren(el('div', { class: 'view-bar' }, told), list);
  return (snapshot) => {
    if (!snapshot) return;
    const rows = rowsOf(snapshot).map((row) => ({ ...row, teamName: snapshot.team.name }));
    told.textContent = rows.length ? about(rows) : none;
    keepingFocus(() => keyed(list, rows, { key: ({ teamName, key }) => `${teamName} ${key}`, create, fill }));
  };
}

/** `2 queued, 1 landed`: how many rows have which of these words, in their order. */
export function counted(rows, words, of) {
  const counts = words.map((word) => [rows.filter((row) => of(row) === word).length, word]);
  return counts.filter(([count]) => count).map(([count, word]) => `${count} ${word.replace('_', ' ')}`).join(', ');
}

/** The end of what the task's check printed, when that is opened. */
export function output(task) {
  const place = el('div', { class: 'output' });
  const details = el('details', {}, el('summary', {}, 'Output'), place);
  details.addEventListener('toggle', () => details.open && attempt(place, async () => {
    const { checked } = await read('show-task', { task });
    place.replaceChildren(block(checked?.output?.trim() || 'It printed nothing.', 'said code'));
  }));
  return details;
}

/** The first characters of a commit's name, which tell it apart. */
export function commit(name) {
  return name ? el('code', { title: name }, name.slice(0, 10)) : null;
}

/** The agents' words for a person. */
export function who(name) {
  return name === 'human' ? 'you' : name;
}
