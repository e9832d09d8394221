// The stream of messages, with its threads.

import { timeAgo } from './clock.js';
import { read } from './api.js';
import { answer, writeTo } from './composer.js';
import { arriveAt, button, byId, el, keepingFocus, keyed, setText } from './dom.js';
import { attempt, say } from './notices.js';
import { go as goTo, link } from './place.js';
import { on } from './state.js';
import { block, firstLine } from './text.js';

const OLDER = 200;
const NEWEST = 200; // how many the server sends at most with the rows
const FORMAL = new Set(['notice', 'info', 'shutdown', 'plan']);
const HOW_TO_ANSWER = /^(?=\(Answer within )/m;
const STATES = { queued: 'not read yet', woken: 'recipient woken', shown: 'shown to the agent', read: 'read', handled: 'handled', will_not_be_read: 'will not be read' };
let team = '';
let known = new Map();
let absent = new Set(); // the numbers for which the server has no message
let thread = null;
let reached = new Map(); // of the person's own newest messages and those to acknowledge, how far each got

export function startMessages() {
  byId('message-agent').addEventListener('change', render);
  byId('message-notices').addEventListener('change', render);
  byId('to-newest').addEventListener('click', toNewest);
  byId('older').addEventListener('click', () => attempt(byId('older'), showOlder));
  byId('stream').addEventListener('scroll', () => atEnd() && (byId('to-newest').hidden = true));
  on('snapshot', take);
}

function take(snapshot) {
  const first = snapshot.team.name !== team;
  if (first) {
    [team, known, absent, thread] = [snapshot.team.name, new Map(), new Set(), null];
    byId('stream').scrollTop = byId('stream').scrollHeight;
  }
  const fresh = snapshot.messages.filter(({ number }) => !known.has(number));
  const from = snapshot.messages.length < NEWEST ? lastNumber() + 1 : snapshot.messages[0].number;
  learn(snapshot.messages, from, (snapshot.messages.at(-1)?.number ?? 0) + 1);
  offer(snapshot.agents.map(({ name }) => name));
  const news = snapshot.sent.some((row) => reached.get(row.id) !== row);
  if (news) reached = new Map(snapshot.sent.map((row) => [row.id, row]));
  if (fresh.length || first) show(fresh, first);
  else if (news) render();
  setText(byId('count-messages'), String(lastNumber()));
}

function lastNumber() {
  return Math.max(0, ...known.keys());
}

/** Take up messages: all that the server has from the number *from* on, and before the number *to*. */
function learn(messages, from, to) {
  const added = messages.filter(({ number }) => !known.has(number));
  const isNewest = !added.length || added[0].number > lastNumber();
  added.forEach((message) => known.set(message.number, message));
  if (!isNewest) known = new Map([...known].sort(([a], [b]) => a - b));
  for (let number = from; number < to; number += 1) if (!known.has(number)) absent.add(number);
}

/** The number after the newest message that is not here; 1 if all are here. */
function firstWithAllSince() {
  let number = lastNumber();
  while (number > 1 && (known.has(number - 1) || absent.has(number - 1))) number -= 1;
  return Math.max(1, number);
}

/** Fetch the messages before *before*. */
async function fetchOlder(before) {
  learn(await read('board/messages', { before, limit: OLDER }), Math.max(1, before - OLDER), before);
}

/** Fetch the newest messages that are not here, and show them above the others. */
async function showOlder() {
  await fetchOlder(firstWithAllSince());
  const stream = byId('stream');
  const below = stream.scrollHeight - stream.scrollTop;
  render();
  stream.scrollTop = stream.scrollHeight - below;
}

/** Show the message of that id, which is fetched if it is an older one. */
export async function showMessage(id) {
  const number = Number(id.replace(/^msg-/, ''));
  if (!known.has(number)) {
    await fetchOlder(Math.min(number + OLDER / 2, lastNumber() + 1)).catch(() => {});
  }
  byId('message-agent').value = '';
  byId('message-notices').checked = true;
  showThread(null);
  go(id);
}

/** Show the new ones, and stay at the end if that was in sight. */
function show(fresh, first) {
  const stay = first || atEnd();
  render();
  if (stay) toNewest();
  else {
    byId('to-newest').hidden = false;
    setText(byId('to-newest'), 'New messages ↓');
  }
  if (!first) fresh.forEach(({ from, to, message }) => say(`${from} to ${to}: ${firstLine(message, 80)}`));
}

function offer(names) {
  const select = byId('message-agent');
  const said = names.join(' ');
  if (select.told === said) return;
  const chosen = select.value;
  select.told = said;
  select.replaceChildren(...[['', 'All agents'], ['human', 'You'], ...names.map((name) => [name, name])].map(([value, label]) => el('option', { value }, label)));
  select.value = ['human', ...names].includes(chosen) ? chosen : '';
}

function render() {
  const agent = byId('message-agent').value;
  const notices = byId('message-notices').checked;
  const roots = rootsOf(known);
  const sizes = new Map();
  for (const root of roots.values()) sizes.set(root, (sizes.get(root) ?? 0) + 1);
  const shown = [...known.values()].filter((message) => {
    if (thread) return roots.get(message.id) === thread;
    if (!notices && FORMAL.has(message.type)) return false;
    return !agent || message.from === agent || message.to === agent || message.recipients?.includes(agent);
  });
  const rows = shown.map((message) => ({ ...message, reached: reached.get(message.id), answers: sizes.get(roots.get(message.id)) - 1, root: roots.get(message.id), alone: Boolean(thread) }));
  keepingFocus(() => keyed(byId('stream'), rows, { key: ({ number }) => number, create, fill }));
  byId('older').hidden = Boolean(thread) || firstWithAllSince() === 1;
  threadBar(sizes.get(thread));
}

/** For each message the id of the one that its thread began with. */
function rootsOf(messages) {
  const roots = new Map();
  for (const { id, replyTo } of messages.values()) roots.set(id, roots.get(replyTo) ?? replyTo ?? id);
  return roots;
}

function threadBar(size) {
  const bar = byId('thread-bar');
  bar.hidden = !thread;
  if (thread) bar.replaceChildren(el('span', {}, `Thread of ${thread}, ${size} messages`), button('Show all', () => showThread(null), { class: 'quiet' }));
}

/** Show the thread alone; what is written then answers the last that came to the person in it. */
function showThread(root) {
  thread = root;
  render();
  const roots = rootsOf(known);
  const last = [...known.values()].findLast((message) => roots.get(message.id) === root && message.from !== 'human' && message.from !== 'system');
  answer(root && last ? last : null, false);
  byId('stream').focus();
}

function create(message) {
  return el('li', { class: 'message', id: message.id, tabindex: -1 });
}

function fill(node, message) {
  const mine = message.from === 'human';
  node.className = ['message', message.type, mine && 'mine', message.to === 'human' && 'to-me'].filter(Boolean).join(' ');
  node.replaceChildren(...[head(message), quote(message), ...text(message), rest(message), foot(message, mine)].filter(Boolean));
}

/** Its text; of a question to agents, how they are to answer it is put away. */
function text({ type, message, length }) {
  const [asked, ...how] = type === 'question' && !length ? message.split(HOW_TO_ANSWER) : [message];
  if (!how.length) return [block(message)];
  return [block(asked.trimEnd()), el('details', {}, el('summary', { class: 'muted' }, 'How to answer'), block(message.slice(asked.length).trimStart(), 'said small'))];
}

/** Of a long one only the beginning came. */
function rest({ id, length }) {
  if (!length) return null;
  const more = button(`Show all ${length.toLocaleString('en')} characters`, () => attempt(more, async () => {
    const [found] = (await read('board/messages', { before: Number(id.slice(4)) + 1, limit: 1, whole: 1 }));
    more.previousElementSibling.replaceWith(block(found.message));
    more.remove();
  }), { class: 'link' });
  return more;
}

function head({ from, to, type, recipients, timestamp, id }) {
  const whom = type === 'broadcast' ? `all ${recipients?.length ?? ''}` : name(to);
  return el('p', { class: 'message-head' },
    el('b', {}, name(from)), el('span', { class: 'unseen' }, ' to '), el('span', { class: 'arrow', 'aria-hidden': 'true' }, '→'),
    el('span', { class: 'whom', title: recipients?.join(', ') }, whom),
    type === 'plain' || type === 'reply' ? null : el('span', { class: `tag ${type}` }, type),
    el('a', { class: 'id', href: link({ message: id }), title: 'Link to this message' }, id), timeAgo(timestamp));
}

function name(agent) {
  return agent === 'human' ? 'you' : agent;
}

function quote({ replyTo }) {
  if (!replyTo) return null;
  const original = [...known.values()].find(({ id }) => id === replyTo);
  const text = original ? `${name(original.from)}: ${firstLine(original.message, 70)}` : replyTo;
  return button(`↪ ${text}`, () => go(replyTo), { class: 'quote', title: `Go to ${replyTo}` });
}

function go(id) {
  const node = byId(id);
  node?.scrollIntoView({ block: 'center' });
  if (node) arriveAt(node, node);
  if (node) goTo({ message: id });
}

function foot(message, mine) {
  const parts = message.reached ? [far(message.reached)] : [];
  if (message.answers && !message.alone) parts.push(button(`Thread, ${message.answers + 1} messages`, () => showThread(message.root), { class: 'link' }));
  if (!mine && message.from !== 'system') parts.push(writing(message));
  return parts.length ? el('p', { class: 'message-foot' }, parts) : null;
}

/** How far a message of the person's own got with each recipient. */
function far({ reach, overdue }) {
  const words = reach.map(({ name, state, turn }) => `${reach.length > 1 ? `${name}: ` : ''}${STATES[state] ?? state}${turn ? ` in turn ${turn}` : ''}`);
  const lost = overdue || reach.some(({ state }) => state === 'will_not_be_read');
  return el('span', { class: lost ? 'reach lost' : 'reach' }, `${words.join(', ')}${overdue ? '; not acknowledged in time' : ''}`);
}

/** What was sent to the person is answered in its thread; to the sender of anything else one writes anew. */
function writing(message) {
  if (message.to === 'human') return button('Reply', () => answer(message), { class: 'link', 'data-change': true });
  return button(`Write to ${message.from}`, () => writeTo(message.from), { class: 'link', 'data-change': true });
}

function atEnd() {
  const stream = byId('stream');
  return stream.scrollHeight - stream.scrollTop - stream.clientHeight < 60;
}

function toNewest() {
  const stream = byId('stream');
  stream.scrollTop = stream.scrollHeight;
  byId('to-newest').hidden = true;
}
