// Accepting or rejecting the work of another, wherever it is shown.

import { perform } from './actions.js';
import { button, el } from './dom.js';
import { ask, field } from './forms.js';
import { attempt } from './notices.js';
import { firstLine } from './text.js';

/** Accept it, or reject it and say why. */
export function verdictButtons(id, title) {
  const place = (control) => control.closest('.row, .ask, dialog')?.querySelector('.refusal');
  const accept = button('Accept', () => attempt(accept, () => perform('review-task', { task: id, accept: true }), place(accept)), { class: 'primary', 'data-control': 'accept' });
  const reject = button('Reject…', () => askWhy(id, title), { 'data-control': 'reject' });
  return el('div', { class: 'buttons', 'data-change': true }, accept, reject);
}

function askWhy(id, title) {
  ask({
    title: `Reject ${id}: ${firstLine(title, 60)}`,
    about: el('p', {}, 'The task is in progress again, and its owner gets the reason.'),
    inputs: [field({ name: 'reject', label: 'What is missing', kind: 'area', required: true })],
    label: 'Reject',
    danger: true,
    submit: ({ reject }) => perform('review-task', { task: id, reject }),
  });
}
