// The lines of a Job's logs, without a document: how calls are joined, and which lines are seen.

// At most so many lines are kept; the oldest go first.
export const kMostLines = 20000;

// So many last lines of each log are asked for; the next smaller number where traind does not send all at once.
export const kTails = [2000, 300, 40];

// Each call asks again for the lines of so long before the newest one, for the clocks of Workers differ.
const kOverlapMs = 30000;

const kSince = {'1m': 60000, '10m': 600000, '1h': 3600000};

export const levels = ['info', 'warning', 'error'];
export const periods = Object.keys(kSince);

// The query of a call: what the user filters by, and of the lines that are here only the newest again.
export function logQuery(filters, newestAt, time, tail) {
  const query = new URLSearchParams({tail});
  if (filters.rank) query.set('rank', filters.rank);
  if (filters.level && filters.level !== 'info') query.set('level', filters.level);
  if (filters.text) query.set('grep', filters.text);
  const since = Math.max(kSince[filters.since] ? time - kSince[filters.since] : 0, newestAt ? newestAt - kOverlapMs : 0);
  if (since > 0) query.set('since', new Date(since).toISOString());
  return query;
}

const byTime = (a, b) => a.at - b.at || a.attempt - b.attempt || a.rank - b.rank || a.offset - b.offset;

// Keeps the lines of all Ranks in the order of time, each once.
export class LogLines {
  constructor(most = kMostLines) {
    this.most = most;
    this.clear();
  }

  clear() {
    this.lines = [];
    this.seen = new Set();
    this.dropped = 0;
    this.newestAt = 0;
    this.width = 0;
  }

  // Takes the lines of an answer and returns how many were new.
  add(lines) {
    const fresh = lines.filter((line) => !this.seen.has(keyOf(line))).sort(byTime);
    if (!fresh.length) return 0;
    for (const line of fresh) {
      this.seen.add(keyOf(line));
      this.newestAt = Math.max(this.newestAt, line.at);
      this.width = Math.max(this.width, line.text.length);
    }
    const last = this.lines[this.lines.length - 1];
    this.lines.push(...fresh);
    if (last && byTime(last, fresh[0]) > 0) this.lines.sort(byTime);
    this.cut();
    return fresh.length;
  }

  // The keys of lines that go stay known, so that the overlap of the next call does not bring them back.
  cut() {
    const many = this.lines.length - this.most;
    if (many <= 0) return;
    this.lines.splice(0, many);
    this.dropped += many;
  }
}

const keyOf = (line) => `${line.attempt}/${line.rank}/${line.offset}`;

// Rows come and go in blocks, so that a small step of scrolling draws nothing.
const kBlock = 8;

// The rows that a box of `height` pixels shows when it was scrolled by `top`, with some above and below: [first, behind].
export function shownRows(count, top, height, rowHeight) {
  const first = Math.floor(Math.min(count, top / rowHeight) / kBlock) - 1;
  const behind = Math.ceil((top + height) / rowHeight / kBlock) + 1;
  return [Math.max(0, first * kBlock), Math.min(count, behind * kBlock)];
}
