import assert from 'node:assert/strict';
import test from 'node:test';

import {band, Curves, extent, lowerBound, smooth, thin, valueAt} from '../../../page/curves.js';

const series = (attempt, step, value) => ({
  name: 'loss',
  fold: 0,
  attempt,
  step,
  epoch: step.map((s) => s / 10),
  at_s: step.map((s) => 100 + s),
  value,
});
const fold = (id, number, first = 0) => ({id, kind: 'fold', trial: 0, fold: number, seed: 0, first_step: first});

test('an Attempt that went on from a checkpoint replaces the steps behind it', () => {
  const curves = new Curves();
  curves.add([series(1, [1, 2, 3, 4], [9, 8, 7, 6]), series(2, [3, 4, 5], [70, 60, 50])]);
  const [line] = curves.lines('loss', [fold(1, 0), fold(2, 0, 2)], 'step');
  assert.deepEqual(line.x, [1, 2, 3, 4, 5]);
  assert.deepEqual(line.y, [9, 8, 70, 60, 50]);
});

test('an Attempt that began anew leaves nothing of the one before', () => {
  const curves = new Curves();
  curves.add([series(1, [1, 2], [9, 8]), series(2, [1, 2], [5, 4])]);
  assert.deepEqual(curves.lines('loss', [fold(1, 0), fold(2, 0)], 'step')[0].y, [5, 4]);
});

test('figures that arrive later go behind those that are there', () => {
  const curves = new Curves();
  curves.add([series(1, [1], [9])]);
  curves.add([series(1, [2], [8])]);
  assert.deepEqual(curves.lines('loss', [fold(1, 0)], 'epoch')[0], {
    trial: 0,
    fold: 0,
    seed: 0,
    x: [0.1, 0.2],
    y: [9, 8],
  });
  assert.equal(curves.count, 2);
});

test('time counts from the origin, or from the first figure of a model', () => {
  const curves = new Curves();
  curves.add([series(1, [5, 7], [1, 2])]);
  assert.deepEqual(curves.lines('loss', [fold(1, 0)], 'time', 100000)[0].x, [5, 7]);
  assert.deepEqual(curves.lines('loss', [fold(1, 0)], 'time', null)[0].x, [0, 2]);
});

test('values that are no numbers are gaps', () => {
  const curves = new Curves();
  curves.add([series(1, [1, 2, 3], [null, 'NaN', 'Infinity'])]);
  const {y} = curves.lines('loss', [fold(1, 0)], 'step')[0];
  assert.ok(Number.isNaN(y[0]) && Number.isNaN(y[1]) && y[2] === Infinity);
  assert.equal(extent([y]), null);
});

test('figures of Attempts that the Job does not list are left out', () => {
  const curves = new Curves();
  curves.add([series(7, [1], [1])]);
  assert.deepEqual(curves.lines('loss', [fold(1, 0)], 'step'), []);
});

test('a band needs two lines at a place', () => {
  const b = band([
    {x: [0, 1, 2], y: [1, 2, 3]},
    {x: [0, 1], y: [3, 4]},
  ]);
  assert.deepEqual(b, {x: [0, 1], mean: [2, 3], low: [1, 2], high: [3, 4]});
});

test('a band lies between the lines also where their places differ', () => {
  const b = band([
    {x: [0, 10], y: [0, 10]},
    {x: [0, 5, 10], y: [2, 7, 12]},
  ]);
  assert.deepEqual(b.x, [0, 5, 10]);
  assert.deepEqual(b.mean, [1, 6, 11]);
});

test('values between points are on a line; there are none outside', () => {
  const line = {x: [1, 3], y: [10, 20]};
  assert.equal(valueAt(line, 2), 15);
  assert.equal(valueAt(line, 3), 20);
  assert.ok(Number.isNaN(valueAt(line, 0.5)) && Number.isNaN(valueAt(line, 3.5)));
});

test('thinning keeps the first, the last and every peak', () => {
  const n = 100000;
  const x = Array.from({length: n}, (_, i) => i);
  const y = x.map((i) => Math.sin(i / 500));
  y[54321] = 99;
  y[777] = -99;
  const out = [];
  thin(x, y, 0, n, 0, n - 1, 800, (px, py) => out.push([px, py]));
  assert.ok(out.length <= 3 * 801, `${out.length} points`);
  assert.deepEqual(out[out.length - 1], [n - 1, y[n - 1]]);
  assert.ok(out.some(([, v]) => v === 99) && out.some(([, v]) => v === -99));
  assert.ok(out.every(([px], i) => i === 0 || px >= out[i - 1][0]));
});

test('thinning draws few points as they are, and a gap as a gap', () => {
  const out = [];
  thin([1, 2, 3], [5, NaN, 6], 0, 3, 1, 3, 800, (x, y) => out.push(y));
  assert.deepEqual(out, [5, NaN, 6]);
});

test('smoothing follows the values, and none changes nothing', () => {
  assert.deepEqual(smooth([1, 2, 3], 0), [1, 2, 3]);
  assert.deepEqual(smooth([0, 10], 0.5), [0, 5]);
  assert.deepEqual(smooth([NaN, 10, NaN, 20], 0.5), [NaN, 10, NaN, 15]);
});

test('places are found by halving', () => {
  assert.deepEqual(
    [0, 1, 2.5, 9].map((v) => lowerBound([1, 2, 3], v)),
    [0, 0, 2, 3],
  );
});

test('a logarithm takes positive values only', () => {
  assert.deepEqual(extent([[-1, 0, 0.5, 8]], true), [0.5, 8]);
});
