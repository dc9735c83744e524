// The curves of a Job: one figure at a time in large, the machine's figures in small.

import {getMetrics} from './api.js';
import {chart, lineColour} from './chart.js';
import {band, Curves, smooth} from './curves.js';
import {h} from './dom.js';
import {bytes, count, figure, percent} from './format.js';
import {bestTrial, figureOf, isOver, leaderboard, learning} from './model.js';
import {choice, empty, loading, section} from './ui.js';

const kEveryMs = 1000;
const kMostLines = 60;

export class CurvesPanel {
  constructor(app, id) {
    this.app = app;
    this.id = id;
    this.curves = new Curves();
    this.last = 0;
    this.version = 0;
    this.name = '';
    this.axis = 'epoch';
    this.log = false;
    this.smoothing = 0;
    this.trial = 'best';
    this.made = new Map();
  }

  // Loads what is new; at most one call at a time, and at most one a second. The end of a Job is always loaded.
  async follow(job) {
    this.job = job;
    if (this.loading) {
      this.again = true;
      return;
    }
    const wait = kEveryMs - (Date.now() - (this.loadedAt || 0));
    if (wait > 0 && this.loadedAt) {
      if (!this.timer) {
        this.timer = setTimeout(() => {
          this.timer = 0;
          this.follow(this.job);
        }, wait);
      }
      return;
    }
    this.loading = true;
    this.again = false;
    try {
      const {series, last} = await getMetrics(this.id, this.last);
      this.last = last;
      this.ready = true;
      if (series.length) {
        this.curves.add(series);
        this.version++;
      }
      this.error = null;
    } catch (e) {
      this.error = e;
      this.again = !isOver(this.job);
    }
    this.loading = false;
    this.loadedAt = Date.now();
    this.app.redraw();
    if (this.again) this.follow(this.job);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = -1;
  }

  themed() {
    this.version++;
  }

  set(values) {
    Object.assign(this, values);
    this.version++;
    this.app.redraw();
  }

  tree(job) {
    const names = this.curves.names();
    const own = learning.filter((name) => names.includes(name));
    if (!own.includes(this.name)) this.name = own[0] || '';
    const aside =
      this.name &&
      h(
        'div',
        {class: 'controls'},
        choice(
          'Horizontal axis',
          [
            ['epoch', 'epoch'],
            ['step', 'step'],
            ['time', 'time'],
          ],
          this.axis,
          (axis) => this.set({axis}),
        ),
        h(
          'button',
          {class: 'toggle', 'aria-pressed': this.log ? 'true' : 'false', onclick: () => this.set({log: !this.log})},
          'log',
        ),
        h(
          'label',
          {class: 'smooth'},
          'smooth',
          h('input', {
            type: 'range',
            min: 0,
            max: 0.95,
            step: 0.05,
            value: String(this.smoothing),
            oninput: (e) => this.set({smoothing: Number(e.target.value)}),
          }),
        ),
      );
    return section(
      'Curves',
      {wide: true, aside},
      this.name
        ? [
            h(
              'div',
              {class: 'curvehead'},
              choice(
                'Figure',
                own.map((name) => [name, figureOf(name, job.scores.metric).label]),
                this.name,
                (name) => this.set({name}),
              ),
              this.trialPicker(job),
            ),
            this.large(job),
          ]
        : this.error && this.error.status
          ? empty(this.error.message)
          : this.ready
            ? empty(isOver(job) ? 'This Job has recorded no figures.' : 'The first epoch has not ended yet.')
            : loading('Loading figures…'),
    );
  }

  trialPicker(job) {
    if (job.trials.length < 2) return null;
    const tried = leaderboard(job, 0).filter((t) => t.done || t.running);
    return h(
      'label',
      {class: 'pick'},
      'Trial ',
      h(
        'select',
        {value: this.trial, onchange: (e) => this.set({trial: e.target.value})},
        h('option', {value: 'best'}, 'the best one'),
        h('option', {value: 'all'}, 'all, by their mean'),
        tried.map((t) =>
          h(
            'option',
            {key: t.index, value: String(t.index)},
            `${t.name}${t.score === null ? '' : ' ' + figure(t.score)}`,
          ),
        ),
      ),
    );
  }

