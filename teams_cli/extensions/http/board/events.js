// The stream of changes: read for ever, taken up where it broke off, with growing pauses while the server is away.

import { address, credentials, doubt } from './api.js';

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;
const SILENCE = 40_000; // the server says something every 15 seconds

/**
 * Follow the changes of the team. `changed()` is called for each, `opened()` whenever the stream begins or goes on, and
 * `told(state, milliseconds)` with "live", or "waiting" and how long until the next try.
 */
export class Events {
  constructor({ changed, opened, told }) {
    Object.assign(this, { changed, opened, told });
    this.position = null;
    this.running = null;
    this.live = false;
  }

  /** Begin after *position*; an earlier stream ends. */
  start(position) {
    this.stop();
    if (position !== undefined && position !== null) this.position = String(position);
    this.running = new AbortController();
    this.run(this.running);
  }

  stop() {
    this.running?.abort();
    this.running = null;
  }

  /** Do not wait for the next try. */
  hurry() {
    this.wake?.();
  }

  async run(running) {
    let pause = FIRST_PAUSE;
    while (!running.signal.aborted) {
      const opened = await this.follow(running.signal).catch(() => false);
      if (running.signal.aborted) return;
      pause = opened ? FIRST_PAUSE : Math.min(pause * 1.7, LONGEST_PAUSE);
      this.told('waiting', pause);
      await this.rest(pause, running.signal);
    }
  }

  rest(pause, signal) {
    return new Promise((resolve) => {
      this.wake = resolve;
      setTimeout(resolve, pause);
      signal.addEventListener('abort', resolve, { once: true });
    });
  }

  /** Read one stream to its end; whether there was one. */
  async follow(outer) {
    const connection = new AbortController();
    const end = () => connection.abort();
    outer.addEventListener('abort', end, { once: true });
    let quiet = setTimeout(end, SILENCE);
    let open = false;
    try {
      const response = await fetch(address('events'), await this.options(connection.signal));
      if (!response.ok) return false;
      open = this.live = true;
      this.told('live', 0);
      this.opened();
      const text = response.body.pipeThrough(new TextDecoderStream());
      const parser = new Parser((event) => this.take(event));
      for await (const piece of pieces(text)) {
        clearTimeout(quiet);
        quiet = setTimeout(end, SILENCE);
        parser.feed(piece);
      }
    } catch {
      return open;
    } finally {
      this.live = false;
      doubt();
      clearTimeout(quiet);
      outer.removeEventListener('abort', end);
    }
    return open;
  }

  async options(signal) {
    const headers = { Accept: 'text/event-stream', ...(await credentials()) };
    if (this.position !== null) headers['Last-Event-ID'] = this.position;
    return { headers, signal, cache: 'no-store', credentials: 'omit' };
  }

  take({ type, id }) {
    if (type === 'reset') this.position = null;
    else if (id !== null) this.position = id;
    this.changed();
  }
}

async function* pieces(stream) {
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

/** Cuts a stream of text into events, as the HTML standard has it; what they say is fetched, so the data is dropped. */
class Parser {
  constructor(emit) {
    this.emit = emit;
    this.rest = '';
    this.clear();
  }

  clear() {
    this.event = { type: 'message', id: null };
    this.some = false;
  }

  feed(text) {
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop();
    lines.forEach((line) => this.line(line));
  }

  line(line) {
    if (line === '') {
      if (this.some) this.emit(this.event);
      this.clear();
      return;
    }
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (field === 'event') this.event.type = value;
    if (field === 'id') this.event.id = value;
    if (field === 'data') this.some = true; // the first thing said is when to try again, and no event
  }
}
