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
  const stuck = task.status === 'failed' || task.heldUp;
  node.className = ['card', `priority-${task.priority}`, task.blocked && 'blocked', stuck && 'stuck'].filter(Boolean).join(' ');
  node.dataset.waitsFor = (task.openBlockers ?? []).join(' ');
  const tab = node.querySelector('.open')?.tabIndex ?? -1;
  node.replaceChildren(...[head(task), title(task, does, tab), why(task), waits(task, does, tab), comesAfter(task, does, tab), inWork(task), foot(task), menu(task, does, tab)].filter(Boolean));
  if (had) node.querySelector(`.${had.split(' ')[0]}`)?.focus({ preventScroll: true });
}

function head(task) {
  const priority = task.priority !== 'normal' && el('span', { class: `tag ${task.priority}` }, task.priority);
  return el('div', { class: 'card-head' }, el('span', { class: 'id' }, task.id), priority || null);
}

/** Why it failed, and what that holds up. */
function why(task) {
  const parts = [];
  if (task.reason) parts.push(el('p', { class: 'reason', dir: 'auto' }, ...visible(task.reason)));
  if (task.waiting && ['failed', 'cancelled'].includes(task.status)) parts.push(el('p', { class: 'holds' }, holds(task)));
  return parts.length ? el('div', { class: 'why' }, parts) : null;
}

/** `blocks 19 tasks`. */
export function holds({ waiting }) {
  return `blocks ${waiting} ${waiting === 1 ? 'task' : 'tasks'}`;
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
  if (task.openBlockers?.length) said.push(`blocked by ${task.openBlockers.map((id) => `${id}, which ${HOW[task.blockers[id]] ?? 'is pending'}`).join(', ')}`);
  if (task.waiting) said.push(`blocks ${task.waiting}`);
  return `(${said.filter(Boolean).join('; ')})`;
}

function waits(task, does, tab) {
  if (!task.openBlockers?.length || FINISHED.has(task.status)) return null;
  const chips = task.openBlockers.map((id) => el('li', {}, chip(id, does.jump, tab, task.blockers[id])));
  return el('div', { class: 'waits' }, el('span', { class: 'muted' }, 'blocked by'), el('ul', { class: 'chips' }, chips));
}

/** The tasks that are to be completed before it is. */
function comesAfter(task, does, tab) {
  if (!task.after?.length || FINISHED.has(task.status)) return null;
  return el('div', { class: 'waits' }, el('span', { class: 'muted' }, 'completed after'), el('ul', { class: 'chips' }, task.after.map((id) => el('li', {}, chip(id, does.jump, tab)))));
}

/** What its owner changes, and with whose work that conflicts. */
function inWork({ changing, conflicts }) {
  const parts = Object.entries(conflicts ?? {}).map(([name, places]) => el('p', { class: 'reason', dir: 'auto' }, ...visible(`conflicts with ${name} in ${places}`)));
  if (changing) parts.unshift(el('p', { class: 'muted', dir: 'auto', title: changing.join('\n') }, ...visible(`changes ${changing.slice(0, SHOWN).join(', ')}${changing.length > SHOWN ? ` and ${changing.length - SHOWN} more` : ''}`)));
  return parts.length ? el('div', { class: 'in-work' }, parts) : null;
}

const SHOWN = 3;
const HOW = { in_progress: 'is in progress', in_review: 'is in review', failed: 'failed', cancelled: 'was cancelled', missing: 'does not exist', completed: 'is done' };
const SIGNS = { in_progress: '▸', in_review: '◎', failed: '✗', cancelled: '✗', missing: '?', completed: '✓' };

/** A button that goes to another task, and says how that is where it is known. */
export function chip(id, jump, tab = 0, status = '') {
  const sign = SIGNS[status] && el('span', { 'aria-hidden': 'true' }, `${SIGNS[status]} `);
  const said = HOW[status] && el('span', { class: 'unseen' }, ` ${HOW[status]}`);
  const title = `Go to ${id}${HOW[status] ? `, which ${HOW[status]}` : ''}`;
  const node = button('', () => jump(id), { class: `chip ${status}`.trim(), tabindex: tab, title });
  node.append(...[sign, id, said].filter(Boolean));
  return node;
}

/** What its being done rests on: its check, and who reviews it. */
function proof({ check, checked, status, reviewBy }) {
  const parts = [];
  if (checked?.status) parts.push(el('span', { class: 'tag bad', title: checked.command }, '✗ check failed'));
  else if (checked) parts.push(el('span', { class: `tag ${checked.stale ? 'high' : 'good'}`, title: checked.command }, checked.stale ? 'check stale' : '✓ check passed'));
  else if (check) parts.push(el('span', { class: 'tag', title: check }, 'has a check'));
  if (reviewBy && !FINISHED.has(status)) parts.push(el('span', { class: `tag ${status === 'in_review' ? 'review' : ''}` }, `${status === 'in_review' ? 'waits for' : 'review by'} ${reviewBy === 'human' ? 'you' : reviewBy}`));
  return parts;
}

function foot(task) {
  const parts = [];
  if (task.owner) parts.push(el('span', { class: 'owner', title: 'Owner' }, task.owner));
  for (const skill of task.require ?? []) parts.push(el('span', { class: 'tag skill', title: 'Required skill' }, plain(skill)));
  parts.push(...proof(task));
  if (task.planRequired) parts.push(el('span', { class: 'tag' }, 'needs a plan'));
  if (task.leaseExpiresAt && task.status === 'in_progress') {
    parts.push(el('span', { class: 'lease', title: 'The claim expires then, unless the agent shows a sign of life' }, el('span', {}, task.inGrace ? 'grace period ' : 'claim '), timeLeft(task.leaseExpiresAt)));
  } else if (FINISHED.has(task.status) && task.completedAt) parts.push(el('span', { class: 'muted' }, timeAgo(task.completedAt)));
  if (task.result && !task.reason) parts.push(el('p', { class: 'result', dir: 'auto' }, firstLine(task.result)));
  return parts.length ? el('div', { class: 'card-foot' }, parts) : null;
}
