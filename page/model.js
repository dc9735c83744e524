// Conclusions from a Job that pages show: its health, its timeline, its leaderboard, its Decisions in words.
// Pure functions of uniform Jobs (api.js) and of the time in milliseconds.

import {bytes, duration, figure, percent} from './format.js';

export const isOver = (job) => ['SUCCEEDED', 'FAILED', 'CANCELLED'].includes(job.state);

const kHigher = new Set(['accuracy', 'auc', 'f1', 'r2', 'dice', 'iou']);
export const higherIsBetter = (metric) => kHigher.has(metric);

// ---- Time -------------------------------------------------------------------

// How a Job stands towards its deadline: {kind: good | tight | late | wait | none | done | bad, text}.
export function health(job, now) {
  if (isOver(job)) return ended(job);
  if (job.state === 'PAUSED') return {kind: 'wait', text: 'paused; the clock goes on'};
  if (job.deadline === null) {
    return job.state === 'QUEUED' ? {kind: 'wait', text: waiting(job)} : {kind: 'none', text: 'no deadline'};
  }
  const window = job.deadline - job.runnable_at;
  if (now > job.deadline) return {kind: 'late', text: `late by ${duration((now - job.deadline) / 1000)}`};
  if (job.state === 'QUEUED') return {kind: 'wait', text: waiting(job)};
  if (job.state === 'FINALIZING') return {kind: 'good', text: 'making the last prediction'};
  if (job.estimated_finish === null) return {kind: 'good', text: job.predictions ? 'an answer stands' : 'planning'};
  const spare = job.deadline - Math.max(job.estimated_finish, now);
  if (spare < 0) return {kind: 'tight', text: `needs ${duration(-spare / 1000)} more; will be cut to fit`};
  if (spare < 0.03 * window) return {kind: 'tight', text: 'on time, nothing to spare'};
  return {kind: 'good', text: `on track, ${duration(spare / 1000)} to spare`};
}

function ended(job) {
  if (job.state === 'SUCCEEDED') {
    if (job.deadline === null || job.finished_at === null) return {kind: 'done', text: 'done'};
    const early = (job.deadline - job.finished_at) / 1000;
    return early >= 0
      ? {kind: 'done', text: `${duration(early)} before the deadline`}
      : {kind: 'late', text: `${duration(-early)} after the deadline`};
  }
  return job.state === 'FAILED' ? {kind: 'bad', text: endWords(job.end_reason)} : {kind: 'none', text: 'cancelled'};
}

// Positions on the bar of the budget, as shares of the window from the start of its time to the deadline (or the end
// that is expected, or the present, where one is later): {spent, planned, reserve, deadline}, and the window in seconds.
export function budget(job, now) {
  const start = job.runnable_at;
  const present = job.finished_at !== null ? job.finished_at : Math.max(now, start);
  const estimate = isOver(job) || job.estimated_finish === null ? present : Math.max(job.estimated_finish, present);
  const end = Math.max(job.deadline || 0, estimate, present, start + 1);
  const share = (ms) => Math.min(1, Math.max(0, (ms - start) / (end - start)));
  const reserveS = job.plan ? job.plan.reserve_s : 0;
  return {
    window_s: (end - start) / 1000,
    spent: share(present),
    planned: share(estimate),
    deadline: job.deadline === null ? null : share(job.deadline),
    reserve: job.deadline === null || isOver(job) ? null : share(job.deadline - reserveS * 1000),
    spent_s: (present - start) / 1000,
    reserve_s: reserveS,
  };
}

// Done and planned epochs of all models in the Plan, as a share; null before there is a Plan.
export function progress(job) {
  const folds = job.folds.filter((f) => f.trial === 0 && f.state !== 'DROPPED');
  if (!folds.length) return null;
  const share = (f) =>
    f.state === 'DONE' || f.state === 'PARTIAL'
      ? 1
      : f.progress.planned
        ? Math.min(1, f.progress.done / f.progress.planned)
        : 0;
  return folds.reduce((sum, f) => sum + share(f), 0) / folds.length;
}

// Where the time of all Attempts went: [{name, s}], without what took none.
export function timeSpent(report) {
  if (!report) return [];
  const parts = [
    ['queue', report.queue_s],
    ['prepare', report.prepare_s],
    ['start of folds', report.probe_s],
    ['training', report.train_s],
    ['validation', report.validate_s],
    ['prediction', report.predict_s],
  ];
  return parts.map(([name, s]) => ({name, s: Number(s || 0)})).filter((part) => part.s > 0);
}

