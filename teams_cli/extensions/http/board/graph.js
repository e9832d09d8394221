// What waits for what: the tasks as a graph, with the longest chain and what failed marked; the same as a table.

import { button, byId, el, keyed } from './dom.js';
import { isFiltered, matches, onFilter } from './filters.js';
import { attempt } from './notices.js';
import { current, wantAll } from './state.js';
import { FINISHED, WORDS, numberOf } from './statuses.js';
import { chip } from './task_card.js';
import { openTask } from './task_dialog.js';
import { firstLine, plain } from './text.js';

const SVG = 'http://www.w3.org/2000/svg';
const [WIDTH, HEIGHT] = [168, 40];
const SIGNS = { completed: '✓', in_progress: '▸', in_review: '◎', failed: '✗', cancelled: '–', pending: '' };
const LEGIBLE = 0.5; // drawn smaller than that, a box has no text, only its colour
const SMALLEST = 0.02;
let parts = null;
let worker = null;
let laid = { said: '', nodes: [], edges: [] };
let busy = false;
let scale = 1;
let chosen = null;

/** Show it, with all tasks. */
export async function open() {
  parts ??= build();
  await wantAll();
  show(current());
}

/** Show the tasks as they are now; only where what waits for what is another than before, it is laid out anew. */
export function show(snapshot) {
  if (!snapshot || !parts) return;
  const tasks = wanted(snapshot.tasks);
  fillTable(tasks);
  const ids = new Set(tasks.map(({ id }) => id));
  const edges = tasks.flatMap((task) => (task.blockedBy ?? []).filter((id) => ids.has(id)).map((id) => [id, task.id]));
  const linked = new Set(edges.flat());
  const nodes = tasks.map(({ id }) => id).filter((id) => linked.has(id));
  tell(tasks.length, nodes.length);
  const said = JSON.stringify([nodes, edges]);
  if (said === laid.said) return paint(snapshot);
  if (busy) return undefined;
  return layOut(said, nodes, edges);
}

/** Those that are looked for; of the finished ones, unless all are wanted, those that something waits for. */
function wanted(tasks) {
  const shown = tasks.filter(matches);
  if (parts.finished.checked || isFiltered()) return shown.sort((a, b) => numberOf(a.id) - numberOf(b.id));
  return shown.filter(({ status, waiting }) => !FINISHED.has(status) || waiting).sort((a, b) => numberOf(a.id) - numberOf(b.id));
}

function build() {
  const finished = el('input', { type: 'checkbox', id: 'graph-finished' });
  finished.addEventListener('change', () => show(current()));
  const zoom = (by, label) => button(label, () => setScale(scale * by), { 'aria-label': by > 1 ? 'Larger' : 'Smaller', class: 'quiet' });
  const told = el('p', { class: 'muted', role: 'status' });
  const bar = el('div', { class: 'view-bar' }, told, el('label', { class: 'check', for: 'graph-finished' }, finished, ' Finished tasks'),
    zoom(1 / 1.25, '−'), zoom(1.25, '+'), button('Fit', fit, { class: 'quiet' }), legend());
  const drawing = document.createElementNS(SVG, 'svg');
  drawing.setAttribute('role', 'group');
  drawing.setAttribute('aria-label', 'Graph of the tasks; arrow keys follow the dependencies');
  const lines = document.createElementNS(SVG, 'g');
  const boxes = document.createElementNS(SVG, 'g');
  drawing.append(arrowHead(), lines, boxes);
  drawing.addEventListener('keydown', keyPressed);
  for (const event of ['focusin', 'pointerover']) drawing.addEventListener(event, ({ target }) => about(target.closest('.node')?.dataset.task));
  for (const event of ['focusout', 'pointerleave']) drawing.addEventListener(event, () => about());
  const frame = el('div', { class: 'graph-frame' }, drawing);
  const rows = el('tbody');
  const columns = ['Task', 'Status', 'Owner', 'Blocked by', 'Blocks', 'Blocks in all'];
  const table = el('details', { class: 'as-table' }, el('summary', {}, 'As a table'),
    el('div', { class: 'table-frame', tabindex: 0, role: 'region', 'aria-label': 'Tasks and their blockers' },
      el('table', {}, el('thead', {}, el('tr', {}, columns.map((name) => el('th', { scope: 'col' }, name)))), rows)));
  byId('view-graph').replaceChildren(bar, frame, table);
  onFilter(() => show(current()));
  worker = new Worker(new URL('graph_layout.js', import.meta.url), { type: 'module' });
  return { finished, told, drawing, lines, boxes, frame, rows };
}

function legend() {
  const item = (kind, text) => el('li', {}, el('span', { class: `swatch ${kind}` }), text);
  return el('ul', { class: 'legend' }, item('completed', 'done'), item('in_progress', 'in progress'), item('in_review', 'in review'), item('ready', 'ready'), item('blocked', 'blocked'),
    item('failed', 'failed'), item('held', 'blocked by a failed task'), item('critical', 'longest chain'));
}

