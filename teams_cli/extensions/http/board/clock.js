// The server's clock, and the times on the page that go on by themselves.

let offset = 0;
let expired = () => {};

/** Take the server's time, which it told between the two moments of this clock. */
export function setServerTime(told, asked, answered) {
  const moment = Date.parse(told);
  if (!Number.isNaN(moment)) offset = moment - (asked + answered) / 2;
}

/** The server's time, in milliseconds. */
export function now() {
  return Date.now() + offset;
}

/** Call *does* when a countdown on the page reaches its end. */
export function onExpired(does) {
  expired = does;
}

/** `4:12`, `2:03:00`; `0:00` when it is over. */
export function untilText(moment) {
  const seconds = Math.max(0, Math.ceil((moment - now()) / 1000));
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const two = (number) => String(number).padStart(2, '0');
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** `just now`, `3 min ago`, `2 h ago`, `5 d ago`. */
export function agoText(moment) {
  const seconds = Math.max(0, (now() - moment) / 1000);
  if (seconds < 45) return 'just now';
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  return seconds < 86400 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86400)} d ago`;
}

/** A `<time>` that counts down to *until*, or tells how long *at* is past. */
export function timeLeft(until) {
  return timed('until', until);
}

export function timeAgo(at) {
  return timed('at', at);
}

function timed(kind, told) {
  const node = document.createElement('time');
  node.dateTime = told;
  node.title = new Date(told).toLocaleString();
  node.dataset[kind] = Date.parse(told);
  show(node);
  return node;
}

function show(node) {
  const { until, at } = node.dataset;
  const text = until ? untilText(Number(until)) : agoText(Number(at));
  if (node.textContent !== text) node.textContent = text;
  if (until) showEnd(node, Number(until) - now());
}

function showEnd(node, left) {
  node.classList.toggle('soon', left < 30_000);
  if (left > 0 || node.classList.contains('over')) return;
  node.classList.add('over');
  expired();
}

setInterval(() => document.querySelectorAll('time[data-until], time[data-at]').forEach(show), 1000);
