// A menu that a button opens: arrow keys, Home, End and Escape, as the ARIA pattern has it.

import { el, giveBack, wayTo } from './dom.js';

/** Open a menu under *opener*; *entries* are {label, does, danger?}. */
export function openMenu(opener, label, entries) {
  const way = wayTo(opener);
  const menu = el('div', { class: 'menu', role: 'menu', 'aria-label': label, popover: 'auto' });
  for (const { label: text, does, danger } of entries) {
    const chosen = () => {
      menu.hidePopover();
      does();
    };
    menu.append(el('button', { type: 'button', role: 'menuitem', tabindex: -1, class: danger && 'danger', onclick: chosen }, text));
  }
  menu.addEventListener('keydown', (event) => go(event, menu));
  menu.addEventListener('toggle', (event) => {
    opener.setAttribute('aria-expanded', String(event.newState === 'open'));
    if (event.newState !== 'closed') return;
    menu.remove();
    giveBack(way);
  });
  document.body.append(menu);
  menu.showPopover();
  place(menu, opener.getBoundingClientRect());
  menu.firstElementChild?.focus();
}

function place(menu, at) {
  const { width, height } = menu.getBoundingClientRect();
  const below = at.bottom + height + 8 < innerHeight;
  menu.style.left = `${Math.max(8, Math.min(at.right - width, innerWidth - width - 8))}px`;
  menu.style.top = `${Math.max(8, below ? at.bottom + 4 : at.top - height - 4)}px`;
}

function go(event, menu) {
  const items = [...menu.children];
  const here = items.indexOf(document.activeElement);
  const target = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: items.length - 1 }[event.key];
  if (target !== undefined) {
    event.preventDefault();
    items[(target + items.length) % items.length].focus();
  }
  if (event.key === 'Tab' || event.key === 'Escape') {
    event.preventDefault();
    menu.hidePopover();
  }
}
