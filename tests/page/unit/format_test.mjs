import assert from 'node:assert/strict';
import test from 'node:test';

import {
  bytes,
  countdown,
  deviceFigures,
  duration,
  figure,
  parseDuration,
  percent,
  ticks,
  timeMark,
  timeTicks,
} from '../../../page/format.js';

test('durations have the unit that fits', () => {
  const written = {
    0: '0 ms',
    0.25: '250 ms',
    3.21: '3.2 s',
    9.96: '10 s',
    59.6: '1 m 00 s',
    90: '1 m 30 s',
    3599.7: '1 h 00 m',
    7500: '2 h 05 m',
    86399: '1 d 0 h',
    273600: '3 d 4 h',
  };
  for (const [s, text] of Object.entries(written)) assert.equal(duration(Number(s)), text);
  assert.equal(duration(-5), '−5.0 s');
  assert.equal(duration(null), '–');
});

test('a clock runs down to zero and beyond', () => {
  assert.equal(countdown(42.9), '0:42');
  assert.equal(countdown(725), '12:05');
  assert.equal(countdown(3723), '1:02:03');
  assert.equal(countdown(2 * 86400 + 3 * 3600 + 240), '2 d 03:04');
  assert.equal(countdown(-5), '−0:05');
});

test('durations are read as specs write them, and nothing else is', () => {
  const read = {
    '90s': 90,
    '15m': 900,
    '1h30m': 5400,
    '2d': 172800,
    '500ms': 0.5,
    '3.484s': 3.484,
    '20 s': 20,
    ' 1m ': 60,
  };
  for (const [text, s] of Object.entries(read)) assert.equal(parseDuration(text), s);
  for (const text of ['', '90', 'soon', '5x', '1h 2', '-5s', '1e3s']) assert.equal(parseDuration(text), null, text);
});

test('figures have four digits', () => {
  const written = {
    0: '0',
    0.98405: '0.984',
    0.9930795: '0.9931',
    12.3456: '12.35',
    8792.64: '8,793',
    0.00007: '7.00e−5',
    2.5e7: '2.50e7',
  };
  for (const [x, text] of Object.entries(written)) assert.equal(figure(Number(x)), text);
  assert.equal(figure(-1.5), '−1.5');
  assert.equal(figure(NaN), 'NaN');
  assert.equal(figure(-Infinity), '−∞');
  assert.equal(figure(undefined), '–');
});

test('bytes and shares', () => {
  assert.equal(bytes(43098), '42.1 KiB');
  assert.equal(bytes(25274793984), '23.5 GiB');
  assert.equal(percent(0.0281), '2.8 %');
  assert.equal(percent(0.02), '2 %');
  assert.equal(percent(1), '100 %');
});

test('marks of an axis are round and inside it', () => {
  assert.deepEqual(ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(ticks(0.751, 0.993, 3), [0.8, 0.9]);
  for (const [low, high] of [
    [-3, 7],
    [1e-9, 3e-9],
    [0, 123456],
    [0.97, 0.98],
  ]) {
    const marks = ticks(low, high, 6);
    assert.ok(marks.length >= 2 && marks.length <= 7, `${marks}`);
    assert.ok(marks.every((m) => m >= low - 1e-12 && m <= high + 1e-12));
  }
  assert.deepEqual(ticks(5, 5, 4), [5]);
  assert.deepEqual(timeTicks(0, 90, 4), [0, 30, 60, 90]);
  assert.deepEqual([0, 30, 90, 300, 5400, 7200].map(timeMark), ['0', '30 s', '1:30', '5 m', '1:30 h', '2 h']);
});

test('what a GPU told last is one line, without what it does not tell', () => {
  const figures = {utilisation: 0.72, memory_bytes: 3 * 2 ** 30, power_watts: 249.6, temperature_celsius: 61};
  assert.equal(deviceFigures(figures), '72 %, 3.0 GiB, 250 W, 61 °C');
  assert.equal(deviceFigures({...figures, utilisation: null, power_watts: null}), '3.0 GiB, 61 °C');
  assert.equal(deviceFigures(null), '–');
});
