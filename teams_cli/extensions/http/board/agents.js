// The agents of the team: how they are, and what the person does with them.

import { perform } from './actions.js';
import { openAgent } from './agent_dialog.js';
import { mayChange } from './api.js';
import { timeAgo, timeLeft } from './clock.js';
import { button, byId, el, icon, keepingFocus, keyed, setText } from './dom.js';
import { ask, field } from './forms.js';
import { openMenu } from './menu.js';
import { attempt } from './notices.js';
import { on } from './state.js';
import { firstLine, plain, visible } from './text.js';
import { writeTo } from './composer.js';

const TROUBLE = new Set(['failed', 'lost', 'silent']);
const DOTS = 'M3 8h.01M8 8h.01M13 8h.01';

export function startAgents() {
  on('snapshot', ({ agents, team, tasks }) => {
    const busy = Map.groupBy(tasks.filter((task) => task.status === 'in_progress'), (task) => task.owner);
    const rows = agents.map((agent) => ({
      ...agent,
      leads: agent.name === team.leader,
      tasks: (busy.get(agent.name) ?? []).map(({ id }) => id),
    }));
    rows.sort((a, b) => TROUBLE.has(b.trouble) - TROUBLE.has(a.trouble));
    keepingFocus(() => keyed(byId('agent-list'), rows, { key: ({ name }) => name, create, fill }));
    setText(byId('count-agents'), String(rows.filter(({ state }) => state !== 'stopped').length));
    const troubled = rows.filter(({ trouble }) => TROUBLE.has(trouble)).length;
    setText(byId('agents-trouble'), troubled ? `${troubled} in trouble` : '');
    byId('agents-none').hidden = rows.length > 0;
  });
}

/** `paused` as well, which only its session tells. */
export function stateOf(agent) {
  return agent.paused && agent.state !== 'stopped' ? 'paused' : agent.state;
}

function create() {
  return el('li', { class: 'agent' });
}

function fill(node, agent) {
  const had = node.contains(document.activeElement) && document.activeElement.className.split(' ')[0];
  const state = stateOf(agent);
  node.className = ['agent', state, agent.trouble && `trouble trouble-${agent.trouble}`].filter(Boolean).join(' ');
  node.replaceChildren(...[head(agent, state), trouble(agent), status(agent), facts(agent)].filter(Boolean));
  if (had) node.querySelector(`.${had}`)?.focus({ preventScroll: true });
}

function head(agent, state) {
  const name = button(agent.name, () => openAgent(agent.name), { class: 'agent-name', title: 'Status history, worktree and log' });
  const menu = button(icon(DOTS), (event) => openMenu(event.currentTarget, `Actions for ${agent.name}`, entries(agent)), {
    class: 'agent-menu card-menu',
    'aria-haspopup': 'menu',
    'aria-label': `Actions for ${agent.name}`,
  });
  const mark = el('span', { class: `state ${agent.trouble ?? state}` }, el('span', { class: 'dot' }), agent.trouble ?? state);
  return el('div', { class: 'agent-head' }, el('h3', {}, name), el('span', { class: 'role' }, kind(agent)), mark, menu);
}

/** What is wrong with it, or what it waits for. */
function trouble({ trouble, why, limitedUntil }) {
  if (!trouble || trouble === 'paused' && !why) return null;
  if (trouble === 'limited') return el('p', { class: 'agent-why' }, 'its provider accepts requests in ', timeLeft(limitedUntil));
  return el('p', { class: 'agent-why', dir: 'auto' }, why ? firstLine(why, 160) : trouble);
}

function kind(agent) {
  const specialty = agent.agentType && agent.agentType !== agent.role ? plain(agent.agentType) : agent.role.replace('team-', '');
  return agent.leads ? 'leader' : specialty;
}

function status(agent) {
  const about = agent.session?.description && firstLine(agent.session.description);
  if (!agent.status) return about ? el('p', { class: 'agent-status muted' }, about) : null;
  return el('p', { class: 'agent-status', dir: 'auto' }, ...visible(agent.status));
}

function facts(agent) {
  const { harness, branch } = agent.session ?? {};
  const said = [
    agent.tasks.length && `on ${agent.tasks.join(', ')}`,
    harness,
    branch && plain(branch),
    agent.queueDepth && `${agent.queueDepth} unread`,
  ].filter(Boolean);
  const seen = agent.lastSeen && el('span', {}, 'seen ', timeAgo(agent.lastSeen));
  return el('p', { class: 'agent-facts' }, said.map((text) => el('span', {}, text)), seen || null);
}

function entries(agent) {
  const said = [{ label: 'Status, worktree and log', does: () => openAgent(agent.name) }];
  return mayChange() ? said.concat(changes(agent)) : said;
}

/** What the person can do with the agent now. */
export function changes(agent) {
  const state = stateOf(agent);
  const { name, session } = agent;
  const said = [];
  if (state !== 'stopped') said.push({ label: 'Write a message', does: () => writeTo(name) });
  if (session && state !== 'stopped') said.push({ label: 'Interrupt…', does: () => interject(name) });
  if (session && state === 'paused') said.push({ label: 'Resume', does: () => attempt(null, () => perform('resume-agent', { agent: name })) });
  else if (session && state !== 'stopped') said.push({ label: 'Pause', does: () => attempt(null, () => perform('pause-agent', { agent: name })) });
  if (state !== 'stopped' && !agent.leads) said.push({ label: 'Ask to shut down…', does: () => shutDown(name) });
  if (session && state !== 'stopped') said.push({ label: 'Stop…', does: () => stop(name), danger: true });
  return said;
}

function interject(name) {
  ask({
    title: `Interrupt ${name}`,
    about: el('p', {}, 'This ends its turn. Its next turn gets your text.'),
    inputs: [field({ name: 'text', label: 'Your text', kind: 'area', rows: 4, required: true })],
    label: 'Interrupt',
    submit: ({ text }) => perform('interject', { agent: name, text }),
  });
}

function shutDown(name) {
  ask({
    title: `Ask ${name} to shut down`,
    about: el('p', {}, 'The agent approves or declines. If it approves, its tasks are released.'),
    inputs: [field({ name: 'reason', label: 'Reason (optional)' })],
    label: 'Ask',
    submit: ({ reason }) => perform('request-shutdown', { agent: name, ...(reason && { reason }) }),
  });
}

function stop(name) {
  ask({
    title: `Stop ${name}?`,
    about: el('p', {}, 'This ends all its processes. Messages no longer resume it.'),
    label: `Stop ${name}`,
    danger: true,
    submit: () => perform('stop-agent', { agent: name }),
  });
}
