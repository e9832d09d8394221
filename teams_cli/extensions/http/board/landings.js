// The landing queue: what is to join the team's branch, in its order, and what became of the others, the newest first.

import { timeAgo } from './clock.js';
import { el } from './dom.js';
import { commit, counted, listView, who } from './list_view.js';
import { current } from './state.js';
import { chip } from './task_card.js';
import { openTask } from './task_dialog.js';
import { block, firstLine, visible } from './text.js';

const STATES = ['checking', 'queued', 'conflict', 'red', 'refused', 'landed'];
const OPEN = new Set(['checking', 'queued']);
const RANK = { high: 0, normal: 1, low: 2 };
const number = ({ id }) => Number(id.slice(id.lastIndexOf('-') + 1));
let view = null;

/** Show it. */
export async function open() {
  view ??= listView('landings', 'Landings', {
    rowsOf,
    create: () => el('li', { class: 'row' }),
    fill,
    about: (rows) => counted(rows, STATES, ({ state }) => state),
    none: 'No landings yet. `teams land TASK` queues the commits of a task.',
  });
  show(current());
}

/** Show how it stands now. */
export function show(snapshot) {
  view?.(snapshot);
}

/** Those that wait by when it is their turn, then the others from the newest. */
function rowsOf({ landings }) {
  const waiting = landings.filter(({ state }) => OPEN.has(state));
  waiting.sort((a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state) || RANK[a.priority] - RANK[b.priority] || number(a) - number(b));
  const over = landings.filter(({ state }) => !OPEN.has(state)).sort((a, b) => number(b) - number(a));
  return [...waiting, ...over].map((landing) => ({ ...landing, key: landing.id }));
}

function fill(node, landing) {
  const { id, task, title, state, onto, head, owner, by, merge, createdAt, endedAt } = landing;
  const bad = state === 'red' || state === 'conflict' || state === 'refused';
  node.dataset.landing = id;
  node.className = `row ${bad ? 'bad' : ''}`;
  const facts = [`by ${who(owner ?? by)}`, el('span', {}, commit(head), ' onto ', el('code', {}, onto)), merge && state === 'landed' ? el('span', {}, 'as ', commit(merge)) : null, timeAgo(endedAt ?? createdAt)];
  node.replaceChildren(
    el('header', {}, el('span', { class: `verdict ${state}` }, state), ' ', chip(task, openTask), ' ', el('b', { dir: 'auto' }, firstLine(title, 80)), ' ', el('span', { class: 'id' }, id)),
    el('p', { class: 'about' }, ...facts.filter(Boolean)), ...why(landing));
}

/** Why it came back, as its owner was told. */
function why({ state, files, reason, checked, url }) {
  const parts = [];
  if (files?.length) parts.push(el('p', { class: 'reason', dir: 'auto' }, 'Conflicts: ', ...visible(files.join(', '))));
  if (reason) parts.push(el('p', { class: state === 'landed' ? 'muted' : 'reason', dir: 'auto' }, ...visible(reason)));
  if (checked?.status) parts.push(el('details', { open: state === 'red' }, el('summary', {}, el('code', {}, ...visible(checked.command)), `: exit status ${checked.status}`), block(checked.output || 'It printed nothing.', 'said code')));
  if (url) parts.push(el('p', {}, 'Pull request: ', el('code', {}, ...visible(url))));
  return parts;
}