  // The lines of a figure, and a band where there are several. It is made once for each state of the data.
  drawing(job, name, trial, {height, axis, log, smoothing, means}) {
    const key = `${name}/${height}`;
    const version = [this.version, axis, log, smoothing, trial, job.attempts.length].join();
    const made = this.made.get(key);
    if (made && made.version === version) return made;
    const found = this.curves.lines(name, job.attempts, axis, job.started_at || job.accepted_at);
    const all = found.map((line) => ({...line, y: smooth(line.y, smoothing)}));
    const fresh =
      trial === 'all'
        ? this.perTrial(job, all)
        : this.perFold(
            all.filter((line) => trial === null || line.trial === trial),
            means,
          );
    const known = figureOf(name, job.scores.metric);
    Object.assign(fresh, {
      key,
      version,
      height,
      axis,
      log: log && !known.share,
      known,
      format: known.share ? percent : known.bytes ? bytes : figure,
      label: sentence(known.label, axis, fresh.lines),
    });
    this.made.set(key, fresh);
    return fresh;
  }

  // `means`: whether the folds have a mean; by the clock they have none, for they train one after the other.
  perFold(lines, means) {
    const shown = lines.slice(0, kMostLines).map((line) => ({
      ...line,
      label: `fold ${line.fold}${line.seed ? ` seed ${line.seed}` : ''}`,
      colour: lineColour(line.fold),
      faint: means && lines.length > 1,
    }));
    if (lines.length < 2 || !means) return {lines: shown, band: null};
    const b = band(lines);
    const ink = lineColour(7);
    return {
      lines: [...shown, {label: 'mean', x: b.x, y: b.mean, colour: ink, width: 2.5}],
      band: {x: b.x, low: b.low, high: b.high, colour: ink},
    };
  }

  // A line for each trial: the mean of its folds. The best ones have colours, the others are grey.
  perTrial(job, lines) {
    const order = leaderboard(job, 0)
      .filter((t) => lines.some((line) => line.trial === t.index))
      .slice(0, kMostLines);
    const shown = order.map((t, rank) => {
      const own = lines.filter((line) => line.trial === t.index);
      const b = own.length > 1 ? band(own) : {x: own[0].x, mean: own[0].y};
      return {
        label: t.name,
        x: b.x,
        y: b.mean,
        colour: lineColour(Math.min(rank, 7)),
        faint: rank > 6,
        width: rank === 0 ? 2.5 : 1.5,
      };
    });
    return {lines: shown.reverse(), band: null};
  }

  trialShown(job) {
    if (job.trials.length < 2) return null;
    if (this.trial === 'all') return 'all';
    if (this.trial !== 'best') return Number(this.trial);
    return bestTrial(job);
  }

  large(job) {
    const drawing = this.drawing(job, this.name, this.trialShown(job), {
      height: 300,
      axis: this.axis,
      log: this.log,
      smoothing: this.smoothing,
      means: this.axis !== 'time',
    });
    return [
      chart(drawing),
      h(
        'ul',
        {class: 'legend'},
        [...drawing.lines]
          .reverse()
          .slice(0, 12)
          .map((line) =>
            h(
              'li',
              {key: line.label},
              h('i', {style: {background: line.colour}}),
              line.label,
              ' ',
              h('b', {class: 'num'}, line.y.length ? drawing.format(line.y[line.y.length - 1]) : '–'),
            ),
          ),
        h('li', {class: 'hint'}, `${count(this.curves.count)} values; drag to zoom, double-click for all`),
      ),
    ];
  }

  // The curves of the machine.
  system(job) {
    const names = this.curves.names().filter((name) => !learning.includes(name));
    if (!names.length) return null;
    return section(
      'Machine',
      {wide: true, sub: 'speed, waiting and memory of the Ranks, by the clock'},
      h(
        'div',
        {class: 'small'},
        names.map((name) => {
          const drawing = this.drawing(job, name, null, {
            height: 130,
            axis: 'time',
            log: false,
            smoothing: 0,
            means: false,
          });
          const lasts = drawing.lines
            .map((line) => line.y[line.y.length - 1])
            .filter((v) => v !== undefined && isFinite(v));
          return h(
            'figure',
            {key: name},
            h(
              'figcaption',
              null,
              drawing.known.label,
              h('b', {class: 'num'}, lasts.length ? drawing.format(lasts[lasts.length - 1]) : '–'),
            ),
            chart(drawing),
          );
        }),
      ),
    );
  }
}

// For those who do not see the picture.
function sentence(label, axis, lines) {
  const parts = lines
    .slice(-6)
    .filter((line) => line.y.length)
    .map((line) => `${line.label} at last ${figure(line.y[line.y.length - 1])}`);
  return `${label} by ${axis}: ${parts.join(', ') || 'no values yet'}`;
}
