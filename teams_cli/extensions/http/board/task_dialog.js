// All that is known of a task, in a dialog that follows its changes; editing its words and what it waits for.

import { perform } from './actions.js';
import { Refusal, mayChange, read } from './api.js';
import { timeAgo, timeLeft } from './clock.js';
import { button, el } from './dom.js';
import { evidenceOf } from './evidence.js';
import { ask, dialog, field } from './forms.js';
import { who } from './list_view.js';
import { attempt, refuse } from './notices.js';
import { go } from './place.js';
import { current, on, taskOf } from './state.js';
import { WORDS, move, moveLabel } from './statuses.js';
import { chip } from './task_card.js';
import { assign, editable, wordsOf } from './task_forms.js';
import { block, plain } from './text.js';
import { verdictButtons } from './verdict.js';

let shown = null;

/** Show the task; one that the page does not have is fetched. */
export async function openTask(id) {
  shown?.close();
  const made = dialog(id, 'wide');
  const body = el('div', { class: 'dialog-body' });
  const place = el('div', { class: 'refusal' });
  made.append(body, place);
  shown = Object.assign(made, { task: id, body, place });
  made.addEventListener('close', () => {
    if (shown !== made) return;
    shown = null;
    go({ task: '' });
  });
  go({ task: id });
  made.showModal();
  await update();
}

on('snapshot', () => shown && update());

async function update() {
  const made = shown;
  try {
    const row = taskOf(made.task);
    const said = JSON.stringify(row);
    if (!made.whole || made.row !== said) made.whole = await read('show-task', { task: made.task });
    made.row = said;
    if (made === shown) fill(made, { ...made.whole, blockers: row?.blockers ?? {}, moves: row?.moves ?? [], behind: row?.waiting ?? 0, inGrace: row?.inGrace });
  } catch (refusal) {
    refuse(refusal, made.place);
  }
}

function fill(made, task) {
  const moves = mayChange() ? task.moves : [];
  const waiting = current().tasks.filter((other) => other.blockedBy?.includes(task.id)).map(({ id }) => id);
  const said = JSON.stringify([task, moves, waiting, mayChange()]);
  if (made.filledWith === said) return;
  made.filledWith = said;
  const control = document.activeElement?.dataset.control;
  made.heading.replaceChildren(el('span', { class: 'id' }, task.id), ' ', plain(task.title));
  made.body.replaceChildren(...[actions(made, task, moves), facts(task, waiting), ...texts(task), notes(task)].filter(Boolean));
  made.querySelector(`[data-control="${control}"]`)?.focus();
}

function facts(task, waiting) {
  const rows = [
    ['Status', el('span', { class: `status ${task.status}` }, task.blocked ? 'Pending, blocked' : WORDS[task.status])],
    ['Priority', task.priority],
    ['Owner', task.owner],
    ['Claim', task.leaseExpiresAt && el('span', {}, `number ${task.claim}${task.inGrace ? ', in its grace period' : ''}, expires in `, timeLeft(task.leaseExpiresAt))],
    ['Blocked by', chips(task.blockedBy, task.openBlockers, task.blockers)],
    ['Completed after', chips(task.after)],
    ['Blocks', chips(waiting)],
    ['Blocks in all', task.behind > waiting.length && `${task.behind} tasks`],
    ['Skills', task.require?.map(plain).join(', ')],
    ['Check', task.check && el('span', {}, el('code', {}, plain(task.check)), outcome(task.checked))],
    ['Review', task.reviewBy && (task.reviewed ? `${task.reviewed.verdict} by ${who(task.reviewed.by)}${task.reviewed.reason ? `: ${plain(task.reviewed.reason)}` : ''}` : `by ${who(task.reviewBy)}`)],
    ['Landing', task.landing],
    ['Attachments', evidenceOf(task)],
    ['Plan', task.planRequired && 'must be approved first'],
    ['Created', el('span', {}, timeAgo(task.createdAt), task.createdBy ? ` by ${task.createdBy}` : '')],
    ['Ended', task.completedAt && timeAgo(task.completedAt)],
  ];
  const said = rows.filter(([, value]) => value);
  return el('dl', { class: 'facts' }, said.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]));
}

/** How the check ended, and on what. */
function outcome(checked) {
  if (!checked) return ': not run yet';
  const on = checked.commit ? ` on ${checked.commit.slice(0, 10)}` : '';
  return `: ${checked.status ? `failed, exit status ${checked.status}` : `passed${checked.stale ? ', stale' : ''}`}${on}`;
}

