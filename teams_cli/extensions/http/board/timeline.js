// Who worked on what when: a row for each agent, with what failed and what was asked; the same as a table. The arrow keys
// go from one piece of work to another.

import { read } from './api.js';
import { now } from './clock.js';
import { span } from './course.js';
import { button, byId, el, keyed } from './dom.js';
import { matches, onFilter } from './filters.js';
import { current, wantAll } from './state.js';
import { openTask } from './task_dialog.js';
import { firstLine, plain } from './text.js';

const HOUR = 3_600_000;
const SPANS = [['3600000', 'Last hour'], ['14400000', 'Last 4 hours'], ['86400000', 'Last day'], ['604800000', 'Last week'], ['', 'All']];
const STEPS = [1, 5, 10, 30, 60, 180, 360, 720, 1440, 2880, 10_080, 43_200].map((minutes) => minutes * 60_000);
let parts = null;
let questions = [];
let asked = '';
let chosen = '';

/** Show it, with all tasks. */
export async function open() {
  parts ??= build();
  await wantAll();
  await show(current());
}

/** Show the work as it is now. */
export async function show(snapshot) {
  if (!snapshot || !parts) return;
  const told = JSON.stringify([snapshot.team.name, snapshot.questions]);
  if (told !== asked) {
    asked = told;
    questions = await read('get-questions').catch(() => []);
  }
  draw(snapshot);
}

function build() {
  const choice = el('select', { 'aria-label': 'Period' }, SPANS.map(([value, label]) => el('option', { value }, label)));
  choice.value = '';
  choice.addEventListener('change', () => draw(current()));
  const told = el('p', { class: 'muted', role: 'status' });
  const chart = el('div', { class: 'chart', role: 'group', 'aria-label': 'Timeline; arrow keys move between tasks' });
  chart.addEventListener('keydown', keyPressed);
  chart.addEventListener('focusin', ({ target }) => target.dataset.key && choose(target));
  const rows = el('tbody');
  const columns = ['Agent', 'Task', 'From', 'Duration', 'Outcome'];
  const table = el('details', { class: 'as-table' }, el('summary', {}, 'As a table'),
    el('div', { class: 'table-frame', tabindex: 0, role: 'region', 'aria-label': 'Work on tasks' },
      el('table', {}, el('thead', {}, el('tr', {}, columns.map((name) => el('th', { scope: 'col' }, name)))), rows)));
  byId('view-timeline').replaceChildren(el('div', { class: 'view-bar' }, told, choice), el('div', { class: 'chart-frame' }, chart), table);
  onFilter(() => draw(current()));
  setInterval(() => !byId('view-timeline').hidden && !document.hidden && current() && draw(current()), 15_000);
  return { choice, told, chart, rows };
}

function draw({ tasks, agents }) {
  const until = now();
  const all = tasks.filter(matches).flatMap((task) => (task.work ?? []).map(([agent, from, to, how], number) => ({
    key: `${task.id} ${number}`, task: task.id, title: task.title, agent, from: Date.parse(from), to: to ? Date.parse(to) : until, how: to ? how : null,
  })));
  const wanted = Number(parts.choice.value);
  const first = wanted ? until - wanted : Math.min(...all.map(({ from }) => from), until - HOUR / 6);
  const spans = all.filter(({ to }) => to >= first).sort((a, b) => a.from - b.from);
  const marks = questions.map((question) => ({ agent: question.from, at: Date.parse(question.createdAt), text: `${question.id}: ${firstLine(question.question, 80)}` }))
    .filter(({ at }) => at >= first);
  parts.told.textContent = spans.length ? `${spans.length} attempts, ${spans.filter(({ how }) => how === 'failed').length} failed` : 'Nobody worked on a task in this period.';
  const scale = { first, length: Math.max(until - first, 1) };
  const names = [...new Set([...agents.map(({ name }) => name), ...spans.map(({ agent }) => agent)])];
  const rows = names.map((name) => ({ name, scale, spans: spans.filter(({ agent }) => agent === name), marks: marks.filter(({ agent }) => agent === name) }));
  keyed(parts.chart, [{ name: '', scale }, ...rows], { key: ({ name }) => `row ${name}`, create: createRow, fill: fillRow });
  keyed(parts.rows, [...spans].reverse(), { key: ({ key }) => key, create: () => el('tr'), fill: fillTableRow });
  const bars = [...parts.chart.querySelectorAll('.bar')];
  if (bars.length) choose(bars.find(({ dataset }) => dataset.key === chosen) ?? bars[0]);
}