// The answers that have stood, one after the other: [{number, at_s, quality, oof, comparable, test, models}].
export function answersOf(report) {
  const known = (x) => (x === null || x === undefined ? null : Number(x));
  return ((report && report.answers) || []).map((a) => ({
    number: Number(a.number),
    at_s: Number(a.at_s || 0),
    quality: String(a.quality || '').replace(/^QUALITY_/, ''),
    oof: known(a.oof),
    comparable: Boolean(a.comparable),
    test: known(a.test),
    models: Number(a.models || 0),
  }));
}

// What the columns are worth, the most important one first: [{column, drop, error, share}]; share: of the greatest drop.
export function importanceOf(report) {
  const all = ((report && report.importance) || []).map((of) => ({
    column: of.column,
    drop: Number(of.drop || 0),
    error: of.error === null || of.error === undefined ? null : Number(of.error),
  }));
  const greatest = Math.max(...all.map((of) => of.drop), 1e-12);
  return all.map((of) => ({...of, share: Math.max(0, of.drop / greatest)}));
}

// ---- Words ------------------------------------------------------------------

const kEnds = {
  COMPLETED: 'completed',
  BUDGET_REACHED: 'the time was used',
  FINISHED_BY_USER: 'finished by a user',
  CANCELLED_BY_USER: 'cancelled by a user',
  DATA_ERROR: 'the data cannot be used',
  USER_ERROR: 'an error of the spec or model',
  DIVERGED: 'training diverged',
  OUT_OF_MEMORY: 'out of memory',
  STORAGE_FULL: 'the disk is full',
  RETRIES_EXHAUSTED: 'too many failed attempts',
  NO_WORKER: 'no Worker',
  INTERNAL: 'an error of traind',
  QUOTA_REACHED: 'the quota is used up',
  AFTER_FAILED: 'a job before it did not succeed',
  STOPPED_IN_TIME: 'stopped by the clock',
  RANK_DIED: 'a Rank died',
  WORKER_LOST: 'the Worker was lost',
  COLLECTIVE_TIMEOUT: 'Ranks lost each other',
  HUNG: 'it hung',
  DEADLINE: 'killed at the deadline',
  SHUTDOWN: 'the daemon stopped',
  STALE: 'replaced by a newer Attempt',
  PREEMPTED: 'its slots went to a Job of a higher priority',
};
export const endWords = (reason) => kEnds[reason] || reason.toLowerCase().replace(/_/g, ' ');

const kWaits = {
  RESOURCES: 'all slots are taken',
  PRIORITY: 'other Jobs go first',
  BACKOFF: 'waits before it tries again',
  NO_MATCHING_WORKER: 'no Worker has what it asks for',
  PREPARING: 'its data are being read',
  QUOTA: 'its owner may use no more',
  OTHER_JOBS: 'it runs after other Jobs',
};

export function waiting(job) {
  const clock = (at) => new Date(at).toLocaleTimeString([], {hour: '2-digit', minute: '2-digit'});
  const words = [
    kWaits[job.pending_reason] || 'waits',
    job.waits_for ? ` (it waits for ${job.waits_for})` : '',
    job.expected_start ? `, expected ${clock(job.expected_start)}` : '',
  ].join('');
  return job.queue_position > 0 ? `number ${job.queue_position} in the queue: ${words}` : words;
}

const kQuality = {
  FULL: 'every fold was trained as the spec asked',
  DEGRADED: 'fewer folds or epochs than the spec asked for',
  FLOOR: 'a simple model that is fitted within seconds',
};
export const qualityWords = (quality) => kQuality[quality] || '';

const kRules = {
  B2: 'The Plan was cut to fit the time',
  B3: 'Planned again after the first fold',
  B4: 'Time held back for the answer',
  B5: 'Training stopped to answer in time',
  B7: 'The better answer stands',
  B8: 'Work that was not finished counts',
  B9: 'Time left is used',
  retry: 'Tried again',
  preempt: 'Slots for a higher priority',
  user: 'A user asked',
  quota: 'A quota is used up',
  cache: 'Folds of an earlier Job are taken over',
  from: 'It goes on from another Job',
  after: 'The Jobs before it have ended',
  predict: 'Not every model or row was answered',
  precision: 'Precision',
  threads: 'Threads',
  memory: 'Out of memory',
  batch: 'Batch',
  loading: 'Threads that load',
  pretrained: 'Weights to start from',
};
export const ruleWords = (rule) => kRules[rule] || `Rule ${rule}`;

