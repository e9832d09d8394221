// The board of tasks: columns by status, filled from each snapshot; going about by arrow keys, moving by drag, key or menu.

import { mayChange } from './api.js';
import { arriveAt, button, byId, el, forget, keepingFocus, keyed, setText } from './dom.js';
import { dragCards } from './drag.js';
import { openMenu } from './menu.js';
import { attempt, say } from './notices.js';
import { current, on } from './state.js';
import { FINISHED, STATUSES, WORDS, move, moveLabel, ordered } from './statuses.js';
import { createCard, fillCard } from './task_card.js';
import { openTask } from './task_dialog.js';
import { assign, createTask } from './task_forms.js';

const PAGE = 50;
const nodes = new Map();
const columns = new Map();
const limits = Object.fromEntries(STATUSES.map((status) => [status, PAGE]));
const does = { open: (id) => openTask(id), menu: taskMenu, jump };
let tasks = new Map();
let chosen = null;
let filter = '';
let was = null;

export function startTasks() {
  for (const status of STATUSES) byId('columns').append(column(status));
  byId('new-task').addEventListener('click', () => createTask());
  byId('task-filter').addEventListener('input', (event) => {
    filter = event.target.value.trim().toLowerCase();
    render();
  });
  const board = byId('columns');
  board.addEventListener('keydown', keyPressed);
  board.addEventListener('focusin', (event) => choose(event.target.closest('.card')));
  board.addEventListener('focusout', () => highlight(null));
  board.addEventListener('pointerover', (event) => highlight(event.target.closest('.card')?.dataset.task ?? null));
  board.addEventListener('pointerleave', () => highlight(null));
  dragCards(board, { mayGo, drop: (id, status) => moveTask(id, status) });
  on('snapshot', (snapshot) => {
    tasks = new Map(snapshot.tasks.map((task) => [task.id, task]));
    render();
    tell();
  });
}

function column(status) {
  const list = el('ul', { class: 'cards', 'aria-labelledby': `column-${status}` });
  const count = el('span', { class: 'count' });
  const heading = el('h3', { id: `column-${status}` }, el('span', { class: `mark ${status}` }), WORDS[status], ' ', count);
  const more = button('', () => showMore(status), { class: 'more', hidden: true });
  const made = el('section', { class: 'column', 'data-status': status, 'aria-labelledby': `column-${status}` }, heading, list, more);
  columns.set(status, { made, list, count, more });
  return made;
}

function showMore(status) {
  limits[status] += 4 * PAGE;
  render();
}

function matches(task) {
  return !filter || [task.id, task.title, task.owner, ...(task.require ?? [])].join(' ').toLowerCase().includes(filter);
}

function render() {
  keepingFocus(() => {
    const all = [...tasks.values()].filter(matches);
    for (const status of STATUSES) fillColumn(status, ordered(status, all));
    forget(nodes);
  });
  if (!nodes.has(chosen)) choose(document.querySelector('.card'));
  setText(byId('count-tasks'), String([...tasks.values()].filter((task) => !FINISHED.has(task.status)).length));
}

function fillColumn(status, found) {
  const { made, list, count, more } = columns.get(status);
  const total = filter ? found.length : Math.max(found.length, current()?.taskCounts?.[status] ?? 0);
  keyed(list, found.slice(0, limits[status]), {
    key: (task) => task.id,
    create: createCard,
    fill: (node, task) => fillCard(node, task, does),
    nodes,
  });
  setText(count, String(total));
  made.classList.toggle('empty', found.length === 0);
  more.hidden = found.length <= limits[status];
  setText(more, `Show more (${(found.length - limits[status]).toLocaleString('en')} not shown)`);
}

/** Tell a screen reader which tasks came and went. */
function tell() {
  const states = new Map([...tasks.values()].map((task) => [task.id, task.status]));
  if (was && was.team === current().team.name) {
    for (const [id, status] of states) {
      if (!was.states.has(id)) say(`New task ${id}`);
      else if (was.states.get(id) !== status) say(`${id} is ${WORDS[status].toLowerCase()}`);
    }
  }
  was = { team: current().team.name, states };
}

