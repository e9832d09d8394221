// What was done, or is about to be, with a way back: shown for a while at the edge of the page.

import { button, byId, el } from './dom.js';
import { attempt, say } from './notices.js';

const BACK = 15_000; // milliseconds
const AHEAD = 6000;

/** Offer to take back what was done: `undo()` does it. */
export function offerUndo(text, undo) {
  const shown = note(text, () => attempt(null, undo));
  shown.timer = setTimeout(() => away(shown), BACK);
}

/** Do it in a while, unless it is taken back first: for what can't be undone. Resolves with whether it is to be done. */
export function doSoon(text) {
  return new Promise((resolve) => {
    const shown = note(text, () => resolve(false));
    shown.timer = setTimeout(() => {
      away(shown);
      resolve(true);
    }, AHEAD);
  });
}

function note(text, back) {
  const undo = button('Undo', () => {
    away(shown);
    back();
  });
  const shown = el('div', { class: 'undo' }, el('span', {}, text), undo);
  byId('undos').append(shown);
  say(`${text} Undo is available.`);
  return shown;
}

function away(shown) {
  clearTimeout(shown.timer);
  shown.remove();
}

/** Take back the newest that can be. Whether there was one. */
export function undoNewest() {
  const newest = byId('undos').lastElementChild?.querySelector('button');
  newest?.click();
  return Boolean(newest);
}
