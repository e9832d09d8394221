// The entries of the history as sentences: what somebody did, and to what.

import { firstLine } from './text.js';

const DEEDS = {
  'agent given back': 'gave {agent} back',
  'agent paused': 'paused {agent}',
  'agent restarted': 'restarted {agent}',
  'agent resumed': 'resumed {agent}',
  'agent started': 'started {agent}: {about}',
  'agent stopped': 'stopped {agent}',
  'agent taken over': 'took over {agent}',
  'check failed': 'failed the check of {task}',
  'claim expired': 'ended the claim of {owner} on {task}: {reason}',
  'landing asked for': 'queued {landing} of {task}',
  'member joined': 'joined as {role}',
  'member left': 'left',
  'message handled': 'handled {message}',
  'message sent': 'wrote {message} to {to}',
  'permission asked': 'asked for permission to {operation}: {question}',
  'plan approved': 'approved {plan}',
  'plan proposed': 'proposed {plan} for {task}',
  'plan rejected': 'rejected {plan}',
  'question answered': 'answered {question}',
  'question asked': 'asked {question} of {to}',
  'result amended': 'changed the result of {task}',
  'role defined': 'defined the role {role}',
  'session completed': 'finished',
  'session failed': 'failed',
  'session lost': 'was lost',
  'session paused': 'was paused: {reason}',
  'session stopped': 'was stopped',
  'setting changed': 'set {key} to {value}',
  'shutdown approved': 'approved {shutdown}',
  'shutdown rejected': 'declined {shutdown}',
  'shutdown requested': 'asked {agent} to shut down: {shutdown}',
  'status announced': 'announced: {status}',
  'task cancelled': 'cancelled {task}',
  'task claimed': 'claimed {task}',
  'task completed': 'completed {task}',
  'task created': 'created {task}',
  'task edited': 'changed {changed} of {task}',
  'task failed': 'failed {task}: {reason}',
  'task handed over': 'handed over {task}',
  'task in review': 'submitted {task} for review',
  'task noted': 'added a note to {task}',
  'task released': 'released {task}',
  'task reopened': 'reopened {task}',
  'team closed': 'closed the team',
  'team created': 'created the team',
  'team handed over': 'handed the team over to {to}',
  'team restored': 'reopened the team',
  'worktree merged': 'merged the work of {agent}',
  'worktree removed': 'removed the worktree of {agent}',
};
const UNTOLD = new Set(['at', 'actor', 'what', 'title', 'claim', 'generation']);

/** The parts of what an entry says behind who did it: texts, and `{ task }` where it names one; what it does not say is left out. */
export function deed(entry, titles) {
  const left = new Map(Object.entries(entry).filter(([name]) => !UNTOLD.has(name)));
  const words = DEEDS[entry.what] ?? entry.what + [...left.keys()].map((name) => ` {${name}}`).join('');
  const title = entry.title ?? titles.get(entry.task);
  const said = [];
  words.split(/[{}]/).forEach((part, place) => {
    if (place % 2 === 0) said.push(part);
    else if (left.has(part)) said.push(...take(left, part, title));
    else said.push(said.pop().replace(/(:| \w+)? $/, ''));
  });
  const rest = [...left.keys()].map((name) => take(left, name, title));
  return rest.length ? [...said, ' (', ...rest.flatMap((parts, place) => (place ? [', ', ...parts] : parts)), ')'] : said;
}

function take(left, name, title) {
  const value = left.get(name);
  left.delete(name);
  if (name === 'task') return [{ task: value }, title ? ` ${firstLine(title, 80)}` : ''];
  if (value === true) return [name];
  const each = Array.isArray(value) ? value : [value];
  return [each.map((part) => (part === 'human' ? 'you' : String(part))).join(', ')];
}
