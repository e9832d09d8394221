// The board of tasks: columns by status, filled from each snapshot; going about by arrow keys, moving by drag, key or menu.

import { mayChange } from './api.js';
import { arriveAt, button, byId, el, forget, keepingFocus, keyed, setText } from './dom.js';
import { dragCards } from './drag.js';
import { openMenu } from './menu.js';
import { attempt, say } from './notices.js';
import { choices, choose as filter, clear, filters, isFiltered, matches, onFilter } from './filters.js';
import { whole } from './place.js';
import { current, hasAll, on, wantAll } from './state.js';
import { FINISHED, STATUSES, WORDS, move, moveLabel, ordered } from './statuses.js';
import { chip, createCard, fillCard } from './task_card.js';
import { openTask } from './task_dialog.js';
import { assign, createTask } from './task_forms.js';
import { firstLine, visible } from './text.js';

const PAGE = 50;
const nodes = new Map();
const columns = new Map();
const limits = Object.fromEntries(STATUSES.map((status) => [status, PAGE]));
const does = { open: (id) => openTask(id), menu: taskMenu, jump };
let tasks = new Map();
let chosen = null;
let was = null;

export function startTasks() {
  for (const status of STATUSES) byId('columns').append(column(status));
  byId('columns').append(lane.made);
  byId('new-task').addEventListener('click', () => createTask());
  byId('task-filter').addEventListener('input', (event) => filter({ words: event.target.value.trim() }));
  for (const name of ['owner', 'priority', 'skill']) byId(`filter-${name}`).addEventListener('change', (event) => filter({ [name]: event.target.value }));
  byId('filter-clear').addEventListener('click', clear);
  onFilter(() => {
    showFilters();
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
    showFilters();
    render();
    fillLane(snapshot);
    tell();
  });
}

/** The landing queue, beside the tasks while something is in it. */
const lane = { list: el('ul', { class: 'cards' }) };
lane.made = el('section', { class: 'column lane', 'aria-label': 'Landing queue', hidden: true }, el('h3', {}, 'Landing'), lane.list);

function fillLane({ landings }) {
  const queue = landings.filter(({ state }) => state === 'checking' || state === 'queued');
  queue.sort((a, b) => (b.state === 'checking') - (a.state === 'checking'));
  lane.made.hidden = queue.length === 0;
  const said = JSON.stringify(queue.map(({ id, state }) => [id, state]));
  if (lane.said === said) return;
  lane.said = said;
  lane.list.replaceChildren(...queue.map(({ task, title, state, onto }) => el('li', { class: 'row' }, chip(task, openTask), ' ', ...visible(firstLine(title, 80)), el('p', { class: 'muted' }, `${state}, onto ${onto}`))));
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

async function showMore(status) {
  limits[status] += 4 * PAGE;
  if (FINISHED.has(status)) await wantAll();
  render();
}

/** Say what is chosen, and offer what there is to choose from. */
function showFilters() {
  const { owners, skills } = choices([...tasks.values()]);
  offer('owner', [['', 'Any owner'], ...owners.map((name) => [name, name === '-' ? 'Nobody' : name])]);
  offer('skill', [['', 'Any skill'], ...skills.map((skill) => [skill, skill])]);
  byId('filter-skill').closest('label').hidden = skills.length === 0;
  byId('filter-priority').value = filters().priority;
  if (document.activeElement !== byId('task-filter')) byId('task-filter').value = filters().words;
  byId('filter-clear').hidden = !isFiltered();
}

function offer(name, options) {
  const select = byId(`filter-${name}`);
  const told = JSON.stringify(options);
  if (select.told !== told) select.replaceChildren(...options.map(([value, label]) => el('option', { value }, label)));
  select.told = told;
  select.value = filters()[name];
}

function render() {
  keepingFocus(() => {
    const all = [...tasks.values()].filter(matches);
    for (const status of STATUSES) fillColumn(status, ordered(status, all));
    forget(nodes);
  });
  if (!nodes.has(chosen)) choose(document.querySelector('.card'));
  setText(byId('count-tasks'), String([...tasks.values()].filter((task) => !FINISHED.has(task.status)).length));
  showNothing();
}

/** Where there is no card, what to do instead. */
function showNothing() {
  const found = [...tasks.values()].some(matches);
  const none = byId('no-tasks');
  none.hidden = found || !current();
  byId('columns').hidden = tasks.size === 0;
  if (found || !current()) return;
  const [title, ...rest] = tasks.size ? FILTERED : EMPTY;
  none.replaceChildren(el('h3', {}, title), ...rest.map((part) => part()));
}

const FILTERED = ['No task matches', () => el('p', {}, hasAll() ? '' : 'Only the newest finished tasks are loaded. '), () => button('Show all tasks', clear)];
const EMPTY = [
  'No task yet',
  () => el('p', { 'data-change': true }, 'Create one: ', button('New task', () => createTask(), { class: 'primary' }), ' or press ', el('kbd', {}, 'n'), '.'),
  () => el('p', {}, 'In a terminal: ', el('code', {}, 'teams create-task "Write the parser"'), ', or run a workflow: ', el('code', {}, 'teams run WORKFLOW'), '.'),
  () => el('p', {}, 'Agents join with ', el('code', {}, 'teams join-team NAME --as AGENT'), ' and claim tasks with ', el('code', {}, 'teams claim-task --next'), '.'),
];

function fillColumn(status, found) {
  const { made, list, count, more } = columns.get(status);
  const total = isFiltered() ? found.length : Math.max(found.length, current()?.taskCounts?.[status] ?? 0);
  keyed(list, found.slice(0, limits[status]), {
    key: (task) => task.id,
    create: createCard,
    fill: (node, task) => fillCard(node, task, does),
    nodes,
  });
  setText(count, String(total));
  made.classList.toggle('empty', found.length === 0);
  made.hidden = status === 'in_review' && found.length === 0; // most teams review nothing
  const left = (FINISHED.has(status) && !hasAll() ? total : found.length) - Math.min(found.length, limits[status]);
  more.hidden = left <= 0;
  setText(more, `Show more (${left.toLocaleString('en')} not shown)`);
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
    clear();
    byId('task-filter').value = '';
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
  return mayChange() ? (tasks.get(id)?.moves ?? []) : [];
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
  if (mayChange() && !FINISHED.has(task.status)) entries.push({ label: 'Assign…', does: () => assign(task) });
  entries.push({ label: 'Copy link', does: () => copyLink({ task: id }) });
  openMenu(opener, `Actions for ${id}`, entries);
}

/** Put the link of that place on the board into the clipboard. */
export async function copyLink(place) {
  await attempt(null, () => navigator.clipboard.writeText(whole(place)));
  say('The link is copied');
}

/** Go to the next card, or the one before, in the order in which they are seen. */
export function step(by) {
  const cards = [...document.querySelectorAll('#columns .card')];
  const here = cards.findIndex((card) => card.contains(document.activeElement));
  focus(here < 0 ? cards[by > 0 ? 0 : cards.length - 1] : cards[here + by]);
}

const STEPS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

function keyPressed(event) {
  const card = event.target.closest('.card');
  const way = STEPS[event.key];
  if (!card || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.shiftKey && way?.[0]) moveByKey(card.dataset.task, way[0]);
  else if (way) go(card, ...way);
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
