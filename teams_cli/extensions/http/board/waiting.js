// What waits for the person: questions, requests for permission, plans, letters, and work that failed; apart from it
// what the agents wait for among themselves.

import { perform } from './actions.js';
import { change } from './api.js';
import { timeAgo, timeLeft } from './clock.js';
import { button, byId, el, keepingFocus, keyed, setText } from './dom.js';
import { sendByKey } from './forms.js';
import { attempt, say } from './notices.js';
import { choose } from './filters.js';
import { current, on, refresh } from './state.js';
import { chip, holds } from './task_card.js';
import { jump } from './tasks.js';
import { block, firstLine } from './text.js';
import { doSoon, offerUndo } from './undo.js';
import { verdictButtons } from './verdict.js';

const MAKE = {
  question: createQuestion,
  permission: createPermission,
  plan: createPlan,
  mail: createMail,
  review: createReview,
  failed: createFailed,
  asked: createAsked,
  shutdown: createShutdown,
};
const FAILED = 6;
const SEEN = 'teams.seen';
const leaving = new Set();
let seen = null;

export function startWaiting() {
  byId('more-failed').addEventListener('click', () => choose({ only: 'failed' }));
  on('snapshot', (snapshot) => {
    const open = snapshot.plans.filter(({ status }) => status === 'proposed');
    const rows = [
      ...snapshot.questions.map((question) => ({ ...question, kind: kindOf(question) })),
      ...failures(snapshot),
      ...snapshot.tasks.filter(({ status, reviewBy }) => status === 'in_review' && reviewBy === 'human').map(({ id, title, owner, result }) => ({ kind: 'review', id, title, owner, result })),
      ...snapshot.mail.map((letter) => ({ ...letter, kind: 'mail' })),
      ...open.map((plan) => ({ ...plan, kind: 'plan' })),
      ...snapshot.shutdowns.map((shutdown) => ({ ...shutdown, kind: 'shutdown' })),
    ].map((row) => ({ ...row, teamName: snapshot.team.name }));
    const between = rows.filter(({ kind }) => kind === 'asked' || kind === 'shutdown');
    const mine = rows.filter((row) => !between.includes(row) && !leaving.has(row.id));
    keepingFocus(() => {
      show('asks', mine);
      show('between', between);
    });
    byId('between-frame').hidden = between.length === 0;
    setText(byId('count-between'), String(between.length));
    showDecided(snapshot.plans.filter(({ status }) => status !== 'proposed'));
    count(snapshot.team.name, mine);
    byId('waiting').classList.toggle('nothing', mine.length === 0);
  });
}

function show(list, rows) {
  keyed(byId(list), rows, { key: ({ teamName, id, kind }) => `${teamName} ${kind} ${id}`, create: (row) => MAKE[row.kind](row), fill });
}

/** The tasks that failed, or were cancelled and hold up others; those that the person has seen only if they hold up. */
function failures({ tasks, team }) {
  const seen = seenIn(team.name);
  const found = tasks.filter((task) => (task.status === 'failed' && (task.waiting || seen[task.id] !== task.updatedAt)) || (task.status === 'cancelled' && task.waiting));
  const by = (task) => [-(task.waiting ?? 0), task.updatedAt ?? ''];
  found.sort((a, b) => by(a)[0] - by(b)[0] || by(b)[1].localeCompare(by(a)[1]));
  const { length } = found;
  setText(byId('more-failed'), length > FAILED ? `${length - FAILED} more failed` : '');
  byId('more-failed').hidden = length <= FAILED;
  return found.slice(0, FAILED).map(({ id, title, status, reason, waiting, owner, updatedAt, moves }) =>
    ({ kind: 'failed', id, title, status, reason, waiting, owner, updatedAt, moves }));
}

function seenIn(team) {
  try {
    return JSON.parse(localStorage.getItem(`${SEEN}.${team}`)) ?? {};
  } catch {
    return {};
  }
}

function kindOf(question) {
  if (!question.to.includes('human')) return 'asked';
  return question.operation ? 'permission' : 'question';
}

function count(team, mine) {
  byId('waiting-none').hidden = mine.length > 0;
  for (const id of ['count-waiting', 'count-mine']) setText(byId(id), mine.length ? String(mine.length) : '');
  byId('count-waiting').classList.toggle('some', mine.length > 0);
  document.title = `${mine.length ? `(${mine.length}) ` : ''}${team} – teams`;
  const ids = new Set(mine.map(({ id }) => id));
  if (seen?.team === team) mine.filter(({ id }) => !seen.ids.has(id)).forEach((row) => say(spoken(row)));
  seen = { team, ids };
}

