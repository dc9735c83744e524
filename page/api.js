// The calls to traind. Answers are made uniform here, so that no other file knows how JSON was written.

// An answer that is an error: `status` is that of HTTP, 0 where nobody answered.
export class ApiError extends Error {
  constructor(status, code, message, details = []) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

const kTimeoutMs = 15000;

// Whether traind answers. Every call and stream tells it; the shell shows it.
export const connection = {
  lost: false,
  since: 0,
  listeners: new Set(),
  tell(lost) {
    if (lost === this.lost) return;
    this.lost = lost;
    this.since = Date.now();
    for (const listener of this.listeners) listener(lost);
  },
};

// Whether traind wants a token. The shell asks for it.
export const session = {
  needed: false,
  listeners: new Set(),
  tell(needed) {
    if (needed === this.needed) return;
    this.needed = needed;
    for (const listener of this.listeners) listener(needed);
  },
};

// Leaves the token with the browser, where no script reads it; throws ApiError if traind refuses it.
export async function signIn(token) {
  await call('POST', '/session', token, 'text/plain');
  sessionStorage.setItem('signed-in', 'yes');
  session.tell(false);
}

export async function signOut() {
  await call('DELETE', '/session');
  sessionStorage.removeItem('signed-in');
  session.tell(true);
}

export function isSignedIn() {
  return sessionStorage.getItem('signed-in') === 'yes';
}

async function call(method, path, body, type = 'application/json') {
  let response;
  let text;
  try {
    response = await fetch(path, {
      method,
      headers: body === undefined ? {} : {'Content-Type': type},
      body: body === undefined || type !== 'application/json' ? body : JSON.stringify(body),
      signal: AbortSignal.timeout(kTimeoutMs),
    });
    text = await response.text();
  } catch (e) {
    connection.tell(true);
    throw new ApiError(0, 'UNAVAILABLE', 'traind cannot be reached');
  }
  connection.tell(false);
  noteClock(response.headers.get('Date'));
  let json = null;
  try {
    json = text ? JSON.parse(text) : null;
  } catch (e) {
    if (response.ok) throw new ApiError(response.status, 'INTERNAL', `the answer to ${path} is not JSON`);
  }
  if (response.status === 401 && path !== '/session') session.tell(true);
  if (response.ok) return json;
  const error = json && (json.error || json);
  throw new ApiError(
    response.status,
    (error && (error.status || error.code)) || '',
    (error && error.message) || `${response.status} ${response.statusText}`,
    (error && error.details) || [],
  );
}

// ---- The clock of the daemon ------------------------------------------------

let clockAhead = 0;
let clockExact = false;

// Deadlines are the daemon's time; this machine's clock may differ.
export function now() {
  return Date.now() + clockAhead;
}

function noteClock(date) {
  if (!date || clockExact) return;
  const ahead = Date.parse(date) + 500 - Date.now();
  // The header has whole seconds.
  clockAhead = Math.abs(ahead) < 1500 ? 0 : ahead;
}

function noteRemaining(job) {
  if (job.remaining_s === null || job.deadline === null || job.remaining_s <= 0) return;
  clockAhead = job.deadline - job.remaining_s * 1000 - Date.now();
  clockExact = true;
}

// ---- Uniform answers --------------------------------------------------------

const word = (text, prefix) => (text ? String(text).replace(prefix, '') : '').replace(/^UNSPECIFIED$/, '');
const number = (x) => (x === null || x === undefined || x === '' ? null : Number(x));
const time = (text) => {
  const ms = text ? Date.parse(text) : NaN;
  return Number.isNaN(ms) ? null : ms;
};
const seconds = (text) => (text ? Number(String(text).replace(/s$/, '')) : null);
const list = (x) => (Array.isArray(x) ? x : []);

export function toJob(json) {
  const report = json.report || null;
  const job = {
    ...json,
    name: json.name || '',
    state: word(json.state, 'JOB_STATE_'),
    quality: word(json.quality, 'QUALITY_'),
    end_reason: word(json.end_reason, 'JOB_END_REASON_'),
    pending_reason: word(json.pending_reason, 'PENDING_REASON_'),
    accepted_at: time(json.accepted_at),
    // An older traind does not tell it.
    runnable_at: time(json.runnable_at) ?? time(json.accepted_at),
    started_at: time(json.started_at),
    deadline: time(json.deadline),
    finished_at: time(json.finished_at),
    estimated_finish: time(json.estimated_finish),
    expected_start: time(json.expected_start),
    remaining_s: number(json.remaining_s),
    version: Number(json.version || 0),
    queue_position: Number(json.queue_position || 0),
    train_rows: Number(json.train_rows || 0),
    test_rows: Number(json.test_rows || 0),
    folds: list(json.folds).map(toFold),
    decisions: list(json.decisions).map((d) => ({...d, at: time(d.at)})),
    attempts: list(json.attempts).map(toAttempt),
    trials: list(json.trials),
    after: list(json.after),
    warnings: list(json.warnings),
    labels: json.labels || {},
    scores: json.scores || {},
    predictions: toPrediction(json.predictions),
    plan: toPlan(json.plan),
    search: json.search || null,
    report,
  };
  noteRemaining(job);
  return job;
}

function toFold(f) {
  const progress = f.progress || {};
  return {
    ...f,
    index: Number(f.index || 0),
    trial: Number(f.trial || 0),
    seed: Number(f.seed || 0),
    state: word(f.state, 'TASK_STATE_'),
    progress: {planned: Number(progress.planned || 0), done: Number(progress.done || 0)},
    score: number(f.score),
    attempt: Number(f.attempt || 0),
    live: f.live || null,
  };
}

function toAttempt(a) {
  return {
    ...a,
    id: Number(a.id),
    started_at: time(a.started_at),
    ended_at: time(a.ended_at),
    end_reason: word(a.end_reason, 'ATTEMPT_END_REASON_'),
    first_step: number(a.first_step),
    ...taskOf(a.task || ''),
  };
}

// fold-1-trial-14-seed-2 is a model; other tasks are prepare, predict and serve.
export function taskOf(task) {
  const match = /^fold-(\d+)(?:-trial-(\d+))?(?:-seed-(\d+))?$/.exec(task);
  if (!match) return {kind: task, fold: null, trial: 0, seed: 0};
  return {kind: 'fold', fold: Number(match[1]), trial: Number(match[2] || 0), seed: Number(match[3] || 0)};
}

function toPrediction(p) {
  if (!p || !p.number || !Number(p.number)) return null;
  return {
    ...p,
    number: Number(p.number),
    rows: Number(p.rows || 0),
    bytes: Number(p.bytes || 0),
    quality: word(p.quality, 'QUALITY_'),
    at: time(p.at),
    folds: list(p.folds),
    members: list(p.members).map((m) => ({
      ...m,
      fold: Number(m.fold || 0),
      trial: Number(m.trial || 0),
      seed: Number(m.seed || 0),
      weight: Number(m.weight || 0),
      score: number(m.score),
      epoch: number(m.epoch),
    })),
  };
}

function toPlan(p) {
  if (!p || !p.folds) return null;
  return {...p, estimate_s: seconds(p.estimate), reserve_s: seconds(p.reserve) || 0, at: time(p.at)};
}

export function toWorker(w) {
  return {
    ...w,
    last_seen: time(w.last_seen),
    slots: list(w.slots).map((s) => ({...s, index: Number(s.index || 0), memory_bytes: Number(s.memory_bytes || 0)})),
  };
}

function toQuota(q) {
  const quota = q.quota || q;
  return {...q, ...quota, used_s: Number(q.used_s || 0), left_s: Number(q.left_s || 0), free_at: time(q.free_at)};
}

// ---- The calls --------------------------------------------------------------

const jobPath = (id) => `/v1/jobs/${encodeURIComponent(id)}`;

export const liveStates = ['QUEUED', 'PLANNING', 'RUNNING', 'FINALIZING', 'PAUSED'];

export async function getJob(id) {
  return toJob(await call('GET', jobPath(id)));
}

// One page: {jobs, next}.
export async function listJobs({states = [], labels = {}, size = 50, page = ''} = {}) {
  const query = new URLSearchParams();
  for (const state of states) query.append('states', state);
  for (const [key, value] of Object.entries(labels)) query.append('labels', `${key}=${value}`);
  query.set('page_size', size);
  if (page) query.set('page_token', page);
  const json = await call('GET', `/v1/jobs?${query}`);
  return {jobs: list(json.jobs).map(toJob), next: json.next_page_token || ''};
}

export async function listWorkers() {
  const json = await call('GET', '/v1/workers');
  return list(Array.isArray(json) ? json : json.workers).map(toWorker);
}

// The figures of traind itself on a page of metrics.
export function toSystem(text) {
  const value = (name) => number((new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text) || [])[1]);
  const started = value('process_start_time_seconds');
  return {
    version: (/^traind_build_info\{version="([^"]*)"\}/m.exec(text) || [])[1] || '',
    started_at: started === null ? null : started * 1000,
    memory_bytes: value('process_resident_memory_bytes'),
    streams: value('traind_event_streams'),
  };
}

