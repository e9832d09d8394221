// What the page asks of the server, and the token with which it may change anything.

const KEPT = 'teams.token';
let token = '';
let team = '';
const watchers = [];

/** A request that the server refused, or that did not reach it; `message` and `hint` are for the person. */
export class Refusal extends Error {
  constructor(status, { code = '', message = '', hint = '' }) {
    super(message || `The server answered ${status}.`);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

const UNREACHABLE = {
  code: 'unreachable',
  message: 'The server can’t be reached.',
  hint: 'Start it with `teams serve`. If you were changing something, look whether it was done before you repeat it.',
};

/** Take the token from the address, where `teams serve` puts it, or from an earlier visit. */
export function findToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given) {
    history.replaceState(null, '', location.pathname + location.search);
    setToken(given);
  } else {
    token = stored(() => localStorage.getItem(KEPT)) ?? '';
  }
}

function stored(work) {
  try {
    return work();
  } catch {
    return null; // storage may be off: the token then lasts as long as the page
  }
}

export function setToken(given) {
  token = given.trim();
  stored(() => (token ? localStorage.setItem(KEPT, token) : localStorage.removeItem(KEPT)));
  watchers.forEach((tell) => tell());
}

export function mayChange() {
  return token !== '';
}

/** Call *tell* whenever the token comes or goes. */
export function onToken(tell) {
  watchers.push(tell);
}

export function setTeam(name) {
  team = name;
}

/** The address of something the server has, for the chosen team. */
export function address(path, query = {}) {
  const said = new URLSearchParams(Object.entries(query).map(([key, value]) => [key, String(value)]));
  if (team) said.set('team', team);
  return `/api/${path}${said.size ? `?${said}` : ''}`;
}

/**
 * Read something. Throws a Refusal.
 */
export function read(path, query = {}, signal = undefined) {
  return answered(address(path, query), { signal, cache: 'no-store' });
}

/**
 * Have a command carried out as the person. Throws a Refusal; one for a wrong token also ends the use of it.
 */
export async function change(command, values) {
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` };
  try {
    return await answered(address(command), { method: 'POST', headers, body: JSON.stringify(values) });
  } catch (refusal) {
    if (refusal.status === 401) setToken('');
    throw refusal;
  }
}

async function answered(url, options) {
  let response;
  try {
    response = await fetch(url, { credentials: 'omit', redirect: 'error', ...options });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refusal(0, UNREACHABLE);
  }
  const document = await response.json().catch(() => ({}));
  if (response.ok) return document;
  const { error } = document;
  throw new Refusal(response.status, typeof error === 'object' ? error : { ...document, message: error });
}
