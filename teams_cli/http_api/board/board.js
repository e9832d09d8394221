// The page: which team is shown, how the connection is, whether the person may change anything; the rest has its modules.

import { findToken, mayChange, onToken, read, setOwnToken, setToken, tryToken } from './api.js';
import { startAgents } from './agents.js';
import { startComposer } from './composer.js';
import { button, byId, el, setText } from './dom.js';
import { ask, field } from './forms.js';
import { startMessages } from './messages.js';
import { say } from './notices.js';
import { choose, connectionNow, current, hurry, on, refresh } from './state.js';
import { startTasks } from './tasks.js';
import { firstLine } from './text.js';
import { startWaiting } from './waiting.js';

const LOOK_FOR_TEAMS = 3000;
let teams = [];

function start() {
  findToken();
  startTasks();
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
  addEventListener('popstate', () => show(wanted(), false));
  lookForTeams();
}

/** The team that the address names, else the first. */
function wanted() {
  return new URLSearchParams(location.search).get('team') ?? teams[0] ?? '';
}

async function lookForTeams() {
  try {
    teams = (await read('discover-teams')).map(({ name }) => name);
    const name = wanted();
    if (!name) return await none();
    offerTeams(name);
    choose(name);
  } catch (refusal) {
    showProblem(refusal);
    setTimeout(lookForTeams, LOOK_FOR_TEAMS);
  }
}

async function none() {
  byId('banner').hidden = false;
  byId('banner').replaceChildren('There is no team yet. Make one: ', el('code', {}, 'teams spawn-team NAME'));
  connectionText('live', 'Connected');
  setTimeout(lookForTeams, LOOK_FOR_TEAMS);
}

function offerTeams(name) {
  const names = teams.includes(name) ? teams : [name, ...teams];
  byId('team').replaceChildren(...names.map((each) => el('option', { value: each }, each)));
  byId('team').value = name;
}

function show(name, remember = true) {
  if (remember) history.pushState(null, '', `?${new URLSearchParams({ team: name })}`);
  byId('team').value = name;
  document.querySelectorAll('dialog').forEach((open) => open.close());
  choose(name);
  refreshTeams();
}

async function refreshTeams() {
  teams = (await read('discover-teams').catch(() => null))?.map(({ name }) => name) ?? teams;
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
  byId('banner').replaceChildren(el('b', {}, `The server can't be reached${since}.`), ' What you see may be old; the page goes on by itself. ',
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
    setToken('');
    asked.close();
  });
  const asked = ask({
    title: mayChange() ? 'The token' : "Enter the server's token",
    about: el('p', {}, 'Without it the board only shows. ', el('code', {}, 'teams serve'), ' prints it at the end of the address.'),
    inputs: [
      field({ name: 'token', label: "The server's token", kind: 'password', required: !mayChange() }),
      secure ? field({ name: 'own', label: `Your own token in ${current().team.name}`, kind: 'password', hint: 'This team was made with --secure.' }) : '',
      mayChange() ? forget : '',
    ],
    label: 'Use it',
    submit: async ({ token, own }) => {
      if (own) setOwnToken(own);
      if (token) await tryToken(token);
    },
  });
}

start();
