// What happened, the newest first: the team's history, of all or of one, as far back as one likes.

import { read } from './api.js';
import { timeAgo } from './clock.js';
import { deed } from './deeds.js';
import { byId, button, el, keyed } from './dom.js';
import { attempt } from './notices.js';
import { go, said } from './place.js';
import { current } from './state.js';
import { openTask } from './task_dialog.js';
import { visible } from './text.js';

const SINCE = [['1h', 'Last hour'], ['today', 'Today'], ['7d', 'Last week'], ['', 'All']];
const SHOWN = 300;
let parts = null;
let entries = [];
let of = '';
let looking = null;
let titles = new Map();

/** Show it. */
export async function open() {
  parts ??= build();
  await show(current());
}

/** Show what came since. */
export async function show(snapshot) {
  if (!snapshot || !parts) return;
  looking ??= look(snapshot.team.name).finally(() => (looking = null));
  await looking;
}

function build() {
  const agent = el('select', { 'aria-label': 'Agent' });
  const since = el('select', { 'aria-label': 'Period' }, SINCE.map(([value, label]) => el('option', { value }, label)));
  since.value = 'today';
  agent.addEventListener('change', () => {
    go({ who: agent.value });
    fill();
  });
  since.addEventListener('change', () => {
    of = '';
    attempt(list, () => look(current().team.name));
  });
  const told = el('p', { class: 'muted', role: 'status' });
  const list = el('ol', { class: 'activity', tabindex: 0, 'aria-label': 'Activity, newest first' });
  byId('view-activity').replaceChildren(el('div', { class: 'view-bar' }, told, agent, since), list);
  return { agent, since, told, list };
}

/** Fetch what is not here yet, and show it. */
async function look(team) {
  const choice = `${team} ${parts.since.value}`;
  const last = choice === of ? entries.at(-1)?.at : undefined;
  const since = last ?? (parts.since.value === 'today' ? new Date(new Date().setHours(0, 0, 0, 0)).toISOString() : parts.since.value);
  const found = await read('history', since ? { since } : {});
  const known = new Set(last ? entries.filter(({ at }) => at === last).map((entry) => JSON.stringify(entry)) : []);
  entries = [...(last ? entries : []), ...found.filter((entry) => !known.has(JSON.stringify(entry)))];
  of = choice;
  fill();
}

function fill() {
  const actors = [...new Set([...current().agents.map(({ name }) => name), ...entries.map(({ actor }) => actor)])];
  const chosen = said('who');
  parts.agent.replaceChildren(el('option', { value: '' }, 'Everyone'), ...actors.map((name) => el('option', { value: name }, name === 'human' ? 'You' : name)));
  parts.agent.value = actors.includes(chosen) ? chosen : '';
  titles = new Map(current().tasks.map(({ id, title }) => [id, title]));
  const shown = entries.filter(({ actor }) => !parts.agent.value || actor === parts.agent.value);
  const counts = new Map();
  for (const { what } of shown) counts.set(what, (counts.get(what) ?? 0) + 1);
  const most = [...counts].sort(([, a], [, b]) => b - a).slice(0, 4).map(([what, number]) => `${number} × ${what}`);
  parts.told.textContent = shown.length ? [...most, shown.length > SHOWN ? `the newest ${SHOWN} of ${shown.length} are shown` : ''].filter(Boolean).join(', ') : 'Nothing happened in this period.';
  const rows = shown.map((entry, number) => ({ entry, id: `${entry.at} ${entry.actor} ${number}` })).slice(-SHOWN).reverse();
  keyed(parts.list, rows, { key: ({ id }) => id, create: () => el('li'), fill: fillEntry });
}

function fillEntry(row, { entry }) {
  row.className = /failed|lost|cancelled/.test(entry.what) ? 'bad' : '';
  const said = deed(entry, titles).flatMap((part) => (part.task ? [button(part.task, () => openTask(part.task), { class: 'chip' })] : visible(String(part))));
  row.replaceChildren(timeAgo(entry.at), el('span', {}, el('b', {}, entry.actor === 'human' ? 'you' : entry.actor), ' ', ...said));
}
