// The files that were handed in with a task: a button for each, which shows it as it was then, and has it to keep.

import { read } from './api.js';
import { button, el } from './dom.js';
import { dialog } from './forms.js';
import { attempt } from './notices.js';
import { block, plain } from './text.js';

/** Buttons for the files of the task; null where there are none. */
export function evidenceOf(task) {
  if (!task.evidence?.length) return null;
  const made = (file) => el('li', {}, button(`${plain(file.name)} (${file.size.toLocaleString('en')} bytes)`, (event) => open(event, task.id, file), { class: 'quiet', title: `SHA-256 ${file.sha256}` }));
  return el('ul', { class: 'chips', 'aria-label': 'Attachments' }, task.evidence.map(made));
}

function open(event, task, { id }) {
  return attempt(event.currentTarget, async () => {
    const file = await read('get-evidence', { task, file: id });
    const made = dialog(file.name, 'wide');
    const address = URL.createObjectURL(new Blob([contentOf(file)]));
    made.addEventListener('close', () => URL.revokeObjectURL(address));
    made.append(el('div', { class: 'dialog-body' },
      el('p', { class: 'muted' }, `Attached to ${task} by ${file.by}, SHA-256 `, el('code', {}, file.sha256)),
      el('p', {}, el('a', { href: address, download: file.name }, 'Download')),
      'text' in file ? block(file.text || 'The file is empty.', 'said code') : el('p', {}, 'The file is not text.')));
    made.showModal();
  });
}

function contentOf(file) {
  return 'text' in file ? file.text : Uint8Array.from(atob(file.base64), (character) => character.charCodeAt(0));
}
