// What a task can be, in words, and what the person does to move it there.

import { el } from './dom.js';
import { ask, field } from './forms.js';
import { firstLine } from './text.js';
import { perform } from './actions.js';
import { offerUndo } from './undo.js';

export const STATUSES = ['pending', 'in_progress', 'in_review', 'completed', 'failed', 'cancelled'];
export const WORDS = {
  pending: 'Pending',
  in_progress: 'In progress',
  in_review: 'In review',
  completed: 'Completed',
  failed: 'Failed',
  cancelled: 'Cancelled',
};
export const FINISHED = new Set(['completed', 'failed', 'cancelled']);
const RANK = { high: 0, normal: 1, low: 2 };

/** The number in `task-7`; 0 in `task-abc123`, as other programs call theirs. */
export function numberOf(id) {
  return Number(id.slice(id.indexOf('-') + 1)) || 0;
}

/** The tasks of one status in the order in which they matter. */
export function ordered(status, tasks) {
  const found = tasks.filter((task) => task.status === status);
  if (FINISHED.has(status)) return found.sort((a, b) => ended(b).localeCompare(ended(a)) || numberOf(b.id) - numberOf(a.id));
  const rank = (task) => (task.blocked ? 10 : 0) + RANK[task.priority];
  return found.sort((a, b) => rank(a) - rank(b) || numberOf(a.id) - numberOf(b.id));
}

function ended(task) {
  return task.completedAt ?? task.updatedAt ?? '';
}

/** What moving a task to a status is called. */
export function moveLabel(task, status) {
  if (status === 'cancelled') return 'Cancel';
  if (status === 'pending') return task.status === 'in_progress' ? 'Release' : 'Open again';
  return `Move to ${WORDS[status]}`;
}

/** Move the task there; what an agent is working on only after the person has confirmed it. */
export async function move(task, status) {
  if (task.status === 'in_progress' && status === 'pending') return confirmRelease(task);
  if (task.status === 'completed') return confirmAgain(task);
  await perform('update-task', { task: task.id, status });
  if (status === 'cancelled') offerUndo(`${task.id} is cancelled.`, () => perform('update-task', { task: task.id, status: task.status }));
  return true;
}

/** Whether the person confirmed that what is done is to be done again. */
function confirmAgain(task) {
  const about = el('p', {}, 'It is completed. If you open it again, it can be claimed again, and tasks that it blocks are blocked again.');
  return confirmed({ title: `Open ${task.id} again: ${firstLine(task.title, 60)}`, about, label: 'Open again', submit: () => perform('update-task', { task: task.id, status: 'pending' }) });
}

/** Ask; whether the person did what was offered. */
function confirmed({ submit, ...question }) {
  return new Promise((resolve) => {
    const asked = ask({
      ...question,
      submit: async (values) => {
        await submit(values);
        resolve(true);
      },
    });
    asked.addEventListener('close', () => resolve(false));
  });
}

/** Whether the person confirmed, once that is settled. */
function confirmRelease(task) {
  const about = el('p', {}, `${task.owner} is working on it. The claim ends, and a later result is refused.`);
  return confirmed({
    title: `Release ${task.id}: ${firstLine(task.title, 60)}`,
    about,
    inputs: [field({ name: 'reason', label: 'Reason (optional)' })],
    label: 'Release',
    danger: true,
    submit: ({ reason }) => perform('release-task', { task: task.id, ...(reason && { reason }) }),
  });
}
