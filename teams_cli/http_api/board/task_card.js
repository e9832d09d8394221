// One task on the board.

import { button, el, icon } from './dom.js';
import { timeAgo, timeLeft } from './clock.js';
import { FINISHED, WORDS } from './statuses.js';
import { firstLine, plain, visible } from './text.js';

const DOTS = 'M3 8h.01M8 8h.01M13 8h.01';

export function createCard(task) {
  return el('li', { class: 'card', id: `card-${task.id}`, 'data-task': task.id });
}

/** Fill the card anew; *does* has `open`, `menu` and `jump`. */
export function fillCard(node, task, does) {
  const had = node.contains(document.activeElement) ? document.activeElement.className : '';
  node.className = ['card', `priority-${task.priority}`, task.blocked && 'blocked'].filter(Boolean).join(' ');
  node.dataset.waitsFor = (task.openBlockers ?? []).join(' ');
  const tab = node.querySelector('.open')?.tabIndex ?? -1;
  node.replaceChildren(...[head(task), title(task, does, tab), waits(task, does, tab), foot(task), menu(task, does, tab)].filter(Boolean));
  if (had) node.querySelector(`.${had.split(' ')[0]}`)?.focus({ preventScroll: true });
}

function head(task) {
  const priority = task.priority !== 'normal' && el('span', { class: `tag ${task.priority}` }, task.priority);
  return el('div', { class: 'card-head' }, el('span', { class: 'id' }, task.id), priority || null);
}

function menu(task, does, tab) {
  return button(icon(DOTS), (event) => does.menu(task.id, event.currentTarget), {
    class: 'card-menu',
    'aria-haspopup': 'menu',
    'aria-label': `Actions for ${task.id}`,
    tabindex: tab,
  });
}

function title(task, does, tab) {
  const open = el('button', { type: 'button', class: 'open', tabindex: tab, 'aria-describedby': 'keys', onclick: () => does.open(task.id) });
  open.append(el('span', { class: 'title', dir: 'auto' }, ...visible(task.title)), el('span', { class: 'unseen' }, ` ${spoken(task)}`));
  return el('h4', {}, open);
}

/** What a screen reader says after the title. */
function spoken(task) {
  const said = [WORDS[task.status], task.priority !== 'normal' && `${task.priority} priority`];
  if (task.owner) said.push(`owner ${task.owner}`);
  if (task.openBlockers?.length) said.push(`waits for ${task.openBlockers.join(', ')}`);
  return `(${said.filter(Boolean).join('; ')})`;
}

function waits(task, does, tab) {
  if (!task.openBlockers?.length || FINISHED.has(task.status)) return null;
  const chips = task.openBlockers.map((id) => el('li', {}, chip(id, does.jump, tab)));
  return el('div', { class: 'waits' }, el('span', { class: 'muted' }, 'waits for'), el('ul', { class: 'chips' }, chips));
}

/** A button that goes to another task. */
export function chip(id, jump, tab = 0) {
  return button(id, () => jump(id), { class: 'chip', tabindex: tab, title: `Go to ${id}` });
}

function foot(task) {
  const parts = [];
  if (task.owner) parts.push(el('span', { class: 'owner', title: 'Owner' }, task.owner));
  for (const skill of task.require ?? []) parts.push(el('span', { class: 'tag skill', title: 'Required skill' }, plain(skill)));
  if (task.planRequired) parts.push(el('span', { class: 'tag' }, 'needs a plan'));
  if (task.leaseExpiresAt && task.status === 'in_progress') {
    parts.push(el('span', { class: 'lease', title: 'The claim lasts so long without a heartbeat' }, timeLeft(task.leaseExpiresAt)));
  } else if (FINISHED.has(task.status) && task.completedAt) parts.push(el('span', { class: 'muted' }, timeAgo(task.completedAt)));
  if (task.result) parts.push(el('p', { class: 'result', dir: 'auto' }, firstLine(task.result)));
  return parts.length ? el('div', { class: 'card-foot' }, parts) : null;
}
