// One agent: where it works, what it worked on, what it announced, and the end of what it printed.

import { mayChange, read } from './api.js';
import { changes, stateOf } from './agents.js';
import { timeAgo } from './clock.js';
import { span } from './course.js';
import { button, el } from './dom.js';
import { dialog } from './forms.js';
import { attempt } from './notices.js';
import { go } from './place.js';
import { current, on } from './state.js';
import { chip } from './task_card.js';
import { openTask } from './task_dialog.js';
import { firstLine, plain, visible } from './text.js';
import { showView } from './views.js';

const LINES = 200;
const LOOK = 2000;
const NEWEST = 8;
let shown = null;

export function openAgent(name) {
  shown?.close();
  const made = dialog(name, 'wide');
  const body = el('div', { class: 'dialog-body' });
  const log = logOf(name);
  made.append(body, log);
  shown = Object.assign(made, { agent: name, body });
  made.addEventListener('close', () => {
    if (shown !== made) return;
    shown = null;
    go({ agent: '' });
  });
  go({ agent: name });
  made.showModal();
  fill();
}

on('snapshot', () => shown && fill());

function fill() {
  const agent = current().agents.find(({ name }) => name === shown.agent);
  const work = agent && workOf(agent.name);
  const said = JSON.stringify([agent, work, mayChange()]);
  if (!agent || shown.filledWith === said) return;
  shown.filledWith = said;
  shown.body.replaceChildren(...[actions(agent), facts(agent), worked(agent, work), announced(agent)].filter(Boolean));
}

function actions(agent) {
  const said = mayChange() ? changes({ ...agent, leads: agent.name === current().team.leader }) : [];
  if (!said.length) return null;
  const made = ({ label, does, danger }) => button(label, () => act(label, does), { class: danger && 'danger' });
  return el('div', { class: 'buttons' }, said.map(made));
}

function act(label, does) {
  if (label === 'Write a message') shown.close();
  does();
}

function facts(agent) {
  const { session = {} } = agent;
  const rows = [
    ['State', el('span', { class: `state ${stateOf(agent)}` }, el('span', { class: 'dot' }), stateOf(agent))],
    ['Role', [agent.role, agent.agentType !== agent.role && agent.agentType].filter(Boolean).map(plain).join(', ')],
    [agent.trouble === 'waiting' ? 'Waits' : 'Trouble', agent.why && plain(agent.why)],
    ['Limited until', agent.limitedUntil && new Date(agent.limitedUntil).toLocaleString()],
    ['Unread', String(agent.queueDepth)],
    ['Last seen', agent.lastSeen && timeAgo(agent.lastSeen)],
    ['Note', agent.note && plain(agent.note)],
    ['Client', session.harness],
    ['Session', session.state && [session.state, session.outcome, session.turns === 1 ? '1 turn' : `${session.turns ?? 0} turns`].filter(Boolean).join(', ')],
    ['Started by', session.caller],
    ['Prompt', session.description && plain(session.description)],
    ['Branch', session.branch && plain(session.branch)],
    ['Worktree', session.worktree && plain(session.worktree)],
    ['Directory', session.directory && plain(session.directory)],
  ];
  return el('dl', { class: 'facts' }, rows.filter(([, value]) => value).flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]));
}

/** Each time that the agent had a task, the newest first. */
function workOf(name) {
  const had = ({ id, title, status, result, work = [] }) => work.filter(([agent]) => agent === name).map(([, from, to, how]) => ({
    id, title, from, to, how: to ? how : 'in progress', result: how === 'completed' && status === 'completed' ? result : '',
  }));
  return current().tasks.flatMap(had).sort((a, b) => b.from.localeCompare(a.from));
}

function worked({ name }, work) {
  const history = button('All its activity', () => {
    shown.close();
    go({ who: name });
    showView('activity');
  }, { class: 'link start' });
  const rows = work.slice(0, NEWEST).map(({ id, title, from, to, how, result }) => el('li', {},
    el('span', { dir: 'auto' }, chip(id, openTask), ' ', firstLine(title, 60), ' ', el('b', { class: `status ${how}` }, how),
      to && how === 'completed' ? ` after ${span((Date.parse(to) - Date.parse(from)) / 1000)}` : '', result ? `: ${firstLine(result, 60)}` : ''), timeAgo(to ?? from)));
  return el('section', {}, el('h3', {}, `Work${work.length > NEWEST ? `, the newest ${NEWEST} of ${work.length}` : ''}`),
    rows.length ? el('ol', { class: 'timeline' }, rows) : el('p', { class: 'muted' }, 'It has had no tasks yet.'), history);
}

function announced({ statusHistory = [] }) {
  if (!statusHistory.length) return null;
  const line = ({ status, at }) => el('li', {}, el('span', { dir: 'auto' }, ...visible(status)), timeAgo(at));
  return el('section', {}, el('h3', {}, 'Announced'), el('ol', { class: 'timeline' }, [...statusHistory].reverse().map(line)));
}

/** The end of the agent's log, fetched when it is opened and, while wanted, again and again. */
function logOf(name) {
  const text = el('pre', { class: 'log', tabindex: 0, 'aria-label': `Log of ${name}` });
  const follow = el('input', { type: 'checkbox', id: 'follow-log', checked: true });
  const place = el('div', { class: 'refusal' });
  const made = el('details', { class: 'log-frame' }, el('summary', {}, 'Log'),
    el('label', { class: 'check', for: 'follow-log' }, follow, ' Follow'), place, text);
  const look = () => attempt(text, () => tail(name, text), place);
  made.addEventListener('toggle', () => made.open && look());
  const timer = setInterval(() => {
    if (!made.isConnected) clearInterval(timer);
    else if (made.open && follow.checked && !document.hidden) look();
  }, LOOK);
  return made;
}

async function tail(name, node) {
  const { lines } = await read(`agents/${encodeURIComponent(name)}/log`, { lines: LINES });
  const said = lines.join('\n');
  if (node.told === said) return;
  node.told = said;
  const atEnd = node.scrollHeight - node.scrollTop - node.clientHeight < 30;
  node.replaceChildren(...(said ? visible(said) : ['It has printed nothing yet.']));
  if (atEnd) node.scrollTop = node.scrollHeight;
}
