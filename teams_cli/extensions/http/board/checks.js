// What the tasks' being done rests on: their checks, what came of each, and on which commit; those that failed first.

import { timeAgo } from './clock.js';
import { el } from './dom.js';
import { evidenceOf } from './evidence.js';
import { matches, onFilter } from './filters.js';
import { commit, counted, listView, output, who } from './list_view.js';
import { current, wantAll } from './state.js';
import { numberOf } from './statuses.js';
import { chip } from './task_card.js';
import { openTask } from './task_dialog.js';
import { firstLine, visible } from './text.js';

const VERDICTS = ['failed', 'stale', 'not run yet', 'passed'];
let view = null;

/** Show them, of all tasks. */
export async function open() {
  view ??= listView('checks', 'Checks', {
    rowsOf,
    create: () => el('li', { class: 'row' }),
    fill,
    about: (rows) => counted(rows, VERDICTS, verdict),
    none: 'No task here has a check. Add one: `teams create-task TITLE --check COMMAND`',
  });
  show(current());
  await wantAll();
}

/** Show what came of them. */
export function show(snapshot) {
  view?.(snapshot);
}

onFilter(() => show(current()));

/** How the task's check stands, in a word. */
export function verdict({ checked }) {
  if (!checked) return 'not run yet';
  if (checked.status) return 'failed';
  return checked.stale ? 'stale' : 'passed';
}

function rowsOf({ tasks }) {
  const found = tasks.filter((task) => (task.check || task.checked) && matches(task));
  found.sort((a, b) => VERDICTS.indexOf(verdict(a)) - VERDICTS.indexOf(verdict(b)) || numberOf(b.id) - numberOf(a.id));
  return found.map(({ id, title, check, checked, owner, evidence }) => ({ key: id, id, title, check, checked, owner, evidence }));
}

function fill(node, row) {
  const { id, title, check, checked, owner } = row;
  const word = verdict(row);
  node.dataset.check = id;
  node.className = `row ${word === 'failed' ? 'bad' : ''}`;
  const how = checked && (checked.status > 0 ? `exit status ${checked.status}` : checked.status < 0 ? `ended by signal ${-checked.status}` : null);
  const facts = checked
    ? [how, checked.commit ? el('span', {}, 'on ', commit(checked.commit)) : 'not on a commit', `run by ${who(checked.by)}`, timeAgo(checked.at)]
    : [owner ? `${owner} works on it` : 'it runs when the task is completed'];
  if (checked?.stale) facts.push(el('span', { class: 'reason' }, 'its commit is not in the work that landed'));
  node.replaceChildren(...[
    el('header', {}, el('span', { class: `verdict ${word.replaceAll(' ', '-')}` }, word), ' ', chip(id, openTask), ' ', el('b', { dir: 'auto' }, firstLine(title, 80))),
    el('p', {}, el('code', { dir: 'auto' }, ...visible(checked?.command ?? check))),
    el('p', { class: 'about' }, ...facts.filter(Boolean)),
    checked ? output(id) : null,
    evidenceOf(row)].filter(Boolean));
}
