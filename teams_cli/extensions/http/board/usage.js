// What the agents took in tokens and time, by agent, task or model, and how far the budgets are used up.

import { perform } from './actions.js';
import { read } from './api.js';
import { span } from './course.js';
import { button, byId, el, keyed } from './dom.js';
import { ask, field } from './forms.js';
import { attempt } from './notices.js';
import { current } from './state.js';

const BY = [['agent', 'By agent'], ['task', 'By task'], ['model', 'By model']];
const REST = 3000; // turns end one after the other; each is one more look at all of them
const WARNED_AT = 0.8;
let parts = null;
let looked = 0;
let timer = 0;

/** Show it as it is now. */
export async function open() {
  parts ??= build();
  await look();
}

/** Show it anew when something changed, a little later. */
export function show(snapshot) {
  if (!snapshot || !parts || timer) return;
  timer = setTimeout(() => {
    timer = 0;
    if (!byId('view-usage').hidden) attempt(null, look);
  }, Math.max(0, looked + REST - Date.now()));
}

function build() {
  const by = el('select', { 'aria-label': 'Group by' }, BY.map(([value, label]) => el('option', { value }, label)));
  by.addEventListener('change', () => attempt(by, look));
  const told = el('p', { class: 'muted', role: 'status' });
  const what = el('th', { scope: 'col' });
  const columns = ['Turns', 'Input', 'of it cached', 'Output', 'Tokens', 'Time'].map((name) => el('th', { scope: 'col', class: 'number' }, name));
  const rows = el('tbody');
  const budgets = el('ul', { class: 'rows', 'aria-label': 'Budgets' });
  const table = el('div', { class: 'table-frame spent', tabindex: 0, role: 'region', 'aria-label': 'Token usage' },
    el('table', {}, el('thead', {}, el('tr', {}, what, columns)), rows));
  byId('view-usage').replaceChildren(el('div', { class: 'view-bar' }, told, by), budgets, table);
  return { by, told, what, rows, budgets };
}

async function look() {
  looked = Date.now();
  const found = await read('usage', { by: parts.by.value });
  parts.what.textContent = { agent: 'Agent', task: 'Task', model: 'Model' }[found.by];
  parts.told.textContent = inWords(found);
  const rows = [...found.rows.map((row) => ({ ...row, name: row[found.by] })), ...(found.rows.length > 1 ? [{ ...found.total, name: 'Total', whole: true }] : [])];
  keyed(parts.rows, rows, { key: ({ name, whole }) => `${name} ${Boolean(whole)}`, create: () => el('tr'), fill: fillRow });
  const budgets = found.budgets.map((budget) => ({ ...budget, team: current().team.name }));
  keyed(parts.budgets, budgets, { key: ({ of, team }) => `${team} ${of ?? ''}`, create: () => el('li', { class: 'row' }), fill: fillBudget });
}

function inWords({ total, coordination }) {
  if (!total.turns) return 'No agent that `teams` started has finished a turn yet.';
  const counted = total.total === null ? 'tokens unknown: the clients do not report them' : `${number(total.total)} tokens`;
  const some = total.uncounted && total.total !== null ? `, ${total.uncounted} of them not reported` : '';
  const mail = coordination === null ? '' : `; ${Math.round(100 * coordination)} % of them in turns that only handled messages`;
  return `${total.turns} ${total.turns === 1 ? 'turn' : 'turns'}${some}, ${counted}${mail}.`;
}

function number(count) {
  return count === null ? 'unknown' : count.toLocaleString('en');
}

function fillRow(row, { name, turns, uncounted, input, cached, output, total, seconds, whole }) {
  const cells = [uncounted && turns > uncounted ? `${turns} (${uncounted} unknown)` : turns, ...[input, cached, output, total].map(number), span(seconds)];
  row.className = whole ? 'whole' : '';
  row.replaceChildren(el('th', { scope: 'row' }, name), ...cells.map((cell) => el('td', { class: 'number' }, cell)));
}

function fillBudget(node, { of, limit, taken, uncounted }) {
  const share = taken / limit;
  const whose = of ? `Budget of ${of}` : 'Budget of the team';
  const bar = el('progress', { max: limit, value: Math.min(taken, limit), 'aria-label': whose });
  const word = share >= 1 ? 'used up: no new turn begins' : share >= WARNED_AT ? 'nearly used up' : '';
  node.className = `row budget ${share >= 1 ? 'bad' : share >= WARNED_AT ? 'near' : ''}`;
  node.replaceChildren(el('b', {}, whose), bar, el('span', {}, `${number(taken)} of ${number(limit)} tokens, ${Math.round(100 * share)} %`),
    uncounted ? el('span', {}, `${uncounted} turns are not reported.`) : '',
    word ? el('span', { class: 'reason' }, word) : '', button('Change…', () => askLimit(of, limit), { 'data-change': true }));
}

function askLimit(of, limit) {
  ask({
    title: of ? `Budget of ${of}` : 'Budget of the team',
    inputs: [field({ name: 'value', label: 'Tokens', kind: 'number', min: 1, required: true, value: String(limit) })],
    label: 'Set',
    submit: async ({ value }) => {
      await perform('set', { key: 'budget', value, ...(of && { of }) });
      await look();
    },
  });
}
