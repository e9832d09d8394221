// Which tasks are shown: by words, owner, priority, skill, and by what the line on top counts.

import { said, go } from './place.js';
import { current } from './state.js';
import { FINISHED } from './statuses.js';

const NAMES = ['words', 'owner', 'priority', 'skill', 'only'];
const watchers = [];
const chosen = Object.fromEntries(NAMES.map((name) => [name, said(name)]));

const ONLY = {
  done: (task) => task.status === 'completed',
  working: (task) => task.status === 'in_progress',
  review: (task) => task.status === 'in_review',
  ready: (task) => task.status === 'pending' && !task.blocked,
  blocked: (task) => task.status === 'pending' && task.blocked,
  failed: (task) => task.status === 'failed' || task.heldUp,
  critical: (task) => current()?.course.criticalPath.includes(task.id),
};

/** What is chosen: `{ words, owner, priority, skill, only }`, each empty for all. */
export function filters() {
  return chosen;
}

/** Whether anything is left out. */
export function isFiltered() {
  return NAMES.some((name) => chosen[name]);
}

/** Choose, and have the address say it. */
export function choose(changes) {
  Object.assign(chosen, changes);
  go(changes);
  watchers.forEach((tell) => tell());
}

/** Show all again. */
export function clear() {
  choose(Object.fromEntries(NAMES.map((name) => [name, ''])));
}

/** Take what the address says. */
export function fromAddress() {
  choose(Object.fromEntries(NAMES.map((name) => [name, said(name)])));
}

export function onFilter(tell) {
  watchers.push(tell);
}

/** Whether the task is to be shown. */
export function matches(task) {
  const { words, owner, priority, skill, only } = chosen;
  if (ONLY[only] && !ONLY[only](task)) return false;
  if (owner && (task.owner ?? '-') !== owner) return false;
  if (priority && task.priority !== priority) return false;
  if (skill && !task.require?.includes(skill)) return false;
  if (!words) return true;
  const text = [task.id, task.title, task.owner, task.reason, ...(task.require ?? [])].join(' ').toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** The owners and skills that there are to choose from. */
export function choices(tasks) {
  const owners = new Set(tasks.filter(({ status }) => !FINISHED.has(status)).map(({ owner }) => owner ?? '-'));
  if (chosen.owner) owners.add(chosen.owner);
  const skills = new Set(tasks.flatMap(({ require }) => require ?? []));
  if (chosen.skill) skills.add(chosen.skill);
  return { owners: [...owners].sort(), skills: [...skills].sort() };
}