/** Have that bar be the one that Tab comes to. */
function choose(node) {
  for (const bar of parts.chart.querySelectorAll('.bar[tabindex="0"]')) bar.tabIndex = -1;
  node.tabIndex = 0;
  chosen = node.dataset.key;
}

/** Left and right along an agent's work, up and down to who else worked then. */
function keyPressed(event) {
  const row = event.target.closest('.bar') && event.target.closest('.chart-row');
  const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!row || !by) return;
  event.preventDefault();
  const beside = [...row.querySelectorAll('.bar')];
  const next = event.key === 'ArrowLeft' || event.key === 'ArrowRight' ? beside[beside.indexOf(event.target) + by] : nearest(row, event.target, by);
  next?.focus();
  next?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
}

/** In the next row that way which has any, the bar that begins nearest. */
function nearest(row, { offsetLeft }, by) {
  const rows = [...parts.chart.querySelectorAll('.chart-row')].filter((each) => each === row || each.querySelector('.bar'));
  const bars = [...(rows[rows.indexOf(row) + by]?.querySelectorAll('.bar') ?? [])];
  return bars.sort((a, b) => Math.abs(a.offsetLeft - offsetLeft) - Math.abs(b.offsetLeft - offsetLeft))[0];
}

function createRow({ name }) {
  return el('div', { class: name ? 'chart-row' : 'chart-axis', role: name ? 'group' : null, 'aria-label': name || null });
}

function fillRow(row, { name, scale, spans, marks }) {
  if (!name) return row.replaceChildren(el('span'), el('div', { class: 'ticks' }, ticks(scale)));
  const had = document.activeElement?.dataset?.key;
  const track = el('div', { class: 'track' });
  const ends = [];
  for (const work of spans) {
    let lane = ends.findIndex((end) => end <= work.from);
    if (lane < 0) lane = ends.length;
    ends[lane] = work.to;
    track.append(bar(work, lane, scale));
  }
  track.append(...marks.map((mark) => at(el('span', { class: 'question-mark', title: mark.text, role: 'img', 'aria-label': mark.text }, '?'), mark.at, scale)));
  track.style.minHeight = `${Math.max(1, ends.length) * 1.7}rem`;
  row.replaceChildren(el('span', { class: 'chart-name' }, name), track);
  if (had) row.querySelector(`[data-key="${CSS.escape(had)}"]`)?.focus({ preventScroll: true });
  return undefined;
}

function bar(work, lane, scale) {
  const { task, title, from, to, how } = work;
  const said = `${task} ${plain(title)}: ${span((to - from) / 1000)}, ${how ?? 'in progress'}`;
  const node = button(el('span', {}, `${how === 'failed' ? '✗ ' : ''}${task}`), () => openTask(task), { class: `bar ${how ?? 'in_progress'}`, title: said, 'aria-label': said, 'data-key': work.key, tabindex: work.key === chosen ? 0 : -1 });
  const [left, width] = [place(Math.max(from, scale.first), scale), (Math.min(to, scale.first + scale.length) - Math.max(from, scale.first)) / scale.length];
  Object.assign(node.style, { left: `${100 * left}%`, width: `max(0.7rem, ${100 * width}%)`, top: `${lane * 1.7}rem` });
  return node;
}

function place(moment, { first, length }) {
  return (moment - first) / length;
}

function at(node, moment, scale) {
  node.style.left = `${100 * place(moment, scale)}%`;
  return node;
}

/** Five to ten moments, at full minutes, hours or days of this place. */
function ticks(scale) {
  const step = STEPS.find((each) => scale.length / each <= 9) ?? STEPS.at(-1);
  const shift = new Date(scale.first).getTimezoneOffset() * 60_000;
  const found = [];
  for (let moment = Math.ceil((scale.first - shift) / step) * step + shift; moment < scale.first + scale.length; moment += step) {
    const time = new Date(moment);
    const words = step >= 24 * HOUR ? time.toLocaleDateString([], { day: 'numeric', month: 'short' }) : time.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
    found.push(at(el('span', { class: place(moment, scale) > 0.9 ? 'tick late' : 'tick' }, words), moment, scale));
  }
  return found;
}

function fillTableRow(row, { agent, task, title, from, to, how }) {
  row.replaceChildren(el('th', { scope: 'row' }, agent), el('td', {}, button(`${task} ${firstLine(title, 60)}`, () => openTask(task), { class: 'link' })),
    el('td', {}, new Date(from).toLocaleString()), el('td', {}, span((to - from) / 1000)), el('td', {}, how ?? 'in progress'));
}
