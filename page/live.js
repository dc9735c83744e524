// Keeps a page up to date by a stream of one Job, or by repeated calls. Both go on by themselves after
// traind was away, and both stop when their page is left.

import {connection, eventsPath, getJob, toJob} from './api.js';

const kFirstRetryMs = 500;
const kLongestRetryMs = 8000;

function delay(tries) {
  const ms = Math.min(kLongestRetryMs, kFirstRetryMs * 2 ** tries);
  return ms * (0.75 + Math.random() / 2);
}

const terminal = new Set(['SUCCEEDED', 'FAILED', 'CANCELLED']);

// Calls onJob with each new state of the Job until it is over. Returns a function that ends the stream. While no
// stream can be had, as where too many are open, each attempt to get one is also a call.
export function streamJob(id, onJob) {
  let source = null;
  let timer = 0;
  let tries = 0;
  let closed = false;

  function open() {
    source = new EventSource(eventsPath(id));
    source.onopen = () => {
      tries = 0;
      connection.tell(false);
    };
    source.addEventListener('job', (event) => take(toJob(JSON.parse(event.data))));
    // The browser's own attempts to connect again are not told to us, so they are made here.
    source.onerror = () => {
      source.close();
      if (closed) return;
      timer = setTimeout(open, delay(tries++));
      getJob(id).then(take, (e) => {
        if (e.status === 404) close();
      });
    };
  }

  function take(job) {
    if (closed) return;
    if (terminal.has(job.state)) close();
    onJob(job);
  }

  function close() {
    closed = true;
    clearTimeout(timer);
    if (source) source.close();
  }

  open();
  return close;
}

// Calls `load` now and again `everyMs` after each answer, while somebody looks at the page. Returns a function
// that ends it, with `again()` to load at once.
export function repeat(everyMs, load) {
  let timer = 0;
  let tries = 0;
  let closed = false;
  let running = false;

  async function once() {
    clearTimeout(timer);
    if (closed || running) return;
    running = true;
    let ms = everyMs;
    try {
      await load();
      tries = 0;
    } catch (e) {
      ms = Math.max(ms, delay(tries++));
    }
    running = false;
    if (!closed && !document.hidden) timer = setTimeout(once, ms);
  }

  const shown = () => {
    if (!document.hidden) once();
  };
  document.addEventListener('visibilitychange', shown);
  once();
  const stop = () => {
    closed = true;
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', shown);
  };
  stop.again = once;
  return stop;
}

// Keeps a page up to date by page.load(), as repeat() does, and draws it after each answer. `page.error` is the error of
// the last call, null where it was answered.
export function refresh(page, everyMs) {
  return repeat(everyMs, async () => {
    try {
      await page.load();
      page.error = null;
    } catch (e) {
      page.error = e;
      throw e;
    } finally {
      page.app.redraw();
    }
  });
}
