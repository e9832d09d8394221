// Reviews: what waits for somebody's yes, to be accepted or rejected here too, and what was said of the rest.

import { mayChange, onToken } from './api.js';
import { timeAgo } from './clock.js';
import { el } from './dom.js';
import { matches, onFilter } from './filters.js';
import { counted, listView, who } from './list_view.js';
import { current, wantAll } from './state.js';
import { numberOf } from './statuses.js';
import { chip } from './task_card.js';
import { openTask } from './task_dialog.js';
import { firstLine, visible } from './text.js';
import { verdictButtons } from './verdict.js';

const VERDICTS = ['waiting', 'rejected', 'accepted', 'to come'];
let view = null;

/** Show them, of all tasks. */
export async function open() {
  view ??= listView('reviews', 'Reviews', {
    rowsOf,
    create: () => el('li', { class: 'row' }),
    fill,
    about: (rows) => counted(rows, VERDICTS, verdict),
    none: 'No task here has a review. Add one: `teams create-task TITLE --review-by WHO`',
  });
  show(current());
  await wantAll();
}

/** Show how they stand. */
export function show(snapshot) {
  view?.(snapshot);
}

onToken(() => show(current()));
onFilter(() => show(current()));

function verdict({ status, reviewed }) {
  if (status === 'in_review') return 'waiting';
  return reviewed?.verdict ?? 'to come';
}

function rowsOf({ tasks }) {
  const found = tasks.filter((task) => (task.reviewBy || task.reviewed) && matches(task));
  found.sort((a, b) => VERDICTS.indexOf(verdict(a)) - VERDICTS.indexOf(verdict(b)) || numberOf(b.id) - numberOf(a.id));
  return found.map(({ id, title, status, owner, reviewBy, reviewed, result }) => ({ key: id, id, title, status, owner, reviewBy, reviewed, result, mine: mayChange() }));
}

function fill(node, row) {
  const { id, title, owner, reviewBy, reviewed, result } = row;
  const word = verdict(row);
  node.dataset.review = id;
  node.className = `row ${word === 'rejected' ? 'bad' : ''}`;
  const waits = `${owner ?? 'nobody'}'s work waits for ${reviewBy === 'human' ? 'you' : reviewBy}`;
  const told = word === 'waiting' ? [waits] : reviewed ? [`by ${who(reviewed.by)}`, timeAgo(reviewed.at)] : [`${reviewBy === 'human' ? 'you review' : `${reviewBy} reviews`} it when it is done`];
  node.replaceChildren(...[
    el('header', {}, el('span', { class: `verdict ${word.replace(' ', '-')}` }, word), ' ', chip(id, openTask), ' ', el('b', { dir: 'auto' }, firstLine(title, 80))),
    el('p', { class: 'about' }, ...told),
    reviewed?.reason ? el('p', { class: word === 'rejected' ? 'reason' : 'muted', dir: 'auto' }, ...visible(reviewed.reason)) : null,
    word === 'waiting' && result ? el('p', { dir: 'auto' }, ...visible(firstLine(result, 200))) : null,
    word === 'waiting' && row.mine ? verdictButtons(id, title) : null,
    el('div', { class: 'refusal' })].filter(Boolean));
}
