// Building and updating the page. Text always becomes text nodes, never markup.

/** An element with attributes (true sets, false, null and undefined leave out) and children. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  setAttributes(node, attributes);
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
}

/** A button with what it does. */
export function button(label, does, attributes = {}) {
  return el('button', { type: 'button', onclick: does, ...attributes }, label);
}

const SVG = 'http://www.w3.org/2000/svg';

/** A drawing of 16 by 16, for the eye only. */
export function icon(path) {
  const drawing = document.createElementNS(SVG, 'svg');
  drawing.setAttribute('viewBox', '0 0 16 16');
  drawing.setAttribute('aria-hidden', 'true');
  drawing.setAttribute('class', 'icon');
  const line = document.createElementNS(SVG, 'path');
  line.setAttribute('d', path);
  drawing.append(line);
  return drawing;
}

export function byId(id) {
  return document.getElementById(id);
}

/** Set the text if it is another: a live region or a selection is not disturbed for nothing. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Make the children of *parent* those of *items*, in their order: the node of a key stays the same, and only that of an
 * item that changed is filled anew. *nodes* may be shared by several parents, for items that move between them.
 */
export function keyed(parent, items, { key, create, fill, nodes = own(parent) }) {
  let place = parent.firstElementChild;
  for (const item of items) {
    const id = key(item);
    if (!nodes.has(id)) nodes.set(id, create(item));
    const node = nodes.get(id);
    refill(node, item, fill);
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  while (place) {
    const next = place.nextElementSibling;
    place.remove();
    place = next;
  }
  if (nodes === parent.ownNodes) forget(nodes);
}

function own(parent) {
  parent.ownNodes ??= new Map();
  return parent.ownNodes;
}

function refill(node, item, fill) {
  const said = JSON.stringify(item);
  if (node.filledWith === said) return;
  node.filledWith = said;
  fill(node, item);
}

/** Drop the nodes that are on no page any more. */
export function forget(nodes) {
  for (const [id, node] of nodes) if (!node.isConnected) nodes.delete(id);
}

/** Run *work*, which may move nodes about, and give the focus back to who had it. */
export function keepingFocus(work) {
  const active = document.activeElement;
  work();
  if (active && active !== document.body && active !== document.activeElement && active.isConnected) {
    active.focus({ preventScroll: true });
  }
}

/** What finds the node, or its successor after the page was filled anew. */
export function wayTo(node) {
  const label = node.getAttribute('aria-label');
  const card = node.closest('.card');
  if (label) return `[aria-label="${CSS.escape(label)}"]`;
  if (card) return `#${card.id} .open`;
  return node.id ? `#${node.id}` : null;
}

/** Give the focus back to who had it before something opened, if nobody has it now. */
export function giveBack(way) {
  if (way && document.activeElement === document.body) document.querySelector(way)?.focus();
}

/** Give the focus to *target*, and show that *node* is where one came to, also after a click, until one leaves. */
export function arriveAt(node, target) {
  target.focus();
  node.classList.add('arrived');
  target.addEventListener('blur', () => node.classList.remove('arrived'), { once: true });
}
