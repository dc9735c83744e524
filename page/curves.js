// Training figures as columns of numbers, joined over Attempts, thinned for drawing. Pure functions and data.

// All figures of a Job, as they arrive.
export class Curves {
  constructor() {
    this.byName = new Map(); // name -> Attempt -> columns
    this.count = 0;
  }

  // `series` are columns of one name and Attempt: {name, attempt, step, epoch, at_s, value}.
  add(series) {
    for (const s of series) {
      const columns = this.columns(s.name, Number(s.attempt));
      for (let i = 0; i < s.value.length; i++) {
        columns.step.push(s.step[i]);
        columns.epoch.push(s.epoch[i]);
        columns.at.push(s.at_s[i] * 1000);
        // JSON has no NaN and no infinity: they come as words, or as null.
        columns.value.push(s.value[i] === null ? NaN : Number(s.value[i]));
      }
      this.count += s.value.length;
    }
  }

  columns(name, attempt) {
    if (!this.byName.has(name)) this.byName.set(name, new Map());
    const attempts = this.byName.get(name);
    if (!attempts.has(attempt)) attempts.set(attempt, {step: [], epoch: [], at: [], value: []});
    return attempts.get(attempt);
  }

  names() {
    return [...this.byName.keys()];
  }

  // A line for each model (trial, fold, seed) that has figures of this name: {trial, fold, seed, x, y}.
  // `axis` is epoch, step or time: seconds since `origin`, or since the model's first figure where that is null. A later Attempt of a model that went on from a
  // checkpoint replaces the steps behind that checkpoint.
  lines(name, attempts, axis = 'epoch', origin = 0) {
    const found = this.byName.get(name);
    if (!found) return [];
    const models = new Map();
    for (const attempt of attempts) {
      if (attempt.kind !== 'fold' || !found.has(attempt.id)) continue;
      const key = `${attempt.trial}/${attempt.fold}/${attempt.seed}`;
      if (!models.has(key)) models.set(key, {trial: attempt.trial, fold: attempt.fold, seed: attempt.seed, parts: []});
      models.get(key).parts.push({first: attempt.first_step || 0, id: attempt.id, columns: found.get(attempt.id)});
    }
    return [...models.values()].map((model) => join(model, axis, origin));
  }
}

function join(model, axis, origin) {
  const parts = model.parts.sort((a, b) => a.id - b.id);
  const began = origin === null ? parts[0].columns.at[0] : origin;
  const x = [];
  const y = [];
  parts.forEach((part, i) => {
    const end = Math.min(...parts.slice(i + 1).map((later) => later.first), Infinity);
    const {step, epoch, at, value} = part.columns;
    for (let k = 0; k < value.length; k++) {
      if (step[k] > end) break;
      x.push(axis === 'epoch' ? epoch[k] : axis === 'step' ? step[k] : (at[k] - began) / 1000);
      y.push(value[k]);
    }
  });
  return {trial: model.trial, fold: model.fold, seed: model.seed, x, y};
}

// Exponential moving mean with the weight `share` for the past; gaps stay gaps.
export function smooth(y, share) {
  if (!share) return y;
  let mean = NaN;
  return y.map((value) => {
    if (!isFinite(value)) return value;
    mean = isFinite(mean) ? share * mean + (1 - share) * value : value;
    return mean;
  });
}

// The first index whose x is not below `value`.
export function lowerBound(x, value) {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Mean, least and greatest over lines at each of at most `most` places where two or more of them are.
export function band(lines, most = 200) {
  const wanted = new Set();
  for (const line of lines) for (const x of line.x) wanted.add(x);
  let grid = [...wanted].sort((a, b) => a - b);
  if (grid.length > most) {
    const [low, high] = [grid[0], grid[grid.length - 1]];
    grid = Array.from({length: most}, (_, i) => low + ((high - low) * i) / (most - 1));
  }
  const out = {x: [], mean: [], low: [], high: []};
  for (const x of grid) {
    const values = lines.map((line) => valueAt(line, x)).filter(isFinite);
    if (values.length < 2) continue;
    out.x.push(x);
    out.mean.push(values.reduce((a, b) => a + b, 0) / values.length);
    out.low.push(Math.min(...values));
    out.high.push(Math.max(...values));
  }
  return out;
}

// On the straight line between two points; NaN before the first and behind the last one.
export function valueAt({x, y}, at) {
  const i = lowerBound(x, at);
  if (i === x.length) return NaN;
  if (x[i] === at) return y[i];
  if (i === 0) return NaN;
  const share = (at - x[i - 1]) / (x[i] - x[i - 1]);
  return y[i - 1] + share * (y[i] - y[i - 1]);
}

// Points from `from` to `to` (indices) for a drawing that is `columns` wide: of each column the first, least,
// greatest and last value, so that no peak is lost. Calls draw(x, y), or draw(x, NaN) at a gap.
export function thin(x, y, from, to, low, high, columns, draw) {
  if (to - from <= 2 * columns) {
    for (let i = from; i < to; i++) draw(x[i], y[i]);
    return;
  }
  const scale = columns / (high - low || 1);
  let i = from;
  while (i < to) {
    const column = Math.floor((x[i] - low) * scale);
    let least = i;
    let greatest = i;
    let last = i;
    let gap = false;
    for (; i < to && Math.floor((x[i] - low) * scale) === column; i++) {
      if (!isFinite(y[i])) {
        gap = true;
        continue;
      }
      if (!(y[least] <= y[i])) least = i;
      if (!(y[greatest] >= y[i])) greatest = i;
      last = i;
    }
    const first = Math.min(least, greatest);
    const second = Math.max(least, greatest);
    draw(x[first], y[first]);
    if (second !== first) draw(x[second], y[second]);
    if (last > second) draw(x[last], y[last]);
    if (gap) draw(x[last], NaN);
  }
}

// The least and the greatest finite value; null where there is none. `positive` leaves out what a logarithm cannot
// take.
export function extent(lists, positive = false) {
  let low = Infinity;
  let high = -Infinity;
  for (const values of lists) {
    for (const v of values) {
      if (!isFinite(v) || (positive && v <= 0)) continue;
      if (v < low) low = v;
      if (v > high) high = v;
    }
  }
  return low <= high ? [low, high] : null;
}
