// Forms in dialogs. They are sent by script alone; a refusal is shown in the dialog, and what was typed stays.

import { button, el, giveBack, wayTo } from './dom.js';
import { attempt } from './notices.js';

let fields = 0;

/** A labelled control: `kind` is text, area, select or check. */
export function field({ name, label, kind = 'text', hint = '', value = '', options = [], ...attributes }) {
  fields += 1;
  const id = `field-${fields}`;
  const told = hint && el('p', { class: 'hint', id: `${id}-hint` }, hint);
  const control = controlOf(kind, { id, name, 'aria-describedby': hint && `${id}-hint`, ...attributes }, options);
  if (kind === 'check') return el('div', { class: 'field check' }, control, el('label', { for: id }, label), told || null);
  if (value !== '') control.value = value;
  return el('div', { class: 'field' }, el('label', { for: id }, label), control, told || null);
}

function controlOf(kind, attributes, options) {
  const said = Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== ''));
  if (kind === 'area') return el('textarea', { rows: 3, ...said });
  if (kind === 'select') return el('select', said, ...options.map(([value, label]) => el('option', { value }, label)));
  return el('input', { type: kind === 'check' ? 'checkbox' : kind, autocomplete: 'off', ...said });
}

/** The values of a form: text without blanks around it, checkboxes as booleans. */
export function valuesOf(form) {
  const said = {};
  for (const control of form.elements) {
    if (control.name) said[control.name] = control.type === 'checkbox' ? control.checked : control.value.trim();
  }
  return said;
}

/** Ctrl+Enter in a text area sends its form, as Enter does in a line. */
export function sendByKey(form) {
  form.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}

/** A dialog that goes away with its page; by Escape, its button, or a click beside it. */
export function dialog(title, className = '') {
  const heading = el('h2', { id: `dialog-${++fields}` }, title);
  const close = button('Close', () => made.close(), { class: 'quiet close' });
  const head = el('header', { class: 'dialog-head' }, heading, close);
  const made = el('dialog', { class: className, 'aria-labelledby': heading.id }, head);
  const way = wayTo(document.activeElement);
  made.addEventListener('close', () => {
    made.remove();
    giveBack(way);
  });
  let pressed = null; // a selection that ends beside the dialog began in it
  made.addEventListener('pointerdown', (event) => (pressed = event.target));
  made.addEventListener('click', (event) => event.target === made && pressed === made && made.close());
  document.body.append(made);
  made.heading = heading;
  return made;
}

/** Ask for the values of *inputs*, and hand them to *submit*; the dialog closes when that is done. */
export function ask({ title, about = null, inputs = [], label, danger = false, submit }) {
  const made = dialog(title, 'form');
  const place = el('div', { class: 'refusal' });
  const send = el('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, label);
  const cancel = button('Cancel', () => made.close(), { class: 'quiet' });
  const form = el('form', {}, about, ...inputs, place, el('div', { class: 'buttons' }, send, cancel));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (await attempt(send, () => submit(valuesOf(form)), place)) made.close();
  });
  sendByKey(form);
  made.append(form);
  made.showModal();
  form.querySelector('[autofocus], input, textarea, select, button')?.focus();
  return made;
}