// Tells the change in one sentence.
export function decisionWords(d) {
  if (d.from && d.to) return `${d.from} → ${d.to}`;
  return d.to || d.from || '';
}

// ---- Timeline ---------------------------------------------------------------

// Rows of bars: {rows: [{key, label, lanes, bars: [{from, to, lane, attempt, running, kind}]}], start, end}.
// With several trials each has a row, else each model of a fold.
export function timeline(job, now) {
  const byTrial = job.trials.length > 1;
  const rows = new Map();
  const start = job.runnable_at;
  const present = isOver(job) ? job.finished_at : now;
  for (const attempt of job.attempts) {
    if (attempt.started_at === null) continue;
    const [key, label, order] = rowOf(job, attempt, byTrial);
    if (!rows.has(key)) rows.set(key, {key, label, order, bars: []});
    const to = attempt.ended_at === null ? Math.max(present, attempt.started_at) : attempt.ended_at;
    rows.get(key).bars.push({
      from: attempt.started_at,
      to,
      attempt,
      running: attempt.ended_at === null,
      kind: barKind(attempt),
    });
  }
  const sorted = [...rows.values()].sort((a, b) => a.order - b.order);
  for (const row of sorted) row.lanes = pack(row.bars);
  const last = Math.max(present, ...sorted.flatMap((row) => row.bars.map((bar) => bar.to)));
  return {rows: sorted, start, end: Math.max(last, start + 1)};
}

function rowOf(job, attempt, byTrial) {
  if (attempt.kind !== 'fold') return [attempt.kind, attempt.kind, attempt.kind === 'prepare' ? -1 : 1e9];
  if (byTrial) {
    const trial = job.trials.find((t) => Number(t.index) === attempt.trial);
    return [`trial ${attempt.trial}`, trial ? trial.name : `trial ${attempt.trial}`, attempt.trial];
  }
  const seed = attempt.seed ? ` seed ${attempt.seed}` : '';
  return [`fold ${attempt.fold}${seed}`, `fold ${attempt.fold}${seed}`, attempt.seed * 1000 + attempt.fold];
}

function barKind(attempt) {
  const reason = attempt.end_reason;
  if (!reason) return 'running';
  if (reason === 'COMPLETED') return 'done';
  if (['STOPPED_IN_TIME', 'FINISHED_BY_USER', 'CANCELLED_BY_USER', 'SHUTDOWN', 'DEADLINE', 'STALE', 'PREEMPTED'].includes(reason))
    return 'stopped';
  return 'failed';
}

// Gives each bar the first lane that is free at its start; returns the number of lanes.
export function pack(bars) {
  const ends = [];
  for (const bar of bars.sort((a, b) => a.from - b.from)) {
    let lane = ends.findIndex((end) => end <= bar.from);
    if (lane < 0) lane = ends.length;
    ends[lane] = bar.to;
    bar.lane = lane;
  }
  return Math.max(1, ends.length);
}

// ---- Leaderboard ------------------------------------------------------------

// The trials, the best first: those with all folds before those with fewer. The floor is among them where it answers,
// too.
export function leaderboard(job, now) {
  const members = job.predictions ? job.predictions.members : [];
  const metric = job.scores.metric;
  const entries = job.trials.map((trial) => {
    const index = Number(trial.index);
    const folds = job.folds.filter((f) => f.trial === index && f.score !== null);
    const states = job.folds.filter((f) => f.trial === index).map((f) => f.state);
    const scores = folds.map((f) => f.score);
    const spent = job.attempts
      .filter((a) => a.kind === 'fold' && a.trial === index && a.started_at !== null)
      .reduce((sum, a) => sum + ((a.ended_at === null ? now : a.ended_at) - a.started_at) / 1000, 0);
    return {
      index,
      name: trial.name,
      kind: trial.kind,
      settings: trial.settings || {},
      done: states.filter((s) => s === 'DONE' || s === 'PARTIAL').length,
      running: states.includes('RUNNING'),
      score: scores.length ? scores.reduce((a, b) => a + b, 0) / scores.length : null,
      low: scores.length ? Math.min(...scores) : null,
      high: scores.length ? Math.max(...scores) : null,
      weight: members.filter((m) => m.trial === index && m.fold >= 0).reduce((sum, m) => sum + m.weight, 0),
      spent_s: spent,
    };
  });
  const floor = members.find((m) => m.fold < 0);
  if (floor) entries.push(floorEntry(job, floor));
  const most = Math.max(0, ...entries.map((e) => e.done));
  const sign = higherIsBetter(metric) ? -1 : 1;
  return entries.sort(
    (a, b) =>
      (b.done === most) - (a.done === most) ||
      (a.score === null) - (b.score === null) ||
      sign * (a.score - b.score) ||
      a.index - b.index,
  );
}

