import assert from 'node:assert/strict';
import test from 'node:test';

import {taskOf, toJob} from '../../../page/api.js';
import {
  answersOf,
  budget,
  decisionWords,
  flat,
  foldTable,
  health,
  importanceOf,
  leaderboard,
  pack,
  progress,
  resourceFacts,
  timeline,
  timeSpent,
  waiting,
} from '../../../page/model.js';

const start = Date.parse('2026-01-01T00:00:00Z');
const at = (s) => new Date(start + s * 1000).toISOString();
const job = (fields) =>
  toJob({
    id: 'a-1',
    name: 'a',
    state: 'RUNNING',
    accepted_at: at(0),
    deadline: at(100),
    plan: {folds: 2, epochs: 10, reserve: '15s'},
    ...fields,
  });

test('an answer of the daemon in either way of writing words is one Job', () => {
  const short = job({quality: 'FULL', version: 7});
  const long = job({
    state: 'JOB_STATE_RUNNING',
    quality: 'QUALITY_FULL',
    version: '7',
    end_reason: 'JOB_END_REASON_UNSPECIFIED',
  });
  for (const key of ['state', 'quality', 'version', 'end_reason', 'deadline'])
    assert.deepEqual(short[key], long[key], key);
  assert.equal(short.plan.reserve_s, 15);
  assert.equal(job({predictions: null}).predictions, null);
});

test('tasks have the numbers of their names', () => {
  assert.deepEqual(taskOf('fold-1-trial-14'), {kind: 'fold', fold: 1, trial: 14, seed: 0});
  assert.deepEqual(taskOf('fold-2-seed-3'), {kind: 'fold', fold: 2, trial: 0, seed: 3});
  assert.equal(taskOf('prepare').kind, 'prepare');
});

test('health follows the estimate and the deadline', () => {
  const kind = (fields, s) => health(job(fields), start + s * 1000).kind;
  assert.equal(kind({estimated_finish: at(60)}, 10), 'good');
  assert.equal(kind({estimated_finish: at(99)}, 10), 'tight');
  assert.equal(kind({estimated_finish: at(130)}, 10), 'tight');
  assert.equal(kind({estimated_finish: at(60)}, 101), 'late');
  assert.equal(kind({state: 'QUEUED', pending_reason: 'RESOURCES'}, 10), 'wait');
  assert.equal(kind({state: 'PAUSED'}, 10), 'wait');
  assert.equal(kind({deadline: null}, 10), 'none');
  assert.equal(kind({state: 'SUCCEEDED', finished_at: at(90)}, 500), 'done');
  assert.equal(kind({state: 'SUCCEEDED', finished_at: at(101)}, 500), 'late');
  assert.equal(kind({state: 'FAILED', finished_at: at(9), end_reason: 'DATA_ERROR'}, 500), 'bad');
  assert.match(health(job({estimated_finish: at(130)}), start).text, /needs 30 s more/);
});

test('the bar of the budget tells what is spent, planned and held back', () => {
  const b = budget(job({estimated_finish: at(60)}), start + 20000);
  assert.deepEqual([b.spent, b.planned, b.reserve, b.deadline], [0.2, 0.6, 0.85, 1]);
  const late = budget(job({estimated_finish: at(200)}), start + 20000);
  assert.deepEqual([late.spent, late.planned, late.deadline], [0.1, 1, 0.5]);
  const over = budget(job({state: 'SUCCEEDED', finished_at: at(50)}), start + 9e6);
  assert.deepEqual([over.spent, over.reserve, over.deadline], [0.5, null, 1]);
  const free = budget(job({deadline: null}), start + 5000);
  assert.deepEqual([free.spent, free.deadline], [1, null]);
});

test('progress counts the folds of the Plan', () => {
  const fold = (index, state, done, trial = 0) => ({index, trial, state, progress: {planned: 10, done}});
  assert.equal(
    progress(
      job({folds: [fold(0, 'DONE', 3), fold(1, 'RUNNING', 5), fold(2, 'DROPPED', 0), fold(0, 'PENDING', 0, 1)]}),
    ),
    0.75,
  );
  assert.equal(progress(job({})), null);
});

