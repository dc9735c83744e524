import assert from 'node:assert/strict';
import test from 'node:test';

import {LogLines, logQuery, shownRows} from '../../../page/logs.js';
import {toYaml} from '../../../page/yaml.js';

const line = (attempt, offset, at, rank = 0) => ({attempt, rank, offset, at, level: 'info', text: `${attempt}:${offset}`});
const texts = (log) => log.lines.map((l) => l.text);

test('lines of several Ranks stand in the order of time, each once', () => {
  const log = new LogLines();
  assert.equal(log.add([line(2, 10, 5), line(2, 20, 9), line(3, 10, 7)]), 3);
  assert.deepEqual(texts(log), ['2:10', '3:10', '2:20']);
  assert.equal(log.add([line(2, 20, 9), line(3, 20, 8), line(2, 30, 12)]), 2);
  assert.deepEqual(texts(log), ['2:10', '3:10', '3:20', '2:20', '2:30']);
  assert.equal(log.newestAt, 12);
});

test('of one moment, the lines of a log stay in the order in which they were written', () => {
  const log = new LogLines();
  log.add([line(2, 10, 5), line(2, 20, 5), line(2, 30, 5)]);
  assert.deepEqual(texts(log), ['2:10', '2:20', '2:30']);
});

test('the oldest lines go when there are too many, and do not come back', () => {
  const log = new LogLines(3);
  const all = [1, 2, 3, 4, 5].map((i) => line(2, i, i));
  log.add(all);
  assert.deepEqual(texts(log), ['2:3', '2:4', '2:5']);
  assert.equal(log.dropped, 2);
  assert.equal(log.add(all), 0);
  assert.deepEqual(texts(log), ['2:3', '2:4', '2:5']);
});

test('a call names the filters, and only the time that is not known yet', () => {
  const time = Date.UTC(2030, 0, 1, 12);
  const none = {rank: '', level: '', text: '', since: ''};
  assert.equal(String(logQuery(none, 0, time, 300)), 'tail=300');
  const query = logQuery({rank: '1', level: 'error', text: 'a+b &', since: '1h'}, 0, time, 300);
  assert.deepEqual(Object.fromEntries(query), {
    tail: '300',
    rank: '1',
    level: 'error',
    grep: 'a+b &',
    since: '2030-01-01T11:00:00.000Z',
  });
  assert.equal(logQuery({...none, since: '1h'}, time, time, 300).get('since'), '2030-01-01T11:59:30.000Z');
});

test('only rows in sight are shown, at any place', () => {
  assert.deepEqual(shownRows(10000, 0, 600, 20), [0, 40]);
  assert.deepEqual(shownRows(10000, 100000, 600, 20), [4992, 5040]);
  assert.deepEqual(shownRows(10000, 100040, 600, 20), [4992, 5040]);
  assert.deepEqual(shownRows(10000, 199400, 600, 20), [9960, 10000]);
  assert.deepEqual(shownRows(3, 5000, 600, 20), [0, 3]);
  assert.deepEqual(shownRows(0, 0, 600, 20), [0, 0]);
});

test('a spec as YAML leaves out what is unset, and quotes what YAML would read as something else', () => {
  const spec = {
    api: 'v1',
    name: 'no',
    empty: '',
    none: null,
    data: {folds: 5, train: '/data/train.csv', window: null, columns: ['a', 'b: c', '7']},
    model: {mlp: {dropout: 0, hidden: [64]}, lstm: {layers: null}},
    budget: {time: '60.000s', subsample: false},
    trials: [{name: 'x', settings: {batch: 8}}, {name: 'y'}],
  };
  assert.equal(
    toYaml(spec),
    `api: v1
name: "no"
data:
  folds: 5
  train: /data/train.csv
  columns: [a, "b: c", "7"]
model:
  mlp:
    dropout: 0
    hidden: [64]
budget:
  time: "60.000s"
  subsample: false
trials:
  - name: x
    settings:
      batch: 8
  - name: "y"`,
  );
});