// The trial that leads; 0 before there is a score.
export function bestTrial(job) {
  const best = leaderboard(job, 0).find((t) => t.score !== null && t.index >= 0);
  return best ? best.index : 0;
}

function floorEntry(job, member) {
  return {
    index: -1,
    name: 'floor',
    kind: member.kind,
    settings: {},
    done: 0,
    running: false,
    score: job.scores.floor ?? null,
    low: null,
    high: null,
    weight: member.weight,
    spent_s: 0,
  };
}

// The folds of the first trial with what they answer with.
export function foldTable(job) {
  const members = job.predictions ? job.predictions.members : [];
  return job.folds
    .filter((f) => f.trial === 0)
    .map((f) => {
      const member = members.find((m) => m.fold === f.index && m.seed === f.seed && m.trial === 0);
      return {...f, weight: member ? member.weight : 0, epoch: member ? member.epoch : null};
    });
}

// ---- Figures ----------------------------------------------------------------

const kFigures = {
  val_metric: {label: 'Validation score'},
  val_loss: {label: 'Validation loss'},
  train_loss: {label: 'Training loss'},
  loss: {label: 'Loss of the last steps'},
  learning_rate: {label: 'Learning rate'},
  gradient_norm: {label: 'Gradient norm'},
  samples_per_s: {label: 'Samples per second'},
  utilisation: {label: 'Utilisation', share: true},
  data_wait: {label: 'Waiting for data', share: true},
  pause: {label: 'Pauses', share: true},
  exchange: {label: 'Exchange of gradients', share: true},
  loss_scale: {label: 'Loss scale'},
  peak_memory_bytes: {label: 'Peak memory', bytes: true},
  peak_device_bytes: {label: 'Peak device memory', bytes: true},
  cpu_cores: {label: 'Cores in use'},
  resident_bytes: {label: 'Memory', bytes: true},
  steal: {label: 'Taken by the host', share: true},
  device_utilisation: {label: 'GPU utilisation', share: true},
  device_memory_bytes: {label: 'GPU memory', bytes: true},
  power_watts: {label: 'Power (W)'},
  temperature_celsius: {label: 'Temperature (°C)'},
};

// How a training figure is called and written.
export function figureOf(name, metric) {
  if (name === 'val_metric' && metric) return {label: `Validation ${metric}`};
  const known = kFigures[name];
  if (known) return known;
  return {label: name.replace(/_/g, ' '), bytes: /_bytes$/.test(name), share: /_(share|ratio)$/.test(name)};
}

// The machine's use by training; figures that nobody measured are left out.
export function resourceFacts(report) {
  const known = (x) => x !== null && x !== undefined;
  const used = known(report.utilisation) ? Number(report.utilisation) : null;
  const word = used >= 0.8 ? 'good' : used >= 0.6 ? 'training waits' : 'poor';
  const memory = Number(report.peak_memory_bytes || 0);
  const device = Number(report.peak_device_bytes || 0);
  return [
    ['utilisation', used === null ? null : `${percent(used)}, ${word}`],
    ['peak memory', memory > 0 ? bytes(memory) : null],
    ['peak device memory', device > 0 ? bytes(device) : null],
    ['energy', known(report.energy_joules) ? `${figure(report.energy_joules / 1000)} kJ` : null],
    [
      'an epoch takes',
      known(report.epoch_device_s)
        ? `${figure(report.epoch_device_s)} s of a slot` +
          (known(report.epoch_joules) ? `, ${figure(report.epoch_joules)} J` : '')
        : null,
    ],
  ];
}

// Metrics of learning, in the order in which people look at them; all others are of the machine.
export const learning = [
  'val_metric',
  'val_loss',
  'train_loss',
  'loss',
  'learning_rate',
  'gradient_norm',
  'loss_scale',
];

// ---- Settings ---------------------------------------------------------------

// {a: {b: 1}} as {'a.b': '1'}.
export function flat(value, path = '', out = {}) {
  if (value && typeof value === 'object' && !Array.isArray(value)) {
    for (const [k, v] of Object.entries(value)) flat(v, path ? `${path}.${k}` : k, out);
  } else if (value !== undefined && value !== null && value !== '') {
    out[path] = Array.isArray(value) ? value.map(String).join(', ') : String(value);
  }
  return out;
}
