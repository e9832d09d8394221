// What the page asks of the server, and the token with which it may change anything.

const KEPT = 'teams.token';
const READING = 20_000; // milliseconds
const CHANGING = 60_000; // stopping an agent may take a while
const FOR_A_PERSON = { Prefer: 'hints=shell' }; // what to do next as a command, not as a request
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
  message: "The server can't be reached.",
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
  token = given;
  stored(() => (token ? localStorage.setItem(KEPT, token) : localStorage.removeItem(KEPT)));
  watchers.forEach((tell) => tell());
}

/** The person's own token in the chosen team, which `spawn-team --secure` gave. */
export function setOwnToken(given) {
  stored(() => (given ? localStorage.setItem(`${KEPT}.${team}`, given) : localStorage.removeItem(`${KEPT}.${team}`)));
}

function ownToken() {
  return (team && stored(() => localStorage.getItem(`${KEPT}.${team}`))) || '';
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

/** What says who asks: the server's token, and in a team made with `--secure` the person's own. */
export function credentials() {
  const own = ownToken();
  return { ...(token && { Authorization: `Bearer ${token}` }), ...(own && { 'X-Teams-Token': own }) };
}

/** Read something. Throws a Refusal. */
export function read(path, query = {}) {
  return answered(address(path, query), { headers: credentials(), cache: 'no-store', signal: AbortSignal.timeout(READING) });
}

/** Use that token from now on. Throws a Refusal if it is not the server's. */
export async function tryToken(given) {
  const headers = { Authorization: `Bearer ${given}` };
  const response = await fetch(address('board'), { method: 'POST', headers }).catch(() => null);
  if (!response) throw new Refusal(0, UNREACHABLE);
  if (response.status === 401) throw await refusalOf(response);
  setToken(given); // that method is refused to everybody, but the token is looked at first
}

/**
 * Have a command carried out as the person. Throws a Refusal; one for a wrong token also ends the use of it.
 */
export async function change(command, values) {
  const headers = { 'Content-Type': 'application/json', ...credentials() };
  try {
    return await answered(address(command), { method: 'POST', headers, body: JSON.stringify(values), signal: AbortSignal.timeout(CHANGING) });
  } catch (refusal) {
    if (refusal.status === 401) setToken('');
    throw refusal;
  }
}

async function answered(url, options) {
  let response;
  try {
    response = await fetch(url, { credentials: 'omit', redirect: 'error', ...options, headers: { ...FOR_A_PERSON, ...options.headers } });
  } catch {
    throw new Refusal(0, UNREACHABLE);
  }
  if (!response.ok) throw await refusalOf(response);
  return response.json().catch(() => Promise.reject(new Refusal(0, UNREACHABLE)));
}

async function refusalOf(response) {
  const { error } = await response.json().catch(() => ({}));
  return new Refusal(response.status, error ?? {});
}
