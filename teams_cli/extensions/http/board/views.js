// The ways to look at the work: as columns, as a graph, over time, as what happened; pages, a run's report, landings,
// checks, reviews, what it took. All but the first are loaded when they are first looked at; those of which the team has
// nothing are not offered.

import { byId, el } from './dom.js';
import { attempt } from './notices.js';
import { go, onReturn, said } from './place.js';
import { on } from './state.js';

export const VIEWS = [
  { id: 'board', label: 'Board', load: () => ({}) },
  { id: 'graph', label: 'Graph', load: () => import('./graph.js') },
  { id: 'timeline', label: 'Timeline', load: () => import('./timeline.js') },
  { id: 'activity', label: 'Activity', load: () => import('./activity.js') },
  { id: 'pages', label: 'Pages', load: () => import('./pages.js'), has: ({ pages }) => pages.length > 0 },
  { id: 'report', label: 'Report', load: () => import('./report.js'), has: ({ run }) => Boolean(run) },
  { id: 'landings', label: 'Landings', load: () => import('./landings.js'), has: ({ landings }) => landings.length > 0 },
  { id: 'checks', label: 'Checks', load: () => import('./checks.js'), has: ({ tasks }) => tasks.some(({ check, checked }) => check || checked) },
  { id: 'reviews', label: 'Reviews', load: () => import('./reviews.js'), has: ({ tasks }) => tasks.some(({ reviewBy, reviewed }) => reviewBy || reviewed) },
  { id: 'usage', label: 'Usage', load: () => import('./usage.js'), has: ({ agents, settings }) => Boolean(settings.budget) || agents.some(({ session }) => session) },
];
const loaded = new Map();
let shown = 'board';

export function startViews() {
  byId('views').append(...VIEWS.map(({ id, label }) => el('button', {
    type: 'button', role: 'tab', id: `tab-${id}`, 'aria-controls': `view-${id}`, 'aria-selected': 'false', onclick: () => showView(id),
  }, label)));
  offer(() => false);
  byId('views').addEventListener('keydown', goAbout);
  byId('large').addEventListener('click', enlarge);
  onReturn(() => showView(said('view') || 'board', false));
  on('snapshot', (snapshot) => {
    offer((view) => view.has(snapshot));
    if (shown !== 'board' && byId(`tab-${shown}`).hidden) showView('board');
    loaded.get(shown)?.show?.(snapshot);
  });
  showView(VIEWS.some(({ id }) => id === said('view')) ? said('view') : 'board', false);
}

/** Give the tasks the whole window, but for how much waits for the person; or take it back. */
export function enlarge() {
  const large = document.body.classList.toggle('large');
  byId('large').setAttribute('aria-pressed', String(large));
}

/** Offer the views of which there is something. */
function offer(has) {
  for (const view of VIEWS) if (view.has) byId(`tab-${view.id}`).hidden = !has(view);
}

/** Show the tasks in that way. */
export async function showView(id, remember = true) {
  shown = id;
  if (remember) go({ view: id === 'board' ? '' : id });
  for (const { id: each } of VIEWS) {
    const tab = byId(`tab-${each}`);
    tab.setAttribute('aria-selected', String(each === id));
    tab.tabIndex = each === id ? 0 : -1;
    byId(`view-${each}`).hidden = each !== id;
  }
  const { load } = VIEWS.find((view) => view.id === id);
  await attempt(byId(`view-${id}`), async () => {
    if (!loaded.has(id)) loaded.set(id, await load());
    if (shown === id) await loaded.get(id).open?.();
  });
}

function goAbout(event) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const tabs = VIEWS.map(({ id }) => byId(`tab-${id}`)).filter((tab) => !tab.hidden);
  const next = tabs[(tabs.indexOf(document.activeElement) + by + tabs.length) % tabs.length];
  next.focus();
  next.click();
}
