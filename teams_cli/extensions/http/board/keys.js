// Single keys, as programs for much reading have them. They do nothing while one types, and can be turned off.

import { mayChange } from './api.js';
import { byId, el } from './dom.js';
import { dialog } from './forms.js';
import { createTask } from './task_forms.js';
import { step } from './tasks.js';
import { undoNewest } from './undo.js';
import { enlarge, showView, VIEWS } from './views.js';

const KEPT = 'teams.keys';
const KEYS = {
  '/': ['Search everything', () => byId('search').focus()],
  n: ['New task', () => mayChange() && createTask()],
  j: ['Next task', () => step(1)],
  k: ['Previous task', () => step(-1)],
  f: ['Tasks in the whole window, and back', enlarge],
  z: ['Undo', undoNewest],
  '?': ['These keys', showKeys],
};
VIEWS.slice(0, 9).forEach(({ id, label }, place) => (KEYS[place + 1] = [`Show ${label.toLowerCase()}`, () => byId(`tab-${id}`).hidden || showView(id)]));
const BY_CARD = [['↑ ↓ ← →', 'Go from task to task'], ['Enter', 'Open the task'], ['Shift + ← →', 'Move the task to another column'], ['Ctrl + Enter', 'Send the text']];

export function startKeys() {
  addEventListener('keydown', (event) => {
    const typing = event.target.closest?.('input, textarea, select, [contenteditable]');
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isOff()) return;
    if (!KEYS[event.key] || document.querySelector('dialog[open], [role=menu]')) return;
    event.preventDefault();
    KEYS[event.key][1]();
  });
  byId('help').addEventListener('click', showKeys);
}

function isOff() {
  try {
    return localStorage.getItem(KEPT) === 'off';
  } catch {
    return false;
  }
}

function showKeys() {
  const made = dialog('Keys');
  const rows = [...Object.entries(KEYS).map(([key, [what]]) => [key, what]), ...BY_CARD];
  const list = rows.flatMap(([key, what]) => [el('dt', {}, el('kbd', {}, key)), el('dd', {}, what)]);
  const box = el('input', { type: 'checkbox', id: 'single-keys', checked: !isOff() });
  box.addEventListener('change', () => localStorage.setItem(KEPT, box.checked ? 'on' : 'off'));
  made.append(el('div', { class: 'dialog-body' }, el('dl', { class: 'facts keys-list' }, list),
    el('label', { class: 'check', for: 'single-keys' }, box, ' Use single keys')));
  made.showModal();
}
