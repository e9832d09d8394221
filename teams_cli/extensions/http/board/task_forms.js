// Creating a task, and giving one to an agent.

import { el } from './dom.js';
import { ask, field } from './forms.js';
import { perform } from './actions.js';
import { current } from './state.js';
import { firstLine } from './text.js';

export const PRIORITIES = [['high', 'High'], ['normal', 'Normal'], ['low', 'Low']];

/** The ids or words in a line, divided by blanks or commas. */
export function wordsOf(line) {
  return line.split(/[\s,]+/).filter(Boolean);
}

/** The fields that a task is created with and that can be edited, beside its texts. */
export const editable = (task = {}) => [
  field({ name: 'priority', label: 'Priority', kind: 'select', options: PRIORITIES, value: task.priority ?? 'normal' }),
  field({ name: 'check', label: 'Check', kind: /[\r\n]/.test(task.check) ? 'area' : 'text', class: 'code', placeholder: 'pytest -q', hint: 'A command that must pass before the task is completed.', value: task.check ?? '' }),
  field({ name: 'reviewBy', label: 'Reviewed by', placeholder: 'an agent, a role, human', value: task.reviewBy ?? '' }),
];

export function createTask() {
  ask({
    title: 'New task',
    label: 'Create task',
    inputs: [
      field({ name: 'title', label: 'Title', required: true, maxlength: 500 }),
      field({ name: 'description', label: 'Description', kind: 'area', rows: 4 }),
      el('div', { class: 'field-row' },
        ...editable(),
        field({ name: 'blockedBy', label: 'Blocked by', placeholder: 'task-3 task-4' }),
        field({ name: 'require', label: 'Required skills', placeholder: 'security-review' })),
      field({ name: 'run', label: 'Shell command (optional)', hint: 'For workers without a model: the command that does the task.', class: 'code' }),
      field({ name: 'planRequired', label: 'Require an approved plan', kind: 'check' }),
    ],
    submit: ({ blockedBy, require, ...said }) => {
      const given = Object.fromEntries(Object.entries(said).filter(([, value]) => value));
      return perform('create-task', { ...given, blockedBy: wordsOf(blockedBy), require: wordsOf(require) });
    },
  });
}

export function assign(task) {
  const names = current().agents.filter((agent) => agent.state !== 'stopped' && agent.name !== current().team.leader);
  ask({
    title: `Assign ${task.id}`,
    about: el('p', {}, firstLine(task.title)),
    inputs: [
      field({
        name: 'owner',
        label: 'Agent',
        kind: 'select',
        options: names.map(({ name, state }) => [name, `${name} (${state})`]),
        required: true,
      }),
    ],
    label: 'Assign',
    submit: ({ owner }) => perform('update-task', { task: task.id, owner }),
  });
}
