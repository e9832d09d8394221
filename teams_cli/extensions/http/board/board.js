// The page: which team is shown, how the connection is, whether the person may change anything; the rest has its modules.

import { findToken, forgetTokens, mayChange, onToken, read, setOwnToken, tryToken } from './api.js';
import { startAgents } from './agents.js';
import { startComposer } from './composer.js';
import { button, byId, el, setText } from './dom.js';
import { ask, field } from './forms.js';
import { startMessages } from './messages.js';
import { say } from './notices.js';
import { startCourse } from './course.js';
import { fromAddress } from './filters.js';
import { startKeys } from './keys.js';
import { openPlace } from './open_place.js';
import { onReturn, said } from './place.js';
import { choose, connectionNow, current, hurry, on, refresh } from './state.js';
import { startSearch } from './search.js';
import { startTasks } from './tasks.js';
import { firstLine } from './text.js';
import { startViews } from './views.js';
import { startWaiting } from './waiting.js';

const LOOK_FOR_TEAMS = 3000;
let teams = [];

function start() {
  findToken();
  // A new link opened in the same tab changes only the hash: what was being typed stays.
  window.addEventListener('hashchange', () => location.hash.startsWith('#token=') && findToken());
  startCourse();
  startTasks();
  startViews();
  startKeys();
  startWaiting();
  startAgents();
  startComposer();
  startMessages();
  onToken(showAccess);
  showAccess();
  byId('access').addEventListener('click', askToken);
  byId('team').addEventListener('change', (event) => show(event.target.value));
  on('snapshot', showTeam);
  on('connection', showConnection);
  on('problem', showProblem);
  setInterval(() => connectionNow().state === 'waiting' && showConnection(), 1000);
  onReturn(() => {
    if (wanted() !== current()?.team.name) show(wanted(), false);
    fromAddress();
    openPlace();
  });
  if (said('team')) begin(said('team'));
  lookForTeams();
}

/** The team that the address names, else the first. */
function wanted() {
  return said('team') || teams.find(isAlive)?.name || teams[0]?.name || '';
}

/** Whether somebody may be at work in it: not a finished run, not closed. */
function isAlive({ state, run }) {
  return state === 'active' && (!run || run.status === 'running');
}

/** Show that team, and then what the address says is open in it. */
function begin(name) {
  choose(name);
  const opened = () => {
    if (opened.done || !current()) return;
    opened.done = true;
    openPlace();
    startSearch();
  };
  on('snapshot', opened);
}

async function lookForTeams() {
  try {
    teams = await read('board/teams');
    const name = wanted();
    if (!name) return await none();
    offerTeams(name);
    if (!said('team')) begin(name);
  } catch (refusal) {
    showProblem(refusal);
    setTimeout(lookForTeams, LOOK_FOR_TEAMS);
  }
}

async function none() {
  byId('banner').hidden = false;
  byId('banner').replaceChildren('There is no team yet. Create one: ', el('code', {}, 'teams spawn-team NAME'));
  connectionText('live', 'Connected');
  setTimeout(lookForTeams, LOOK_FOR_TEAMS);
}

/** Offer the teams, those that are alive apart from runs that are over and teams that are closed. */
function offerTeams(name) {
  const all = teams.some((team) => team.name === name) ? teams : [{ name, state: 'active' }, ...teams];
  const groups = Map.groupBy(all, (team) => (isAlive(team) ? 'Active' : team.run ? 'Finished runs' : 'Closed'));
  const made = ['Active', 'Finished runs', 'Closed'].filter((label) => groups.has(label));
  const option = (team) => el('option', { value: team.name }, team.run && !isAlive(team) ? `${team.name} (${team.run.status})` : team.name);
  byId('team').replaceChildren(...made.map((label) => el('optgroup', { label }, ...groups.get(label).map(option))));
  byId('team').value = name;
}

function show(name, remember = true) {
  if (remember) history.pushState(null, '', `?${new URLSearchParams({ team: name })}`);
  fromAddress();
  byId('team').value = name;
  document.querySelectorAll('dialog').forEach((open) => open.close());
  choose(name);
  refreshTeams();
}

async function refreshTeams() {
  teams = (await read('board/teams').catch(() => null)) ?? teams;
  offerTeams(byId('team').value);
}

byId('team').addEventListener('focus', refreshTeams);

function showTeam({ team }) {
  setText(byId('about'), [team.description && firstLine(team.description), team.leader && `led by ${team.leader}`, team.state === 'active' ? '' : team.state].filter(Boolean).join(' · '));
  if (connectionNow().state === 'live') byId('banner').hidden = true;
}

function showProblem(refusal) {
  if (refusal.status === 0 && current()) return; // the connection says so
  byId('banner').hidden = false;
  byId('banner').replaceChildren(el('b', {}, refusal.message), ' ', refusal.hint ?? '');
}

function connectionText(state, text) {
  byId('connection').dataset.state = state;
  setText(byId('connection-text'), text);
}

let lost = false;

function showConnection() {
  const { state, retryAt, lostAt } = connectionNow();
  if (state === 'live') {
    connectionText('live', 'Live');
    byId('banner').hidden = true;
    if (lost) say('Connected again');
    lost = false;
    return;
  }
  connectionText('waiting', `Reconnecting in ${Math.max(0, Math.ceil((retryAt - Date.now()) / 1000))} s`);
  if (lost) return;
  lost = true;
  say('The connection to the server is lost');
  byId('banner').hidden = false;
  const since = lostAt ? ` since ${new Date(lostAt).toLocaleTimeString()}` : '';
  byId('banner').replaceChildren(el('b', {}, `The server can't be reached${since}.`), ' What you see may be old. The page reconnects by itself. ',
    button('Try now', hurry, { class: 'quiet' }));
}

function showAccess() {
  document.body.classList.toggle('read-only', !mayChange());
  setText(byId('access'), mayChange() ? 'Token' : 'Read only: enter token');
  if (current()) refresh();
}

function askToken() {
  const secure = current()?.team.secure;
  const forget = button('Forget the token', () => {
    forgetTokens();
    asked.close();
  });
  const asked = ask({
    title: mayChange() ? 'The token' : "Enter the server's token",
    about: el('p', {}, 'Without the token you can only read. ', el('code', {}, 'teams serve'), ' prints it at the end of the address.'),
    inputs: [
      field({ name: 'token', label: "The server's token", kind: 'password', required: !mayChange() }),
      secure ? field({ name: 'own', label: `Your own token in ${current().team.name}`, kind: 'password', hint: 'This team was made with --secure.' }) : '',
      mayChange() ? forget : '',
    ],
    label: 'Use the token',
    submit: async ({ token, own }) => {
      if (token) await tryToken(token);
      if (own) setOwnToken(own);
    },
  });
}

start();
