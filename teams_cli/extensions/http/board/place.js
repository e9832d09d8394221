// Where on the board one is, kept in the address: the team, the view, what is open, what is searched for. So every task,
// message, question and view has a link, and Back goes back.

const watchers = [];

/** What the address says of *name*; empty if nothing. */
export function said(name) {
  return new URLSearchParams(location.search).get(name) ?? '';
}

/** The address of this board with *changes*: `{ task: 'task-7' }`; what is empty is left out. */
export function link(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) value ? query.set(name, value) : query.delete(name);
  return `${location.pathname}${query.size ? `?${query}` : ''}`;
}

/** Go there; with *push* Back comes back from there. */
export function go(changes, push = false) {
  const target = link(changes);
  if (target === location.pathname + location.search) return;
  push ? history.pushState(null, '', target) : history.replaceState(null, '', target);
}

/** Call *tell* when the person went back or forward. */
export function onReturn(tell) {
  watchers.push(tell);
}

addEventListener('popstate', () => watchers.forEach((tell) => tell()));

/** The link as one may send it to somebody who has the same server. */
export function whole(changes) {
  return new URL(link({ ...CLOSED, ...changes }), location.href).href;
}

/** What is open beside the view. */
export const CLOSED = { task: '', message: '', question: '', agent: '', find: '' };
