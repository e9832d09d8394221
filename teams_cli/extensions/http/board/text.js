// Text of agents and people, shown as text: what a terminal or a browser would act on is spelt out instead.

import { el } from './dom.js';

// Control characters but line feed and tab, marks of direction, invisible ones, lone surrogates, tags.
const ACTING = new RegExp(
  '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180e\\u200b\\u200c' +
    '\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb\\ud800-\\udfff\\u{e0000}-\\u{e0fff}]',
  'gu',
);
const START = 4000;

const NAMES = (
  'NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US'
).split(' ');

/** `ESC`, as the standard calls it; other characters by their code. */
function spelt(character) {
  const code = character.codePointAt(0);
  if (code < 0x20) return NAMES[code];
  if (code === 0x7f) return 'DEL';
  return code <= 0xffff ? `\\u${code.toString(16).padStart(4, '0')}` : `\\u{${code.toString(16)}}`;
}

function named(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** The text as strings, and elements for the characters that are spelt out. */
export function visible(text) {
  const said = String(text ?? '').replaceAll('\r\n', '\n');
  const parts = [];
  let from = 0;
  for (const found of said.matchAll(ACTING)) {
    parts.push(said.slice(from, found.index));
    parts.push(el('span', { class: 'spelt', title: named(found[0]) }, spelt(found[0])));
    from = found.index + found[0].length;
  }
  parts.push(said.slice(from));
  return parts;
}

/** The text as one string, for labels and announcements. */
export function plain(text) {
  return String(text ?? '').replaceAll('\r\n', '\n').replace(ACTING, (character) => `[${spelt(character)}]`);
}

/** The first line, at most *limit* characters of it, as one string. */
export function firstLine(text, limit = 90) {
  const line = plain(text).trimStart().split('\n', 1)[0];
  return line.length > limit ? `${line.slice(0, limit - 1)}…` : line;
}

/** A block of text with its line breaks; of a long one the beginning, and a button for the rest. */
export function block(text, className = 'said') {
  const said = String(text ?? '');
  const body = el('div', { class: className, dir: 'auto' });
  if (said.length <= START) {
    body.append(...visible(said));
    return body;
  }
  body.append(...visible(said.slice(0, START)), '… ');
  const more = el('button', { type: 'button', class: 'link' }, `Show all ${said.length.toLocaleString('en')} characters`);
  more.addEventListener('click', () => body.replaceChildren(...visible(said)));
  body.append(more);
  return body;
}