/** Make the card the one that Tab goes to. */
function choose(card) {
  if (!card) return;
  const before = nodes.get(chosen);
  before?.querySelectorAll('button').forEach((control) => (control.tabIndex = -1));
  chosen = card.dataset.task;
  card.querySelectorAll('button').forEach((control) => (control.tabIndex = 0));
  if (card.contains(document.activeElement)) highlight(chosen);
}

/** Mark what the task waits for, and what waits for it. */
function highlight(id) {
  const waitsFor = new Set(id ? tasks.get(id)?.blockedBy : []);
  for (const [other, node] of nodes) {
    node.classList.toggle('is-blocker', waitsFor.has(other));
    node.classList.toggle('is-waiting', Boolean(id && tasks.get(other)?.blockedBy?.includes(id)));
  }
}

/** Go to the card of a task; to its details if it is not on the board. */
export function jump(id) {
  const task = tasks.get(id);
  if (task && !nodes.has(id)) {
    filter = byId('task-filter').value = '';
    limits[task.status] = Infinity;
    render();
  }
  const card = nodes.get(id);
  if (!card) {
    openTask(id);
    return;
  }
  card.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  arriveAt(card, card.querySelector('.open'));
}

/** The statuses that the person may move the task to. */
function mayGo(id) {
  return mayChange() ? (current()?.moves?.[id] ?? []) : [];
}

async function moveTask(id, status) {
  const task = tasks.get(id);
  if (status === 'in_progress') {
    assign(task);
    return;
  }
  const card = nodes.get(id);
  const moved = await attempt(card, () => move(task, status));
  if (moved) nodes.get(id)?.querySelector('.open')?.focus();
}

function taskMenu(id, opener) {
  const task = tasks.get(id);
  const entries = [{ label: 'Open', does: () => openTask(id) }];
  for (const status of mayGo(id)) {
    if (status === 'in_progress') continue;
    entries.push({ label: moveLabel(task, status), does: () => moveTask(id, status), danger: status === 'cancelled' });
  }
  if (mayChange() && !FINISHED.has(task.status)) entries.push({ label: 'Give to an agent…', does: () => assign(task) });
  openMenu(opener, `Actions for ${id}`, entries);
}

const STEPS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

function keyPressed(event) {
  const card = event.target.closest('.card');
  const step = STEPS[event.key];
  if (!card || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.shiftKey && step?.[0]) moveByKey(card.dataset.task, step[0]);
  else if (step) go(card, ...step);
  else if (event.key === 'Home' || event.key === 'End') end(card, event.key);
  else return;
  event.preventDefault();
}

/** Move the task to the next column in that direction where it may go. */
function moveByKey(id, direction) {
  const at = STATUSES.indexOf(tasks.get(id).status);
  const allowed = mayGo(id).map((status) => STATUSES.indexOf(status));
  const beyond = allowed.filter((place) => (place - at) * direction > 0).sort((a, b) => (a - b) * direction);
  if (beyond.length) moveTask(id, STATUSES[beyond[0]]);
  else say(`${id} can't be moved ${direction < 0 ? 'left' : 'right'}`);
}

function go(card, across, down) {
  const cards = [...card.parentElement.children];
  const row = cards.indexOf(card);
  if (down) return focus(cards[row + down]);
  const filled = STATUSES.map((status) => [...columns.get(status).list.children]).filter((list) => list.length);
  const there = filled[filled.findIndex((list) => list.includes(card)) + across];
  return there && focus(there[Math.min(row, there.length - 1)]);
}

function end(card, key) {
  const cards = card.parentElement.children;
  focus(key === 'Home' ? cards[0] : cards[cards.length - 1]);
}

function focus(card) {
  card?.querySelector('.open').focus();
}
