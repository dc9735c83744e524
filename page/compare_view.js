// Up to eight Jobs beside each other: their curves in one chart, their figures in one table.

import {getJob, getMetrics, listJobs, now} from './api.js';
import {chart, lineColour} from './chart.js';
import {band, Curves} from './curves.js';
import {h} from './dom.js';
import {count, duration, figure, percent} from './format.js';
import {refresh} from './live.js';
import {bestTrial, figureOf, flat, higherIsBetter, isOver, learning} from './model.js';
import {choice, empty, jobLink, qualityChip, section, stateChip, unanswered} from './ui.js';

const kMost = 8;

export class ComparePage {
  constructor(query) {
    this.name = '';
    this.axis = 'epoch';
    this.version = 0;
    this.entries = new Map();
    this.query(query);
  }

  query(values) {
    this.ids = [...new Set((values.get('jobs') || '').split(',').filter(Boolean))].slice(0, kMost);
    if (this.stop) this.stop.again();
  }

  start(app) {
    this.app = app;
    this.stop = refresh(this, 2500);
  }

  async load() {
    if (!this.recent) this.recent = (await listJobs({size: 60})).jobs;
    await Promise.all(this.ids.map((id) => this.loadJob(id)));
  }

  async loadJob(id) {
    let entry = this.entries.get(id);
    if (entry && entry.job && isOver(entry.job) && entry.complete) return;
    if (!entry) {
      entry = {curves: new Curves(), last: 0};
      this.entries.set(id, entry);
    }
    try {
      entry.job = await getJob(id);
      const over = isOver(entry.job);
      const {series, last} = await getMetrics(id, entry.last);
      entry.curves.add(series);
      entry.last = last;
      entry.complete = over;
      this.version++;
    } catch (e) {
      if (!e.status) throw e;
      entry.error = e;
      entry.complete = true;
    }
  }

  themed() {
    this.version++;
  }

  pick(ids) {
    this.app.go('compare' + (ids.length ? `?jobs=${ids.map(encodeURIComponent).join(',')}` : ''));
  }

  tree() {
    const head = h(
      'div',
      {class: 'pagehead'},
      h('h1', null, 'Compare'),
      h('p', {class: 'muted'}, `up to ${kMost} Jobs`),
    );
    if (!this.recent)
      return h(
        'div',
        {class: 'page'},
        head,
        unanswered(this.error, () => this.stop.again()),
      );
    const shown = this.ids.map((id) => this.entries.get(id)).filter((entry) => entry && entry.job);
    const missing = this.ids.filter((id) => this.entries.get(id) && this.entries.get(id).error);
    return h(
      'div',
      {class: 'page compare'},
      head,
      this.picker(shown),
      missing.map((id) => h('p', {key: id, class: 'notice bad'}, `${id}: ${this.entries.get(id).error.message}`)),
      shown.length
        ? [this.curvesOf(shown), this.figures(shown), this.settings(shown)]
        : empty(
            'Choose Jobs to see them beside each other.',
            h('p', null, 'In the list of Jobs, ', h('kbd', null, 'x'), ' marks the chosen one.'),
          ),
    );
  }

  picker(shown) {
    const others = this.recent.filter((job) => !this.ids.includes(job.id));
    return h(
      'div',
      {class: 'picked'},
      shown.map((entry, i) =>
        h(
          'span',
          {key: entry.job.id, class: 'chip pickedjob'},
          h('i', {style: {background: lineColour(i)}}),
          h('a', {href: jobLink(entry.job.id)}, entry.job.name),
          h('span', {class: 'id'}, entry.job.id),
          h(
            'button',
            {
              class: 'icon',
              'aria-label': `Take ${entry.job.id} away`,
              onclick: () => this.pick(this.ids.filter((id) => id !== entry.job.id)),
            },
            '×',
          ),
        ),
      ),
      this.ids.length < kMost &&
        others.length > 0 &&
        h(
          'select',
          {
            'aria-label': 'Add a Job',
            value: '',
            onchange: (e) => {
              if (e.target.value) this.pick([...this.ids, e.target.value]);
              e.target.value = '';
            },
          },
          h('option', {value: ''}, 'Add a Job…'),
          others.map((job) => h('option', {key: job.id, value: job.id}, `${job.name}  ${job.id}`)),
        ),
    );
  }

  curvesOf(shown) {
    const names = learning.filter((name) => shown.some((entry) => entry.curves.names().includes(name)));
    if (!names.length) return section('Curves', {wide: true}, empty('None of these Jobs has recorded figures.'));
    if (!names.includes(this.name)) this.name = names[0];
    const metrics = [...new Set(shown.map((entry) => entry.job.scores.metric).filter(Boolean))];
    const label = figureOf(this.name, metrics.length === 1 ? metrics[0] : '').label;
    const version = [this.version, this.name, this.axis, shown.map((entry) => entry.job.id)].join();
    if (!this.made || this.made.version !== version) {
      const lines = shown.map((entry, i) => ({
        label: entry.job.name,
        colour: lineColour(i),
        width: 2,
        ...this.lineOf(entry),
      }));
      this.made = {
        version,
        lines,
        band: null,
        axis: this.axis,
        height: 320,
        key: 'compare',
        label: `${label} of ${lines.map((line) => line.label).join(', ')}`,
      };
    }
    return section(
      'Curves',
      {
        wide: true,
        sub: 'the mean over the folds of each Job’s best trial',
        aside: choice(
          'Horizontal axis',
          [
            ['epoch', 'epoch'],
            ['step', 'step'],
            ['time', 'time of a fold'],
          ],
          this.axis,
          (axis) => {
            this.axis = axis;
            this.app.redraw();
          },
        ),
      },
      h(
        'div',
        {class: 'curvehead'},
        choice(
          'Figure',
          names.map((name) => [name, figureOf(name, metrics.length === 1 ? metrics[0] : '').label]),
          this.name,
          (name) => {
            this.name = name;
            this.app.redraw();
          },
        ),
      ),
      metrics.length > 1 &&
        this.name === 'val_metric' &&
        h('p', {class: 'notice'}, `These Jobs have different metrics: ${metrics.join(', ')}.`),
      chart(this.made),
    );
  }

