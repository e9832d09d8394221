// The report of the run that made the team.

import { read } from './api.js';
import { timeAgo } from './clock.js';
import { byId, el } from './dom.js';
import { markdown } from './markdown.js';
import { current } from './state.js';

let told = '';

/** Show it as it is now. */
export async function open() {
  told = '';
  await show(current());
}

/** Show it anew when the run went on. */
export async function show(snapshot) {
  const state = snapshot && JSON.stringify([snapshot.team.name, snapshot.run, snapshot.taskCounts]);
  if (!state || state === told) return;
  told = state;
  const run = await read('board/report');
  const head = el('p', { class: 'muted' }, `${run.workflow}, ${run.status}, started `, timeAgo(run.startedAt), run.endedAt ? ', ended ' : '', run.endedAt ? timeAgo(run.endedAt) : '');
  const text = run.markdown ? markdown(run.markdown) : el('p', {}, 'The run continues. Its report comes at the end.');
  byId('view-report').replaceChildren(el('article', { class: 'report', tabindex: 0, 'aria-label': 'Report of the run' }, head, text));
}
