// Writing: to one, to all, or in answer to a message.

import { perform } from './actions.js';
import { button, byId, el, setText } from './dom.js';
import { field, sendByKey, valuesOf } from './forms.js';
import { attempt } from './notices.js';
import { current, on } from './state.js';
import { firstLine } from './text.js';

const ALL = 'all';
let answering = null;
let uid = '';
let writingIn = '';

export function startComposer() {
  const form = byId('composer');
  form.append(
    el('div', { class: 'composer-head' }, field({ name: 'to', label: 'To', kind: 'select', options: [], required: true }), answerBar()),
    field({ name: 'text', label: 'Message', kind: 'area', rows: 2, required: true, placeholder: 'Write to the agents' }),
    el('div', { class: 'refusal' }),
    el('div', { class: 'buttons' }, el('span', { class: 'hint' }, 'Ctrl+Enter sends'), el('button', { type: 'submit', class: 'primary' }, 'Send')),
  );
  form.addEventListener('submit', send);
  form.addEventListener('input', () => (uid = ''));
  sendByKey(form);
  on('snapshot', ({ agents, team }) => {
    if (team.name !== writingIn) answer(null);
    writingIn = team.name;
    offer(agents.filter(({ state }) => state !== 'stopped').map(({ name }) => name));
  });
}

function answerBar() {
  const drop = button('×', () => answer(null), { class: 'quiet', 'aria-label': 'Do not answer this message' });
  return el('p', { class: 'answering', hidden: true }, el('span', {}), drop);
}

function offer(names) {
  const select = byId('composer').elements.to;
  const said = names.join(' ');
  if (select.told === said) return;
  const chosen = select.value;
  select.told = said;
  select.replaceChildren(el('option', { value: '' }, 'Choose…'), ...names.map((name) => el('option', { value: name }, name)), el('option', { value: ALL }, 'Everyone (broadcast)'));
  select.value = names.includes(chosen) ? chosen : '';
}

/** Begin a message to that agent. */
export function writeTo(name) {
  answer(null);
  byId('composer').elements.to.value = name;
  byId('composer').elements.text.focus();
}

/** Begin the answer to that message, or drop it. It goes to who wrote the message, whatever was chosen before. */
export function answer(message, focus = true) {
  const form = byId('composer');
  const bar = form.querySelector('.answering');
  answering = message;
  bar.hidden = !message;
  form.elements.to.closest('.field').hidden = Boolean(message);
  form.elements.to.disabled = Boolean(message);
  setText(form.querySelector('[type=submit]'), message ? `Send to ${message.from}` : 'Send');
  if (!message) return;
  setText(bar.firstChild, `${isOpen(message) ? 'Answering' : 'Writing to'} ${message.from}, ${message.id}: ${firstLine(message.message, 60)}`);
  if (focus) form.elements.text.focus();
}

/** Whether the message waits for an answer; one that was handled, or went to others, is not answered but written after. */
function isOpen({ id }) {
  return current().mail.some((letter) => letter.id === id);
}

/** One uid until the text is another: sending again what may have arrived adds nothing. */
async function send(event) {
  event.preventDefault();
  const form = byId('composer');
  const { to, text } = valuesOf(form);
  uid ||= `board-${crypto.getRandomValues(new BigUint64Array(1))[0].toString(36)}`;
  const work = () => {
    if (answering && isOpen(answering)) return perform('reply', { message: answering.id, text });
    if (answering) return perform('send-message', { to: answering.from, text, uid });
    return to === ALL ? perform('broadcast-message', { text, uid }) : perform('send-message', { to, text, uid });
  };
  if (await attempt(form.querySelector('[type=submit]'), work, form.querySelector('.refusal'))) {
    form.elements.text.value = uid = '';
    if (to === ALL) form.elements.to.value = ''; // all are chosen anew each time
    answer(null);
  }
}