function arrowHead() {
  const definitions = document.createElementNS(SVG, 'defs');
  const marker = make('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerUnits: 'userSpaceOnUse', markerWidth: 9, markerHeight: 9, orient: 'auto-start-reverse' });
  marker.append(make('path', { d: 'M0 0L8 4L0 8z', class: 'arrow-head' }));
  definitions.append(marker);
  return definitions;
}

function make(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function tell(all, linked) {
  const alone = all - linked;
  const rest = alone ? `${alone} tasks without dependencies are in the table only` : '';
  parts.told.textContent = all ? [linked && `${linked} tasks`, rest].filter(Boolean).join('; ') : 'These tasks have no dependencies.';
}

async function layOut(said, nodes, edges) {
  busy = true;
  const done = await attempt(parts.frame, async () => {
    laid = { said, ...(nodes.length ? await ask({ nodes, edges, width: WIDTH, height: HEIGHT }) : { nodes: [], edges: [], width: 0, height: 0 }) };
  });
  busy = false;
  if (!done) return;
  draw();
  show(current()); // there may be more by now
}

function ask(what) {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message || 'The graph could not be laid out.'));
    worker.postMessage(what);
  });
}

function draw() {
  const at = new Map(laid.nodes.map(([id, ...middle]) => [id, middle]));
  const columns = new Set(laid.nodes.map(([, x]) => round(x)));
  parts.lines.replaceChildren(...laid.edges.map(([from, to, points]) => make('path', {
    d: curve(at.get(from), points.slice(1, -1).filter(([x]) => columns.has(round(x))), at.get(to)), 'data-from': from, 'data-to': to, 'marker-end': 'url(#arrow)',
  })));
  const had = parts.boxes.contains(document.activeElement);
  parts.boxes.replaceChildren(...laid.nodes.map(box));
  const isNew = !laid.nodes.some(([id]) => id === chosen);
  if (isNew) chosen = laid.nodes[0]?.[0] ?? null;
  setScale(scale);
  paint(current());
  if (isNew) bringToSight(foremost(current()));
  if (had) focus(chosen);
}

/** The way of a line: out of the right side of a box, level through the columns between, and into the left one of another. */
function curve([x, y], between, [toX, toY]) {
  let [atX, atY, way] = [x + WIDTH / 2, y, `M${round(x + WIDTH / 2)} ${round(y)}`];
  for (const [nextX, nextY] of [...between, [toX, toY]]) {
    const [end, middle] = [nextX - WIDTH / 2, (atX + nextX - WIDTH / 2) / 2];
    way += `C${round(middle)} ${round(atY)} ${round(middle)} ${round(nextY)} ${round(end)} ${round(nextY)}`;
    [atX, atY] = [nextX + WIDTH / 2, nextY];
    if (nextX !== toX) way += `H${round(atX)}`;
  }
  return way;
}

/** What one looks for first: where the longest chain ahead begins, else what failed, else what stands at the left. */
function foremost({ tasks, course }) {
  const failed = new Set(tasks.filter(({ status }) => status === 'failed').map(({ id }) => id));
  const among = (ids) => laid.nodes.find(([id]) => ids.has(id));
  return among(new Set(course.criticalPath.slice(0, 1))) ?? among(failed) ?? [...laid.nodes].sort(([, a, b], [, c, d]) => a - c || b - d)[0];
}

/** Have that box in the middle of a graph that is larger than its frame. */
function bringToSight(node) {
  if (!node) return;
  const { clientWidth, clientHeight } = parts.frame;
  parts.frame.scrollTo(node[1] * scale - clientWidth / 2, node[2] * scale - clientHeight / 2);
}

function round(number) {
  return Math.round(number * 10) / 10;
}

function box([id, x, y]) {
  const node = make('g', { id: `node-${id}`, 'data-task': id, role: 'button', transform: `translate(${round(x - WIDTH / 2)} ${round(y - HEIGHT / 2)})` });
  const [idText, titleText] = [16, 32].map((y, place) => make('text', { x: 9, y, class: place ? 'node-title' : 'node-id' }));
  node.append(make('rect', { width: WIDTH, height: HEIGHT, rx: 7 }), idText, titleText, make('title', {}));
  node.addEventListener('click', () => openTask(id));
  node.addEventListener('focus', () => (chosen = id));
  return node;
}

/** Have each box and line look like its task is now. */
function paint({ tasks, course }) {
  const byKey = new Map(tasks.map((task) => [task.id, task]));
  const critical = new Set(course.criticalPath);
  for (const node of parts.boxes.children) {
    const task = byKey.get(node.dataset.task);
    if (task) paintBox(node, task, critical.has(task.id));
  }
  const next = new Map(course.criticalPath.map((id, place) => [id, course.criticalPath[place + 1]]));
  for (const line of parts.lines.children) {
    const { from, to } = line.dataset;
    const kind = next.get(from) === to ? 'critical' : ['failed', 'cancelled'].includes(byKey.get(from)?.status) ? 'failed' : byKey.get(from)?.status === 'completed' ? 'met' : '';
    line.setAttribute('class', `line ${kind}${line.classList.contains('near') ? ' near' : ''}`);
  }
}