  lineOf(entry) {
    const job = entry.job;
    const best = job.trials.length > 1 ? bestTrial(job) : 0;
    const lines = entry.curves.lines(this.name, job.attempts, this.axis, null).filter((line) => line.trial === best);
    if (lines.length < 2) return {x: lines[0] ? lines[0].x : [], y: lines[0] ? lines[0].y : []};
    const b = band(lines);
    return {x: b.x, y: b.mean};
  }

  figures(shown) {
    const metric = shown[0].job.scores.metric;
    const same = shown.every((entry) => entry.job.scores.metric === metric);
    const taken = (job) => ((job.finished_at === null ? now() : job.finished_at) - job.runnable_at) / 1000;
    const rows = [
      ['state', (job) => stateChip(job.state)],
      ['quality', (job) => qualityChip(job.quality) || '–'],
      ['metric', (job) => job.scores.metric || '–'],
      [
        'out of fold',
        (job) => figure(job.scores.oof),
        (job) => job.scores.oof,
        same ? (higherIsBetter(metric) ? 1 : -1) : 0,
      ],
      [
        'test',
        (job) => figure(job.scores.test),
        (job) => job.scores.test,
        same ? (higherIsBetter(metric) ? 1 : -1) : 0,
      ],
      ['floor', (job) => figure(job.scores.floor)],
      ['time taken', (job) => duration(taken(job)), taken, -1],
      [
        'slot time',
        (job) => (job.report ? duration(Number(job.report.device_s)) : '–'),
        (job) => job.report && Number(job.report.device_s),
        -1,
      ],
      ['folds done', (job) => (job.report ? `${job.report.folds_done} of ${job.report.folds_asked}` : '–')],
      ['epochs each', (job) => (job.report ? figure(job.report.epochs_done) : '–')],
      ['models trained', (job) => (job.report ? count(job.report.models_trained) : '–')],
      ['training rows', (job) => count(job.train_rows)],
      ['slots at work', (job) => percent(job.report ? job.report.used_share : null)],
      ['Decisions', (job) => count(job.decisions.length)],
    ];
    return section(
      'Figures',
      {wide: true, sub: shown.length > 1 ? 'the best of a row is bold' : null},
      this.grid('Figures', shown, rows),
    );
  }

  grid(label, shown, rows) {
    return h(
      'div',
      {class: 'tablebox', tabindex: '0', role: 'region', 'aria-label': `${label} beside each other`},
      h(
        'table',
        {class: 'beside'},
        h(
          'thead',
          null,
          h(
            'tr',
            null,
            h('td', null),
            shown.map((entry) =>
              h('th', {key: entry.job.id, scope: 'col'}, entry.job.name, h('span', {class: 'id'}, entry.job.id)),
            ),
          ),
        ),
        h(
          'tbody',
          null,
          rows.map(([name, cell, value, sign]) => {
            const values = sign
              ? shown.map((entry) => value(entry.job)).filter((v) => typeof v === 'number' && isFinite(v))
              : [];
            const best = values.length > 1 ? sign * Math.max(...values.map((v) => v * sign)) : null;
            return h(
              'tr',
              {key: name},
              h('th', {scope: 'row'}, name),
              shown.map((entry) =>
                h(
                  'td',
                  {key: entry.job.id, class: 'num'},
                  best !== null && value(entry.job) === best ? h('b', null, cell(entry.job)) : cell(entry.job),
                ),
              ),
            );
          }),
        ),
      ),
    );
  }

  // Where the settings of the first trials and the Plans differ.
  settings(shown) {
    if (shown.length < 2) return null;
    const maps = shown.map((entry) => {
      const {job} = entry;
      const trial = job.trials.find((t) => Number(t.index) === 0);
      const plan = job.plan || {};
      return flat({
        plan: {folds: plan.folds, epochs: plan.epochs, ranks: plan.ranks},
        kind: trial ? trial.kind : ((job.predictions && job.predictions.members.find((m) => m.fold >= 0)) || {}).kind,
        settings: trial ? trial.settings : {},
        priority: job.priority,
        labels: job.labels,
      });
    });
    const keys = [...new Set(maps.flatMap((map) => Object.keys(map)))].filter((key) =>
      maps.some((map) => map[key] !== maps[0][key]),
    );
    if (!keys.length) return null;
    return section(
      'Differences',
      {wide: true, sub: 'of Plans and settings'},
      this.grid(
        'Differences',
        shown,
        keys.map((key) => [key, (job) => maps[shown.findIndex((entry) => entry.job === job)][key] || '–']),
      ),
    );
  }
}
