// What the server said last of the chosen team, and who is told when that changes. Nothing here is guessed: what a
// change made of the team is seen by asking again.

import { Refusal, read, setTeam } from './api.js';
import { now, onExpired, setServerTime } from './clock.js';
import { Events } from './events.js';

const REST = 150; // milliseconds between a change and the question what it made, for more changes to come
const LONGEST_REST = 5000;
const FAILED_LOOK = 2000;
const IDLE_LOOK = 15_000; // some things change without an entry: who was not heard of for too long
const HIDDEN_LOOK = 20_000;
const HIDDEN_STREAM = 60_000; // a browser has six connections to a server: a page that nobody sees gives its own back

const watchers = { snapshot: [], connection: [], problem: [] };
let snapshot = null;
let teamName = '';
let asking = null;
let next = null;
let took = 0;
let timer = 0;
let due = Infinity;
let hiddenTimer = 0;
let sleeping = false;
const connection = { state: 'connecting', retryAt: 0, lostAt: 0 };
const events = new Events({ changed: soon, opened: refresh, told: connectionTold });

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
  events.stop();
  events.position = null;
  refresh();
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
    const told = await read('board');
    if (name !== teamName) return;
    took = Date.now() - asked;
    setServerTime(told.now, asked, Date.now());
    snapshot = told;
    emit('snapshot', snapshot);
    if (!events.running && !sleeping) events.start(told.position);
    if (events.live && connection.state !== 'live') connectionTold('live', 0);
  } catch (refusal) {
    if (name !== teamName) return;
    if (!(refusal instanceof Refusal)) throw refusal;
    if (refusal.status === 0 && !events.live) connectionTold('waiting', FAILED_LOOK);
    emit('problem', refusal);
  }
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
  within(Math.max(REST, Math.min(3 * took, LONGEST_REST)));
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