export async function getSystem() {
  try {
    return toSystem(await (await fetch('/metrics', {signal: AbortSignal.timeout(kTimeoutMs)})).text());
  } catch (e) {
    connection.tell(true);
    throw new ApiError(0, 'UNAVAILABLE', 'traind cannot be reached');
  }
}

export async function listQuotas() {
  const json = await call('GET', '/v1/quotas');
  return list(Array.isArray(json) ? json : json.quotas).map(toQuota);
}

// {lines, end}: lines without `end` are not all.
export async function getLogs(id, query) {
  const json = await call('GET', `${jobPath(id)}/logs?${query}`);
  const lines = list(json.lines).map((line) => ({
    ...line,
    at: time(line.at),
    attempt: Number(line.attempt || 0),
    rank: Number(line.rank || 0),
    offset: Number(line.offset || 0),
  }));
  return {lines, end: Boolean(json.end)};
}

export async function getSpec(id) {
  const json = await call('GET', `${jobPath(id)}/spec`);
  return {text: json.text || '', resolved: json.resolved || {}};
}

// Figures of every series are thinned to this many, more than a chart has columns.
const kPoints = 2000;

// The figures behind the sequence number `after`, as columns: {series, last}.
export async function getMetrics(id, after = 0) {
  const json = await call('GET', `${jobPath(id)}/metrics?columns=true&max_points=${kPoints}&after_sequence=${after}`);
  return {series: list(json.series), last: Math.max(after, Number(json.last_sequence || 0))};
}

// finish, cancel, pause or resume.
export async function act(id, verb) {
  return toJob(await call('POST', `${jobPath(id)}:${verb}`, {}));
}

// The time from acceptance to the new deadline.
export async function setBudget(id, budgetS) {
  return toJob(await call('PATCH', jobPath(id), {budget: `${Math.round(budgetS)}s`}));
}

export const eventsPath = (id) => `${jobPath(id)}/events`;