/** Have the lines of that task stand out, or of none. */
function about(id) {
  parts.drawing.classList.toggle('about', Boolean(id));
  for (const line of parts.lines.children) line.classList.toggle('near', line.dataset.from === id || line.dataset.to === id);
}

function paintBox(node, task, critical) {
  const kind = task.heldUp ? 'held' : task.status === 'pending' ? (task.blocked ? 'blocked' : 'ready') : task.status;
  node.setAttribute('class', `node ${kind}${critical ? ' critical' : ''}`);
  node.setAttribute('tabindex', task.id === chosen ? '0' : '-1');
  const [, id, title, hint] = node.children;
  id.textContent = `${[SIGNS[task.status], task.id, task.owner].filter(Boolean).join(' ')} `; // the blank divides it from the title
  title.textContent = firstLine(task.title, 23);
  const whole = title.textContent.endsWith('…') ? `: ${plain(task.title)}` : '';
  const said = [WORDS[task.status], task.owner && `owner ${task.owner}`, critical && 'on the longest chain', task.heldUp && 'blocked by a failed task', task.waiting && `blocks ${task.waiting}`];
  hint.textContent = `${task.id} ${plain(task.title)}`;
  node.setAttribute('aria-label', `${id.textContent}${title.textContent}${whole} (${said.filter(Boolean).join('; ')})`);
}

function setScale(wantedScale) {
  scale = Math.min(2, Math.max(SMALLEST, wantedScale));
  parts.frame.classList.toggle('far', scale < LEGIBLE);
  const [width, height] = [laid.width || 0, laid.height || 0];
  parts.drawing.setAttribute('viewBox', `0 0 ${width} ${height}`);
  parts.drawing.setAttribute('width', width * scale);
  parts.drawing.setAttribute('height', height * scale);
}

/** As large as the whole can be seen. */
function fit() {
  const { clientWidth, clientHeight } = parts.frame;
  if (laid.width) setScale(Math.min(clientWidth / laid.width, clientHeight / laid.height, 1.25));
}

function keyPressed(event) {
  const id = event.target.closest('.node')?.dataset.task;
  if (!id) return;
  if (event.key === 'Enter' || event.key === ' ') openTask(id);
  else if (!event.key.startsWith('Arrow')) return;
  else focus(neighbour(id, event.key));
  event.preventDefault();
}

/** Left to what it waits for, right to what waits for it, up and down to what stands there. */
function neighbour(id, key) {
  if (key === 'ArrowLeft') return laid.edges.find(([, to]) => to === id)?.[0];
  if (key === 'ArrowRight') return laid.edges.find(([from]) => from === id)?.[1];
  const [, x, y] = laid.nodes.find(([each]) => each === id);
  const by = key === 'ArrowUp' ? -1 : 1;
  const column = laid.nodes.filter(([each, atX, atY]) => each !== id && Math.abs(atX - x) < WIDTH / 2 && (atY - y) * by > 0);
  return column.sort(([, , a], [, , b]) => (a - b) * by)[0]?.[0];
}

function focus(id) {
  const node = id && byId(`node-${id}`);
  if (!node) return;
  byId(`node-${chosen}`)?.setAttribute('tabindex', '-1');
  node.setAttribute('tabindex', '0');
  node.focus();
  node.scrollIntoView({ block: 'nearest', inline: 'nearest' });
}

function fillTable(tasks) {
  const after = Map.groupBy(tasks.flatMap((task) => (task.blockedBy ?? []).map((id) => [id, task.id])), ([id]) => id);
  const rows = tasks.map((task) => ({ ...task, after: (after.get(task.id) ?? []).map(([, id]) => id) }));
  keyed(parts.rows, rows, { key: ({ id }) => id, create: () => el('tr'), fill: fillRow });
}

function fillRow(row, task) {
  const chips = (ids) => el('td', {}, el('ul', { class: 'chips' }, (ids ?? []).map((id) => el('li', {}, chip(id, openTask, 0, task.blockers?.[id] ?? (task.blockedBy?.includes(id) ? 'completed' : ''))))));
  row.replaceChildren(el('th', { scope: 'row' }, button(`${task.id} ${firstLine(task.title, 60)}`, () => openTask(task.id), { class: 'link' })),
    el('td', {}, task.heldUp ? 'Blocked by a failed task' : task.blocked ? 'Blocked' : WORDS[task.status]), el('td', {}, task.owner ?? ''),
    chips(task.blockedBy), chips(task.after), el('td', {}, task.waiting ? String(task.waiting) : ''));
}
