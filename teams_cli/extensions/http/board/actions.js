// Changing something and seeing what came of it.

import { change } from './api.js';
import { refresh } from './state.js';

/** Have the server carry out the command; resolves with its answer once the page shows what it made. */
export async function perform(command, values) {
  const answer = await change(command, values);
  await refresh();
  return answer;
}
