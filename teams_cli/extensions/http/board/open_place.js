// Opening what the address says is open: a task, a message, a question, an agent.

import { openAgent } from './agent_dialog.js';
import { arriveAt, byId } from './dom.js';
import { showMessage } from './messages.js';
import { said } from './place.js';
import { openTask } from './task_dialog.js';

/** Open it, once the page shows the team. */
export function openPlace() {
  if (said('task')) openTask(said('task'));
  if (said('agent')) openAgent(said('agent'));
  if (said('message')) showMessage(said('message'));
  if (said('question')) showWaiting(said('question'));
}

function showWaiting(id) {
  const node = document.querySelector(`[data-ask="${CSS.escape(id)}"]`);
  if (!node) return;
  node.scrollIntoView({ block: 'center' });
  node.tabIndex = -1;
  arriveAt(node, node);
  byId('waiting').classList.remove('nothing');
}