function spoken({ kind, from, question, operation, id, message, title }) {
  if (kind === 'mail') return `${from} writes to you: ${firstLine(message)}`;
  if (kind === 'review') return `${id} waits for your review: ${firstLine(title)}`;
  if (kind === 'failed') return `${id} failed: ${firstLine(title)}`;
  if (kind === 'plan') return `${from} proposes ${id}`;
  return kind === 'permission' ? `${from} asks for permission to ${operation}` : `${from} asks: ${firstLine(question)}`;
}

/** What was asked does not change; who has not answered yet may, and what came of a task. */
function fill(node, row) {
  if (row.kind === 'failed') fillFailed(node, row);
  node.querySelector('.still')?.replaceChildren((row.waitingFor ?? []).join(', '));
}

function card(row, title, extra, ...children) {
  const heading = el('h3', { id: `${row.id}-title` }, title);
  const head = el('header', {}, heading, ['failed', 'review'].includes(row.kind) ? null : el('span', { class: 'id' }, row.id), extra);
  return el('li', { class: `ask ${row.kind}`, 'data-ask': row.id }, el('article', { 'aria-labelledby': heading.id }, head, ...children, el('div', { class: 'refusal' })));
}

function due(question) {
  return el('span', { class: 'due', title: 'Time left to answer' }, timeLeft(question.expiresAt));
}

/** Run *work* for a button or form of the card, showing a refusal in it. */
function act(control, work) {
  return attempt(control, work, control.closest('.ask').querySelector('.refusal'));
}

function createQuestion(row) {
  const { id, from } = row;
  const area = el('textarea', { rows: 2, required: true, 'aria-label': `Answer to ${from}, ${id}`, placeholder: 'Your answer' });
  const send = el('button', { type: 'submit', class: 'primary' }, 'Answer');
  const skip = button('Skip', () => skipSoon(row, skip), { class: 'quiet', title: 'Close it without an answer' });
  const form = el('form', { 'data-change': true }, area, el('div', { class: 'buttons' }, send, skip));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    act(send, () => perform('answer', { question: id, text: area.value }));
  });
  sendByKey(form);
  return card(row, `${from} asks`, due(row), block(row.question), form);
}

/** Close it without an answer, which can't be undone: so only after a while in which that can be taken back. */
async function skipSoon({ id, from }, control) {
  const shown = control.closest('.ask');
  leaving.add(id);
  shown.hidden = true;
  const sure = await doSoon(`${from}'s ${id} is skipped in 6 s.`);
  leaving.delete(id);
  shown.hidden = false;
  if (sure) await act(control, () => perform('skip-question', { question: id }));
  else if (!shown.isConnected) refresh();
}

function createMail(row) {
  const { id, from } = row;
  const answerable = from !== 'system';
  const area = el('textarea', { rows: 2, required: true, 'aria-label': `Reply to ${from}, ${id}`, placeholder: `Reply to ${from}` });
  const send = el('button', { type: 'submit', class: 'primary' }, 'Reply');
  const done = button('Done', () => act(done, () => perform('ack', { message: [id] })), { title: 'It needs no reply' });
  const form = el('form', { 'data-change': true }, answerable ? area : null, el('div', { class: 'buttons' }, answerable ? send : null, done));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    act(send, () => perform('reply', { message: id, text: area.value }));
  });
  sendByKey(form);
  return card(row, row.type === 'output' ? `${from} reports` : `${from} writes to you`, timeAgo(row.timestamp), block(row.message), form);
}

/** Work that the person is to accept or reject. */
function createReview({ result, ...row }) {
  const about = el('p', { dir: 'auto' }, firstLine(row.title, 90));
  const shown = card(row, '', null, about, result ? block(result) : null, verdictButtons(row.id, row.title));
  shown.querySelector('h3').replaceChildren(chip(row.id, jump), ` by ${row.owner} waits for your review`);
  return shown;
}

/** A task that failed, filled anew when it changes. */
function createFailed(row) {
  return card(row, '', null, el('div', { class: 'failed-body' }));
}