test('the time of a Job that waited for others counts from the end of the last', () => {
  const times = {accepted_at: '2030-01-01T10:00:00Z', deadline: '2030-01-01T11:10:00Z'};
  const waited = toJob({...times, runnable_at: '2030-01-01T11:00:00Z', after: ['a-1']});
  assert.equal(waited.deadline - waited.runnable_at, 600e3);
  assert.deepEqual(waited.after, ['a-1']);
  assert.equal(toJob(times).runnable_at, toJob(times).accepted_at);
});

test('waiting tells place and reason', () => {
  assert.equal(
    waiting(job({queue_position: 3, pending_reason: 'RESOURCES'})),
    'number 3 in the queue: all slots are taken',
  );
  assert.equal(
    waiting(job({pending_reason: 'RESOURCES', waits_for: '4 slots; 2 free'})),
    'all slots are taken (it waits for 4 slots; 2 free)',
  );
  assert.equal(
    waiting(job({pending_reason: 'OTHER_JOBS', waits_for: 'the end of job a-1'})),
    'it runs after other Jobs (it waits for the end of job a-1)',
  );
  assert.match(
    waiting(job({pending_reason: 'RESOURCES', waits_for: '4 slots', expected_start: '2030-01-01T10:00:00Z'})),
    /^all slots are taken \(it waits for 4 slots\), expected \d\d:\d\d/,
  );
});

test('what training took is told where it was measured', () => {
  const told = (report) => resourceFacts(report).filter(([, value]) => value !== null);
  assert.deepEqual(told({}), []);
  assert.deepEqual(told({utilisation: 0.7, peak_memory_bytes: '2097152', epoch_device_s: 0.5}), [
    ['utilisation', '70 %, training waits'],
    ['peak memory', '2.0 MiB'],
    ['an epoch takes', '0.5 s of a slot'],
  ]);
  const gpu = told({utilisation: 0.85, energy_joules: 1500, epoch_device_s: 2, epoch_joules: 30});
  assert.deepEqual(gpu, [
    ['utilisation', '85 %, good'],
    ['energy', '1.5 kJ'],
    ['an epoch takes', '2 s of a slot, 30 J'],
  ]);
});

test('bars that overlap get lanes of their own', () => {
  const bars = [
    {from: 5, to: 9},
    {from: 0, to: 5},
    {from: 2, to: 4},
  ];
  assert.equal(pack(bars), 2);
  assert.deepEqual(
    bars.map((bar) => [bar.from, bar.lane]),
    [
      [0, 0],
      [2, 1],
      [5, 0],
    ],
  );
  assert.equal(pack([]), 1);
});

test('a timeline has a row for each fold, and for each trial where there are several', () => {
  const attempt = (id, task, from, to, reason) => ({
    id,
    task,
    worker: 'w',
    started_at: at(from),
    ended_at: to === null ? null : at(to),
    end_reason: reason,
  });
  const attempts = [
    attempt(1, 'prepare', 0, 1, 'COMPLETED'),
    attempt(2, 'fold-0', 1, 5, 'RANK_DIED'),
    attempt(3, 'fold-1', 1, 6, 'STOPPED_IN_TIME'),
    attempt(4, 'fold-0', 6, null, null),
  ];
  const one = timeline(job({attempts}), start + 8000);
  assert.deepEqual(
    one.rows.map((row) => row.key),
    ['prepare', 'fold 0', 'fold 1'],
  );
  assert.deepEqual(
    one.rows[1].bars.map((bar) => bar.kind),
    ['failed', 'running'],
  );
  assert.equal(one.rows[2].bars[0].kind, 'stopped');
  assert.equal(one.end, start + 8000);
  const trials = [
    {index: 0, name: 'mlp'},
    {index: 1, name: 'lightgbm'},
  ];
  const many = timeline(
    job({trials, attempts: [attempt(5, 'fold-0-trial-1', 3, 4, 'COMPLETED'), ...attempts]}),
    start + 8000,
  );
  assert.deepEqual(
    many.rows.map((row) => row.label),
    ['prepare', 'mlp', 'lightgbm'],
  );
  assert.equal(many.rows[1].lanes, 2);
});

