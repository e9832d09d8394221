// What waits for the person: questions, requests for permission, plans; and who is asked to shut down.

import { perform } from './actions.js';
import { timeAgo, timeLeft } from './clock.js';
import { button, byId, el, keepingFocus, keyed, setText } from './dom.js';
import { sendByKey } from './forms.js';
import { attempt, say } from './notices.js';
import { on } from './state.js';
import { chip } from './task_card.js';
import { jump } from './tasks.js';
import { block, firstLine } from './text.js';

const MAKE = { question: createQuestion, permission: createPermission, plan: createPlan, asked: createAsked, shutdown: createShutdown };
let seen = null;

export function startWaiting() {
  on('snapshot', (snapshot) => {
    const open = snapshot.plans.filter(({ status }) => status === 'proposed');
    const rows = [
      ...snapshot.questions.map((question) => ({ ...question, kind: kindOf(question) })),
      ...open.map((plan) => ({ ...plan, kind: 'plan' })),
      ...snapshot.shutdowns.map((shutdown) => ({ ...shutdown, kind: 'shutdown' })),
    ];
    const mine = rows.filter(({ kind }) => kind !== 'asked' && kind !== 'shutdown');
    const shown = [...mine, ...rows.filter((row) => !mine.includes(row))];
    keepingFocus(() => keyed(byId('asks'), shown, { key: ({ teamName, id }) => `${teamName} ${id}`, create: (row) => MAKE[row.kind](row), fill }));
    showDecided(snapshot.plans.filter(({ status }) => status !== 'proposed'));
    count(snapshot.team.name, mine);
    byId('waiting').classList.toggle('nothing', mine.length === 0);
  });
}

function kindOf(question) {
  if (!question.to.includes('human')) return 'asked';
  return question.operation ? 'permission' : 'question';
}

function count(team, mine) {
  byId('waiting-none').hidden = mine.length > 0;
  setText(byId('count-waiting'), mine.length ? String(mine.length) : '');
  byId('count-waiting').classList.toggle('some', mine.length > 0);
  document.title = `${mine.length ? `(${mine.length}) ` : ''}${team} – teams`;
  const ids = new Set(mine.map(({ id }) => id));
  if (seen?.team === team) mine.filter(({ id }) => !seen.ids.has(id)).forEach((row) => say(spoken(row)));
  seen = { team, ids };
}

function spoken({ kind, from, question, operation, id }) {
  if (kind === 'plan') return `${from} proposes ${id}`;
  return kind === 'permission' ? `${from} asks leave to ${operation}` : `${from} asks: ${firstLine(question)}`;
}

/** What was asked does not change; who has not answered yet may. */
function fill(node, row) {
  node.querySelector('.still')?.replaceChildren((row.waitingFor ?? []).join(', '));
}

function card(row, title, extra, ...children) {
  const heading = el('h3', { id: `${row.id}-title` }, title);
  const head = el('header', {}, heading, el('span', { class: 'id' }, row.id), extra);
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
  const skip = button('Skip', () => act(skip, () => perform('skip-question', { question: id })), { class: 'quiet', title: 'Close it without an answer' });
  const form = el('form', { 'data-change': true }, area, el('div', { class: 'buttons' }, send, skip));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    act(send, () => perform('answer', { question: id, text: area.value }));
  });
  sendByKey(form);
  return card(row, `${from} asks`, due(row), block(row.question), form);
}

function createPermission(row) {
  const { id, from, operation } = row;
  const choice = (label, text, kind) => button(label, (event) => act(event.currentTarget, () => perform('answer', { question: id, text })), { class: kind });
  const buttons = el('div', { class: 'buttons', 'data-change': true },
    choice('Allow once', 'allow', 'primary'), choice(`Always allow`, 'always', ''), choice('Deny', 'deny', 'danger'));
  const [wish] = row.question.split('\nAnswer allow (once)');
  return card(row, `${from} asks leave: ${operation}`, due(row), block(wish), buttons);
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