function fillFailed(node, row) {
  const { id, title, status, reason, waiting, owner } = row;
  const what = status === 'failed' ? 'failed' : 'was cancelled';
  node.querySelector('h3').replaceChildren(chip(id, jump), ` ${what}: `, firstLine(title, 70));
  const about = [owner && `by ${owner}`, waiting && holds(row)].filter(Boolean).join(', ');
  const buttons = el('div', { class: 'buttons', 'data-change': true });
  const offer = (label, does, attributes = {}) => {
    const made = button(label, () => act(made, does), attributes);
    buttons.append(made);
  };
  if (row.moves?.includes('pending')) offer('Open again', () => perform('update-task', { task: id, status: 'pending' }), { class: 'primary' });
  if (waiting) offer('Remove the blocker', () => dropBlocker(id), { title: `Tasks are no longer blocked by ${id}` });
  if (!waiting) offer('Seen', async () => noteSeen(row), { class: 'quiet', title: 'Hide it here' });
  node.querySelector('.failed-body').replaceChildren(
    ...[reason && block(reason, 'said reason'), about && el('p', { class: waiting ? 'holds' : 'muted' }, about), buttons].filter(Boolean));
}

/** Have what waits for the task wait for it no longer; that can be taken back. */
async function dropBlocker(id) {
  const waiting = current().tasks.filter(({ openBlockers }) => openBlockers?.includes(id)).map((task) => task.id);
  const freed = [];
  try {
    for (const task of waiting) {
      await change('update-task', { task, unblock: [id] });
      freed.push(task);
    }
  } finally { // where one is refused, those before it can be undone all the same
    await refresh();
    if (freed.length) offerUndo(`${freed.join(', ')} ${freed.length === 1 ? 'is' : 'are'} no longer blocked by ${id}.`, async () => {
      for (const task of freed) await change('update-task', { task, blockedBy: [id] });
      await refresh();
    });
  }
}

async function noteSeen({ id, updatedAt, teamName }) {
  localStorage.setItem(`${SEEN}.${teamName}`, JSON.stringify({ ...seenIn(teamName), [id]: updatedAt }));
  await refresh();
}

function createPermission(row) {
  const { id, from, operation } = row;
  const choice = (label, text, kind) => button(label, (event) => act(event.currentTarget, () => perform('answer', { question: id, text })), { class: kind });
  const buttons = el('div', { class: 'buttons', 'data-change': true },
    choice('Allow once', 'allow', 'primary'), choice(`Always allow`, 'always', ''), choice('Deny', 'deny', 'danger'));
  const [wish] = row.question.split('\nAnswer allow (once)');
  return card(row, `${from} asks for permission: ${operation}`, due(row), block(wish), buttons);
}

function createPlan(row) {
  const { id, from } = row;
  const note = el('textarea', { rows: 2, 'aria-label': `Note or feedback on ${id}`, placeholder: 'Feedback (needed to reject)' });
  const approve = button('Approve', () => act(approve, () => perform('approve-plan', { plan: id, ...(note.value.trim() && { note: note.value.trim() }) })), { class: 'primary' });
  const reject = button('Reject', () => rejected(reject, id, note), { class: 'danger' });
  const told = about(row.task, row.revises && `revises ${row.revises}`, timeAgo(row.createdAt));
  return card(row, `${from} proposes a plan`, null, told, block(row.plan, 'said plan-text'),
    el('div', { class: 'form', 'data-change': true }, note, el('div', { class: 'buttons' }, approve, reject)));
}

function about(task, ...said) {
  return el('p', { class: 'about' }, task ? el('span', {}, 'for ', chip(task, jump)) : null, ...said);
}

function rejected(control, plan, note) {
  const feedback = note.value.trim();
  note.required = true;
  if (!feedback) {
    note.setCustomValidity('Say what should be different.');
    note.reportValidity();
    note.setCustomValidity('');
    return;
  }
  act(control, () => perform('reject-plan', { plan, feedback }));
}

function createAsked(row) {
  const waits = el('p', { class: 'muted' }, 'waits for ', el('span', { class: 'still' }));
  return card(row, `${row.from} asks the agents`, due(row), block(row.question), waits);
}

function createShutdown(row) {
  const about = el('p', { class: 'muted' }, 'waits for its answer, ', timeAgo(row.createdAt));
  return card(row, `${row.requestedBy} asks ${row.agent} to shut down`, null, row.reason ? block(row.reason) : null, about);
}

function showDecided(plans) {
  byId('decided').hidden = plans.length === 0;
  setText(byId('count-decided'), String(plans.length));
  keyed(byId('decided-plans'), plans, { key: ({ teamName, id }) => `${teamName} ${id}`, create: createDecided, fill: () => {} });
}

function createDecided(plan) {
  const said = plan.feedback ?? plan.note;
  const told = about(plan.task, `by ${plan.decidedBy}`, timeAgo(plan.decidedAt ?? plan.createdAt));
  return card({ ...plan, kind: `plan ${plan.status}` }, `${plan.from}: ${plan.status}`, null, told,
    said ? block(said) : null, el('details', {}, el('summary', {}, 'The plan'), block(plan.plan)));
}