function chips(ids, open = ids, states = {}) {
  if (!ids?.length) return null;
  const made = (id) => el('li', { class: open.includes(id) ? '' : 'met' }, chip(id, openTask, 0, open.includes(id) ? states[id] : 'completed'));
  return el('ul', { class: 'chips' }, ids.map(made));
}

function texts(task) {
  const parts = [['Description', task.description], ['Prompt', task.prompt], ['Command', task.run, 'said code'], ['Result', task.result],
    ['Output of the check', task.checked?.status ? task.checked.output : null, 'said code']];
  return parts.filter(([, text]) => text).flatMap(([name, text, kind]) => [el('h3', {}, name), block(text, kind)]);
}

function notes(task) {
  if (!task.notes?.length) return null;
  const line = ({ at, by, what, reason }) =>
    el('li', {}, el('span', {}, el('b', {}, by), ` ${what}`), reason ? block(reason, 'said small') : null, timeAgo(at));
  return el('details', { class: 'notes', open: task.notes.length < 12 }, el('summary', {}, 'History'),
    el('ol', { class: 'timeline' }, [...task.notes].reverse().map(line)));
}

function actions(made, task, moves) {
  if (!mayChange()) return null;
  const open = ['pending', 'in_progress'].includes(task.status);
  const buttons = [button('Edit…', () => edit(task), { 'data-control': 'edit' })];
  if (open) {
    buttons.push(button('Blockers…', () => editBlockers(task), { 'data-control': 'block' }));
    buttons.push(button('Assign…', () => assign(task), { 'data-control': 'assign' }));
  }
  if (task.status === 'in_review') buttons.push(...verdictButtons(task.id, task.title).children);
  for (const status of moves.filter((status) => status !== 'in_progress')) {
    const does = (event) => attempt(event.currentTarget, () => move(task, status), made.place);
    const label = status === 'pending' && task.status === 'in_progress' ? 'Release…' : moveLabel(task, status);
    buttons.push(button(label, does, { 'data-control': status, class: status === 'cancelled' && 'danger' }));
  }
  return el('div', { class: 'buttons' }, buttons);
}

/**
 * Change title, description, priority and what it waits for; only what was changed is sent. What somebody else changed
 * since the person saw it is first shown, and replaced only if the person saves again.
 */
function edit(task) {
  let seen = task;
  ask({
    title: `Edit ${task.id}`,
    inputs: [
      field({ name: 'title', label: 'Title', required: true, maxlength: 500, value: task.title }),
      field({ name: 'description', label: 'Description', kind: 'area', rows: 5, value: task.description ?? '' }),
      ...editable(task),
    ],
    label: 'Save',
    submit: async (said) => {
      const changed = Object.entries(said).filter(([name, value]) => value !== asShown(task[name] ?? ''));
      const stored = await read('show-task', { task: task.id });
      const overtaken = changed.map(([name]) => name).filter((name) => (stored[name] ?? '') !== (seen[name] ?? ''));
      seen = stored;
      if (overtaken.length) {
        const words = overtaken.map((name) => `${name} was changed to: ${stored[name] ?? ''}`);
        const hint = 'Take over what you need, and save again to replace it.';
        throw new Refusal(409, { message: `Meanwhile, ${words.join('; ')}`, hint });
      }
      if (changed.length) await perform('update-task', { task: task.id, ...Object.fromEntries(changed) });
    },
  });
}

/** The text as a form has it that nobody changed: a browser writes each line break as a line feed. */
function asShown(text) {
  return text.replaceAll(/\r\n?/g, '\n').trim();
}

function editBlockers(task) {
  const had = task.blockedBy ?? [];
  ask({
    title: `Blockers of ${task.id}`,
    inputs: [
      field({ name: 'blockers', label: 'Tasks', placeholder: 'task-3 task-4', value: had.join(' '), hint: 'The task can be claimed when they are completed.' }),
    ],
    label: 'Save',
    submit: async ({ blockers }) => {
      const wanted = wordsOf(blockers).map((word) => (/^#?\d+$/.test(word) ? `task-${word.replace('#', '')}` : word));
      const blockedBy = wanted.filter((id) => !had.includes(id));
      const unblock = had.filter((id) => !wanted.includes(id));
      if (blockedBy.length || unblock.length) await perform('update-task', { task: task.id, blockedBy, unblock });
    },
  });
}
