// What the server said last of the chosen team, and who is told when that changes. Nothing here is guessed: what a
// change made of the team is seen by asking again, for the rows that changed since the version that we have.

import { Refusal, read, setTeam } from './api.js';
import { now, onExpired, setServerTime } from './clock.js';
import { Events } from './events.js';

const REST = 60; // milliseconds between a change and the question what it made, for more changes to come
const LONGEST_REST = 5000;
const FAILED_LOOK = 2000;
const IDLE_LOOK = 15_000; // some things change without an entry: who was not heard of for too long
const HIDDEN_LOOK = 20_000;
const HIDDEN_STREAM = 60_000; // a browser has six connections to a server: a page that nobody sees gives its own back

const FEW = 100; // finished tasks, the newest; a view that needs all asks for them
const ALL = 20_000;

const watchers = { snapshot: [], connection: [], problem: [] };
let snapshot = null;
let version = '';
let tables = {};
let newest = 0;
let finished = FEW;
let teamName = '';
let asking = null;
let next = null;
let took = 0;
let timer = 0;
let due = Infinity;
let hiddenTimer = 0;
let sleeping = false;
const connection = { state: 'connecting', retryAt: 0, lostAt: 0 };
let fresh = false; // whether the stream begins where the last answer stands, and tells all that came since
const events = new Events({ changed: soon, opened, told: connectionTold });

export function on(what, tell) {
  watchers[what].push(tell);
}

function emit(what, value) {
  watchers[what].forEach((tell) => tell(value));
}

/** What the server said last, or null. */
export function current() {
  return snapshot;
}

export function connectionNow() {
  return connection;
}

/** Show that team from now on. */
export function choose(name) {
  teamName = name;
  setTeam(name);
  snapshot = null;
  begin(FEW);
  events.stop();
  events.position = null;
  refresh();
}

function begin(many) {
  [version, tables, newest, finished] = ['', {}, 0, many];
}

/** Have all finished tasks from now on, not only the newest; resolves when the page shows them. */
export function wantAll() {
  if (finished === ALL) return Promise.resolve();
  [version, finished] = ['', ALL];
  return refresh();
}

/** Whether all tasks are here, or of the finished ones only the newest. */
export function hasAll() {
  return finished === ALL;
}

/** Ask again, after what is being asked already; resolves when the page shows the answer. */
export function refresh() {
  if (!asking) return (asking = look());
  next ??= asking.then(() => {
    next = null;
    return refresh();
  });
  return next;
}

async function look() {
  clearTimeout(timer);
  due = Infinity;
  try {
    await lookOnce(teamName);
  } finally {
    asking = null;
    within(document.hidden ? HIDDEN_LOOK : snapshot ? IDLE_LOOK : FAILED_LOOK);
  }
}

async function lookOnce(name) {
  const asked = Date.now();
  try {
    const wanted = finished;
    const told = await read('board/rows', { after: version, messages: newest, finished });
    if (name !== teamName || wanted !== finished) return;
    took = Date.now() - asked;
    setServerTime(told.now, asked, Date.now());
    snapshot = merged(told);
    emit('snapshot', snapshot);
    if (!events.running && !sleeping) {
      fresh = true;
      events.start(told.position);
    }
    if (events.live && connection.state !== 'live') connectionTold('live', 0);
  } catch (refusal) {
    if (name !== teamName) return;
    if (!(refusal instanceof Refusal)) throw refusal;
    if (refusal.status === 0 && !events.live) connectionTold('waiting', FAILED_LOOK);
    emit('problem', refusal);
  }
}

/** The team as it is now: what we had, with the rows that are new or gone. */
function merged(told) {
  if (told.whole) tables = {};
  version = told.version;
  for (const [name, rows] of Object.entries(told.rows)) {
    const table = (tables[name] ??= new Map());
    for (const [key, row] of Object.entries(rows)) row === null ? table.delete(key) : table.set(key, row);
  }
  newest = Math.max(newest, told.messages.at(-1)?.number ?? 0);
  const all = (name) => [...(tables[name]?.values() ?? [])];
  const parts = Object.fromEntries(['tasks', 'agents', 'questions', 'plans', 'shutdowns', 'mail', 'sent', 'pages', 'landings'].map((name) => [name, all(name)]));
  return { ...parts, messages: told.messages, now: told.now, ...Object.fromEntries(tables.facts ?? []) };
}

/** The task of that id, if the page has it. */
export function taskOf(id) {
  return tables.tasks?.get(id) ?? null;
}

/** Ask again within that time, in milliseconds. */
function within(rest) {
  const moment = Date.now() + rest;
  if (moment >= due) return;
  clearTimeout(timer);
  due = moment;
  timer = setTimeout(() => teamName && refresh(), rest);
}

/** Ask again after a rest for more changes to come; a longer one when the last answer took its time. */
function soon() {
  within(Math.max(REST, Math.min(took, LONGEST_REST)));
}

/** Ask what came while there was no stream. */
function opened() {
  if (!fresh) refresh();
  fresh = false;
}

function connectionTold(state, pause) {
  if (state === 'waiting' && connection.state !== 'waiting') connection.lostAt = now();
  connection.state = state;
  connection.retryAt = Date.now() + pause;
  emit('connection', connection);
}

/** Try at once. */
export function hurry() {
  events.hurry();
  if (!snapshot) refresh();
}

function visibilityChanged() {
  clearTimeout(hiddenTimer);
  if (document.hidden) {
    hiddenTimer = setTimeout(() => {
      sleeping = true;
      events.stop();
    }, HIDDEN_STREAM);
    return;
  }
  if (sleeping && snapshot) events.start();
  sleeping = false;
  hurry();
}

document.addEventListener('visibilitychange', visibilityChanged);
addEventListener('online', hurry);
onExpired(soon);