const boardJob = (metric) =>
  job({
    scores: {metric, floor: 0.75},
    trials: [
      {index: 0, name: 'a'},
      {index: 1, name: 'b'},
      {index: 2, name: 'c'},
      {index: 3, name: 'd'},
    ],
    folds: [
      [0, 0.8],
      [0, 0.9],
      [1, 0.95],
      [2, 0.7],
      [2, 0.72],
    ].map(([trial, score], i) => ({index: i % 2, trial, state: 'DONE', score})),
    predictions: {
      number: 1,
      members: [
        {fold: 0, trial: 0, weight: 0.25},
        {fold: 1, trial: 0, weight: 0.5},
        {fold: -1, weight: 0.25},
      ],
    },
  });

test('the leaderboard has trials with all folds first, in the order of the metric', () => {
  const names = (metric) =>
    leaderboard(boardJob(metric), start)
      .map((t) => t.name)
      .join('');
  assert.equal(names('accuracy'), 'acbfloord');
  assert.equal(names('rmse'), 'cafloorbd');
  const [first] = leaderboard(boardJob('accuracy'), start);
  assert.deepEqual([first.done, first.weight, first.low, first.high], [2, 0.75, 0.8, 0.9]);
});

test('folds have the weight of their models', () => {
  assert.deepEqual(
    foldTable(boardJob('auc')).map((f) => f.weight),
    [0.25, 0.5],
  );
});

test('time that nothing took is left out', () => {
  assert.deepEqual(
    timeSpent({queue_s: 0, prepare_s: 1, train_s: 2}).map((p) => p.name),
    ['prepare', 'training'],
  );
  assert.deepEqual(timeSpent(null), []);
});

test('columns have their share of the most important one', () => {
  const importance = importanceOf({
    importance: [
      {column: 'age', drop: 0.2, error: 0.01, folds: 5},
      {column: 'town', drop: 0.05, error: null, folds: 1},
      {column: 'noise', drop: -0.01, error: 0.02, folds: 5},
    ],
  });
  assert.deepEqual(
    importance.map((of) => [of.column, of.error, of.share]),
    [
      ['age', 0.01, 1],
      ['town', null, 0.25],
      ['noise', 0.02, 0],
    ],
  );
  assert.deepEqual(importanceOf(null), []);
});

test('answers are told in order, with what is not known as null', () => {
  const answers = answersOf({
    answers: [
      {number: 1, at_s: 0.25, quality: 'QUALITY_FLOOR', oof: 0.8, comparable: true, test: null, models: 0},
      {number: 2, at_s: 1.5, quality: 'QUALITY_FULL', oof: null, comparable: false, test: 0.9, models: 5},
    ],
  });
  assert.deepEqual(
    answers.map((a) => [a.number, a.at_s, a.quality, a.oof, a.test, a.models]),
    [
      [1, 0.25, 'FLOOR', 0.8, null, 0],
      [2, 1.5, 'FULL', null, 0.9, 5],
    ],
  );
  assert.deepEqual(answersOf(null), []);
});

test('a Decision is one sentence', () => {
  assert.equal(decisionWords({from: '5 folds', to: '3 folds'}), '5 folds → 3 folds');
  assert.equal(decisionWords({from: '', to: 'bf16'}), 'bf16');
});

test('nested settings become paths', () => {
  assert.deepEqual(flat({plan: {folds: 5, x: null}, a: [1, 2]}), {'plan.folds': '5', a: '1, 2'});
});
