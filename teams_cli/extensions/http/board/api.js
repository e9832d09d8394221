// What the page asks of the server, and the token with which it may change anything.

const KEPT = 'teams.token';
const READING = 20_000; // milliseconds
const CHANGING = 60_000; // stopping an agent may take a while
const FOR_A_PERSON = { Prefer: 'hints=shell' }; // what to do next as a command, not as a request
let token = '';
let proven = false; // whether who answers is the server that has the token
const own = {}; // the person's own token in each team: kept nowhere, as another server may come by this address
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

const WRONG = { code: 'wrong_token', message: 'the token is wrong', hint: 'Each start of `teams serve` prints a new token.' };
const UNREACHABLE = {
  code: 'unreachable',
  message: "The server can't be reached.",
  hint: 'Start it with `teams serve`. Before you repeat a change, check whether it was made.',
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

function setToken(given) {
  token = given;
  proven = false;
  stored(() => (token ? localStorage.setItem(KEPT, token) : localStorage.removeItem(KEPT)));
  watchers.forEach((tell) => tell());
}

/** The person's own token in the chosen team, which `spawn-team --secure` gave. */
export function setOwnToken(given) {
  own[team] = given;
}

/** Use no token any more. */
export function forgetTokens() {
  for (const name of Object.keys(own)) delete own[name];
  setToken('');
}

/** The connection broke: who answers from now on has to prove itself before it is sent a token. */
export function doubt() {
  proven = false;
}

/** Whether who answers has that token. Throws a Refusal if nobody answers. */
async function hasToken(given) {
  const bytes = (text) => new TextEncoder().encode(text);
  const nonce = crypto.randomUUID();
  const { proof = '' } = await answered(`/api/proof?nonce=${nonce}`, { cache: 'no-store', signal: AbortSignal.timeout(READING) });
  const key = await crypto.subtle.importKey('raw', bytes(given), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
  const said = Uint8Array.from(String(proof).match(/../g) ?? [], (pair) => parseInt(pair, 16));
  return crypto.subtle.verify('HMAC', key, said, bytes(nonce));
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
 * What says who asks: the server's token, and in a team made with `--secure` the person's own. Who answers has to have
 * that token, or both are forgotten: while the server is away, another user of the machine can listen in its place.
 */
export async function credentials() {
  if (token && !proven) {
    if (await hasToken(token)) proven = true;
    else forgetTokens();
  }
  if (!token) return {};
  return { Authorization: `Bearer ${token}`, ...(own[team] && { 'X-Teams-Token': own[team] }) };
}

/** Read something. Throws a Refusal. */
export async function read(path, query = {}) {
  return answered(address(path, query), { headers: await credentials(), cache: 'no-store', signal: AbortSignal.timeout(READING) });
}

/** Use that token from now on. Throws a Refusal if it is not the server's. */
export async function tryToken(given) {
  if (!(await hasToken(given))) throw new Refusal(401, WRONG);
  setToken(given);
  proven = true;
}

/**
 * Have a command carried out as the person. Throws a Refusal; one for a wrong token also ends the use of it.
 */
export async function change(command, values) {
  const headers = { 'Content-Type': 'application/json', ...(await credentials()) };
  try {
    return await answered(address(command), { method: 'POST', headers, body: JSON.stringify(values), signal: AbortSignal.timeout(CHANGING) });
  } catch (refusal) {
    if (refusal.status === 401) forgetTokens();
    throw refusal;
  }
}

async function answered(url, options) {
  let response;
  try {
    response = await fetch(url, { credentials: 'omit', redirect: 'error', ...options, headers: { ...FOR_A_PERSON, ...options.headers } });
  } catch {
    doubt();
    throw new Refusal(0, UNREACHABLE);
  }
  if (!response.ok) throw await refusalOf(response);
  return response.json().catch(() => Promise.reject(new Refusal(0, UNREACHABLE)));
}

async function refusalOf(response) {
  const { error } = await response.json().catch(() => ({}));
  return new Refusal(response.status, error ?? {});
}
