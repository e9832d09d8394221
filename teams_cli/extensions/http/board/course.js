// The line on top: how far the work is, where the tasks are, how fast it goes and when it may be done. Each part shows
// the tasks that it counts.

import { button, byId, el, setText } from './dom.js';
import { choose, filters, onFilter } from './filters.js';
import { current, on } from './state.js';

const PARTS = [
  ['done', ({ done, total }) => `${done} of ${total} done`],
  ['working', ({ inProgress }) => `${inProgress} in progress`],
  ['review', ({ inReview }) => `${inReview} in review`],
  ['ready', ({ ready }) => `${ready} ready`],
  ['blocked', ({ blocked }) => `${blocked} blocked`],
  ['failed', ({ failed, heldUp }) => [failed || !heldUp ? `${failed} failed` : '', heldUp ? `${failed ? (failed === 1 ? 'blocks' : 'block') : 'cancelled tasks block'} ${heldUp}` : ''].filter(Boolean).join(', ')],
];
const made = new Map();

export function startCourse() {
  const bar = el('progress', { id: 'course-bar', max: 100, value: 0, 'aria-label': 'Share of the tasks that are done' });
  byId('course').append(bar, el('b', { id: 'course-percent' }));
  for (const [name] of PARTS) byId('course').append(part(name));
  byId('course').append(el('span', { id: 'course-pace' }), part('critical', 'course-end'));
  on('snapshot', show);
  onFilter(() => current() && show(current()));
}

function part(name, id = `course-${name}`) {
  const node = button('', () => choose({ only: filters().only === name ? '' : name }), { id, class: `part ${name}`, 'aria-pressed': 'false' });
  made.set(name, node);
  return node;
}

function show({ course }) {
  byId('course').hidden = course.total + course.cancelled === 0;
  byId('course-bar').value = course.percent;
  setText(byId('course-percent'), `${course.percent} %`);
  for (const [name, words] of PARTS) setText(made.get(name), words(course));
  made.get('review').hidden = course.inReview === 0 && filters().only !== 'review';
  made.get('failed').classList.toggle('some', course.failed + course.heldUp > 0);
  for (const [name, node] of made) node.setAttribute('aria-pressed', String(filters().only === name));
  showEnd(course);
}

function showEnd({ pace, estimate, noEstimate, criticalPath }) {
  const per = pace && (pace.perHour >= 60 ? `${round(pace.perHour / 60)} a minute` : `${round(pace.perHour)} an hour`);
  setText(byId('course-pace'), pace ? `${per} lately` : '');
  byId('course-pace').title = pace ? `${pace.completed} tasks were completed in the last ${span(pace.withinSeconds)}` : '';
  const end = made.get('critical');
  const { fromSeconds, toSeconds, basis } = estimate ?? {};
  setText(end, estimate ? `about ${range(fromSeconds, toSeconds)} left` : `no estimate: ${noEstimate}`);
  end.title = [basis, criticalPath.length && `longest chain of unfinished tasks, except tasks blocked by a failed or cancelled one: ${criticalPath.join(' → ')}`].filter(Boolean).join('; ');
  end.disabled = criticalPath.length === 0 && filters().only !== 'critical';
}

function round(number) {
  return number >= 10 ? String(Math.round(number)) : String(Math.round(number * 10) / 10);
}

/** `9–15 min`, `50 s – 2 min`. */
function range(from, to) {
  const [first, last] = [span(from), span(to)];
  if (first === last) return first;
  const [number, unit] = first.split(' ');
  return last.endsWith(` ${unit}`) ? `${number}–${last}` : `${first} – ${last}`;
}

/** A length of time in words: `40 s`, `12 min`, `3 h`, `2 days`. */
export function span(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 129_600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}
