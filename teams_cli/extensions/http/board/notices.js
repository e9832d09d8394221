// What the page tells the person besides what it shows: refusals, and what a screen reader should say.

import { button, byId, el } from './dom.js';

const REST = 700;
const AT_ONCE = 3;
let waiting = [];
let timer = 0;

/** Have a screen reader say it, when it is silent; what comes in a rush is said together, or counted. */
export function say(text) {
  waiting.push(text);
  timer ||= setTimeout(speak, REST);
}

function speak() {
  timer = 0;
  const said = waiting.length > AT_ONCE ? [...waiting.slice(0, AT_ONCE), `and ${waiting.length - AT_ONCE} more`] : waiting;
  waiting = [];
  byId('polite').textContent = `${said.join('. ')}.`;
}

/** Show a refusal with its hint: beside what was tried, or at the edge of the page until it is dismissed. */
export function refuse(refusal, place = null) {
  const shown = el('div', { class: 'error', role: 'alert' }, el('p', { class: 'error-message' }, refusal.message));
  if (refusal.hint) shown.append(el('p', { class: 'error-hint' }, refusal.hint));
  if (place) {
    place.replaceChildren(shown);
    return;
  }
  const dismiss = button('Dismiss', () => shown.remove(), { class: 'quiet' });
  shown.append(dismiss);
  byId('errors').append(shown);
  while (byId('errors').children.length > 4) byId('errors').firstElementChild.remove();
}

/**
 * Run *work*, which changes something, with *control* busy meanwhile; a refusal is shown at *place*. Whether it was done.
 */
export async function attempt(control, work, place = null) {
  if (control?.getAttribute('aria-busy') === 'true') return false;
  control?.setAttribute('aria-busy', 'true');
  place?.replaceChildren();
  try {
    await work();
    return true;
  } catch (refusal) {
    refuse(refusal, place);
    return false;
  } finally {
    control?.removeAttribute('aria-busy');
  }
}
