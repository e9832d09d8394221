// Dragging cards between columns by mouse or pen. Fingers scroll, and move tasks by the menu of the card.

const START = 5;
const EDGE = 40;

/** Let cards be dragged to the columns that `mayGo(id)` names; `drop(id, status)` is called for a drop there. */
export function dragCards(board, { mayGo, drop }) {
  board.addEventListener('pointerdown', (event) => {
    const card = event.target.closest('.card');
    const free = event.button === 0 && event.isPrimary && event.pointerType !== 'touch';
    if (!card || !free || event.target.closest('.chip, .card-menu')) return;
    new Drag(board, card, event, mayGo(card.dataset.task), drop);
  });
}

class Drag {
  constructor(board, card, event, allowed, drop) {
    Object.assign(this, { board, card, allowed, drop, from: { x: event.clientX, y: event.clientY } });
    this.id = card.dataset.task;
    this.listening = new AbortController();
    const { signal } = this.listening;
    addEventListener('pointermove', (moved) => this.moved(moved), { signal });
    addEventListener('pointerup', (up) => this.up(up), { signal });
    addEventListener('pointercancel', () => this.end(), { signal });
    addEventListener('keydown', (pressed) => this.pressed(pressed), { signal, capture: true });
    addEventListener('blur', () => this.end(), { signal });
  }

  moved(event) {
    const [x, y] = [event.clientX - this.from.x, event.clientY - this.from.y];
    if (!this.ghost && Math.hypot(x, y) < START) return;
    if (!this.ghost) this.begin();
    this.ghost.style.transform = `translate(${x}px, ${y}px)`;
    this.over(event);
    this.scroll(event.clientX);
  }

  begin() {
    const at = this.card.getBoundingClientRect();
    this.ghost = this.card.cloneNode(true);
    this.ghost.removeAttribute('id');
    this.ghost.setAttribute('aria-hidden', 'true');
    this.ghost.classList.add('ghost');
    Object.assign(this.ghost.style, { left: `${at.left}px`, top: `${at.top}px`, width: `${at.width}px` });
    document.body.append(this.ghost);
    document.body.classList.add('dragging');
    this.card.classList.add('dragged');
    for (const column of this.board.children) {
      column.classList.add(this.allowed.includes(column.dataset.status) ? 'may-drop' : 'may-not-drop');
    }
  }

  over(event) {
    const under = document.elementFromPoint(event.clientX, event.clientY)?.closest('.column');
    this.target = under?.classList.contains('may-drop') ? under : null;
    for (const column of this.board.children) column.classList.toggle('drop-here', column === this.target);
  }

  /** Near an edge the columns scroll along. */
  scroll(x) {
    const { left, right } = this.board.getBoundingClientRect();
    if (x < left + EDGE) this.board.scrollLeft -= 12;
    else if (x > right - EDGE) this.board.scrollLeft += 12;
  }

  up(event) {
    if (this.ghost) this.over(event);
    const [dragged, target] = [Boolean(this.ghost), this.target];
    this.end();
    if (!dragged) return;
    addEventListener('click', swallow, { capture: true, once: true }); // the drop is no click on the card
    setTimeout(() => removeEventListener('click', swallow, { capture: true }));
    if (target) this.drop(this.id, target.dataset.status);
  }

  pressed(event) {
    if (event.key !== 'Escape' || !this.ghost) return;
    event.preventDefault();
    this.end();
  }

  end() {
    this.listening.abort();
    this.ghost?.remove();
    this.card.classList.remove('dragged');
    document.body.classList.remove('dragging');
    for (const column of this.board.children) column.classList.remove('may-drop', 'may-not-drop', 'drop-here');
  }
}

function swallow(event) {
  event.stopPropagation();
  event.preventDefault();
}
