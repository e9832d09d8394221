// As much of Markdown as reports use, made into elements: headings, paragraphs, lists, tables, blocks of code, code and
// bold within a line. Nothing in the text becomes markup.

import { el } from './dom.js';
import { visible } from './text.js';

/** The text as elements. */
export function markdown(text) {
  const made = el('div', { class: 'markdown' });
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  while (lines.length) made.append(...[part(lines)].filter(Boolean));
  return made;
}

/** Take the first block off the lines. */
function part(lines) {
  const [line] = lines;
  const fence = /^(`{3,})/.exec(line)?.[1];
  const heading = /^(#{1,6}) +(.*)$/.exec(line);
  if (fence) return code(lines, fence);
  if (heading) {
    lines.shift();
    return el(`h${Math.min(6, heading[1].length + 2)}`, {}, ...inline(heading[2]));
  }
  if (/^[*-] /.test(line)) return el('ul', {}, taken(lines, /^[*-] /).map((item) => el('li', {}, ...inline(item.slice(2)))));
  if (line.startsWith('|')) return table(taken(lines, /^\|/));
  if (!line.trim()) {
    lines.shift();
    return null;
  }
  return el('p', {}, ...inline([lines.shift(), ...taken(lines, /^(?![#|`]|[*-] |\s*$)/)].join(' ')));
}

function taken(lines, like) {
  const found = [];
  while (lines.length && like.test(lines[0])) found.push(lines.shift());
  return found;
}

function code(lines, fence) {
  lines.shift();
  const found = [];
  while (lines.length && lines[0] !== fence) found.push(lines.shift());
  lines.shift();
  return el('pre', { class: 'said code', tabindex: 0 }, ...visible(found.join('\n')));
}

function table(rows) {
  const cells = (row) => row.replace(/^\||\|\s*$/g, '').split(/(?<!\\)\|/).map((cell) => cell.trim());
  const [head, , ...rest] = rows;
  return el('div', { class: 'table-frame', tabindex: 0, role: 'region', 'aria-label': 'Table' }, el('table', {},
    el('thead', {}, el('tr', {}, cells(head).map((cell) => el('th', { scope: 'col' }, ...inline(cell))))),
    el('tbody', {}, rest.map((row) => el('tr', {}, cells(row).map((cell) => el('td', {}, ...inline(cell))))))));
}

/** Code, bold and characters with a backslash before them. */
function inline(text) {
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(/(`+) ?(.+?) ?\1|\*\*(.+?)\*\*|\\([\\`*_[\]<>|#~&])/g)) {
    parts.push(...visible(text.slice(from, found.index)));
    if (found[2] !== undefined) parts.push(el('code', {}, ...visible(found[2])));
    else if (found[3] !== undefined) parts.push(el('b', {}, ...visible(found[3])));
    else parts.push(found[4]);
    from = found.index + found[0].length;
  }
  return [...parts, ...visible(text.slice(from))];
}
