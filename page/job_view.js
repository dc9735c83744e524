// The page of one Job.

import {getJob, now} from './api.js';
import {CurvesPanel} from './curves_panel.js';
import {h} from './dom.js';
import {bytes, clock, count, duration, figure, moment, percent, plural} from './format.js';
import {actionKeys, actions} from './job_actions.js';
import {answersTable, attemptsTable, columnsTable, decisionList, foldsTable, trialsTable} from './job_tables.js';
import {streamJob} from './live.js';
import {endWords, health, isOver, qualityWords, resourceFacts, timeSpent, waiting} from './model.js';
import {timelinePanel} from './timeline_panel.js';
import {
  budgetBar,
  clockOf,
  empty,
  facts,
  jobLink,
  marked,
  qualityChip,
  section,
  stateChip,
  unanswered,
  when,
} from './ui.js';

const kFirstRows = 12;

export class JobPage {
  constructor(id) {
    this.id = id;
    this.open = new Set();
  }

  title() {
    return this.job ? `${this.job.name} ${this.job.state.toLowerCase()}` : this.id;
  }

  start(app) {
    this.app = app;
    this.panel = new CurvesPanel(app, this.id);
    this.load();
  }

  async load() {
    this.error = null;
    try {
      this.take(await getJob(this.id));
      if (!this.left && !isOver(this.job)) this.close = streamJob(this.id, (job) => this.take(job));
    } catch (e) {
      this.error = e;
      if (e.status === 404) e.message = `There is no Job ${this.id}.`;
      // Without a Job there is nothing to show but the error; traind itself may come back.
      if (!e.status && !this.left) setTimeout(() => !this.left && this.load(), 1500);
    }
    this.app.redraw();
  }

  take(job) {
    if (this.left || (this.job && job.version < this.job.version)) return;
    this.job = job;
    this.panel.follow(job);
    this.app.redraw();
  }

  stop() {
    this.left = true;
    if (this.close) this.close();
    this.panel.stop();
  }

  themed() {
    this.panel.themed();
  }

  keys() {
    return {
      ...actionKeys(this.app, this.job, (job) => this.take(job)),
      l: () => this.app.go(`jobs/${encodeURIComponent(this.id)}/logs`),
      s: () => this.app.go(`jobs/${encodeURIComponent(this.id)}/spec`),
      x: () => this.app.toast(`${marked.toggle(this.id).length} marked to compare`),
    };
  }

  tree() {
    const job = this.job;
    if (!job) {
      return h(
        'div',
        {class: 'page'},
        h('h1', {class: 'hidden'}, this.id),
        unanswered(this.error, () => this.load()),
      );
    }
    const time = now();
    const more = (name, rows) => this.more(name, rows);
    return h(
      'div',
      {class: 'page job'},
      this.head(job, time),
      job.files_missing &&
        h(
          'p',
          {class: 'notice bad'},
          'The folder of this Job was removed: nothing can be fetched, and no model is there to predict with.',
        ),
      h('div', {class: 'hero'}, this.clock(job, time), this.answer(job, time)),
      job.models_from || job.state === 'QUEUED' ? null : this.panel.tree(job),
      job.trials.length > 1 && trialsTable(job, time, more),
      timelinePanel(job, time),
      h('div', {class: 'columns'}, this.spent(job), decisionList(job, more)),
      job.trials.length > 1 ? null : foldsTable(job, more),
      columnsTable(job, more),
      answersTable(job, more),
      this.panel.system(job),
      this.below(job, time),
      attemptsTable(job, more),
    );
  }

  // ---- Above ------------------------------------------------------------------

  head(job, time) {
    return h(
      'div',
      {class: 'jobhead'},
      h(
        'div',
        {class: 'who'},
        h('p', {class: 'crumbs'}, h('a', {href: '#/jobs'}, 'Jobs'), ' / ', h('span', null, job.id)),
        h('h1', null, job.name),
        h(
          'div',
          {class: 'line'},
          stateChip(job.state),
          qualityChip(job.quality),
          Object.entries(job.labels).map(([k, v]) => h('span', {key: k, class: 'chip label'}, `${k}=${v}`)),
          job.priority ? h('span', {class: 'chip'}, `priority ${job.priority}`) : null,
          job.pinned && h('span', {class: 'chip'}, 'pinned'),
          job.end_reason && h('span', {class: 'muted'}, endWords(job.end_reason)),
        ),
      ),
      h(
        'div',
        {class: 'buttons'},
        h('a', {class: 'button', href: `${jobLink(job.id)}/logs`, title: 'key l'}, 'Logs'),
        h('a', {class: 'button', href: `${jobLink(job.id)}/spec`, title: 'key s'}, 'Spec'),
        actions(this.app, job, (next) => this.take(next)),
      ),
      job.end_message && h('p', {class: `notice ${job.state === 'FAILED' ? 'bad' : ''}`}, job.end_message),
      job.state === 'QUEUED' && h('p', {class: 'notice'}, `It waits: ${waiting(job)}.`),
    );
  }

  clock(job, time) {
    const over = isOver(job);
    const state = health(job, time);
    const reserve = job.plan ? job.plan.reserve_s : 0;
    return section(
      'Time',
      {key: 'time'},
      h(
        'div',
        {class: 'bigclock'},
        h('span', {class: 'num'}, clockOf(job, time)),
        h(
          'span',
          {class: 'words'},
          over ? 'taken' : job.deadline === null ? 'no deadline' : time > job.deadline ? 'over the deadline' : 'left',
        ),
        h('span', {class: `health ${state.kind}`}, h('i', null), state.text),
      ),
      budgetBar(job, time),
      h(
        'div',
        {class: 'budgetends num'},
        h('span', null, clock(job.runnable_at)),
        h('span', null, job.deadline === null ? '' : clock(job.deadline)),
      ),
      h(
        'ul',
        {class: 'legend'},
        h(
          'li',
          null,
          h('i', {class: 'swatch spent'}),
          over ? 'taken ' : 'spent ',
          h('b', {class: 'num'}, duration(((over ? job.finished_at : time) - job.runnable_at) / 1000)),
        ),
        !over &&
          job.estimated_finish !== null &&
          h(
            'li',
            null,
            h('i', {class: 'swatch planned'}),
            'planned to ',
            h('b', {class: 'num'}, clock(job.estimated_finish)),
          ),
        !over &&
          job.deadline !== null &&
          reserve > 0 &&
          h('li', null, h('i', {class: 'swatch held'}), 'held back ', h('b', {class: 'num'}, duration(reserve))),
      ),
      this.done(job.report),
    );
  }

  done(report) {
    if (!report || !report.folds_asked) return null;
    const share = report.used_share;
    return facts([
      [
        'folds done',
        `${report.folds_done} of ${report.folds_asked}` +
          (report.folds_reused ? `, ${report.folds_reused} taken over` : ''),
      ],
      ['epochs each', `${figure(report.epochs_done)} of ${figure(report.epochs_asked)}`],
      ['models trained', count(report.models_trained)],
      ['slots at work', share === null || share === undefined ? null : percent(share)],
      ...resourceFacts(report),
    ]);
  }

  answer(job, time) {
    const p = job.predictions;
    const s = job.scores;
    const title = isOver(job) ? 'The answer' : 'The answer you would get now';
    if (!p) {
      return section(
        title,
        {key: 'answer'},
        empty(
          isOver(job) ? 'This Job has left no prediction.' : 'No answer stands yet.',
          !isOver(job) && h('p', null, 'The floor, a simple model, answers within seconds of the start.'),
        ),
      );
    }
    const artifact = (name) => `/v1/jobs/${encodeURIComponent(job.id)}/artifacts/${name}`;
    return section(
      title,
      {key: 'answer', aside: qualityChip(p.quality)},
      h(
        'div',
        {class: 'bigscore'},
        h('span', {class: 'num'}, figure(s.oof)),
        h(
          'span',
          {class: 'words'},
          s.metric ? `${s.metric} out of fold` : '',
          s.oof !== null && s.oof !== undefined && !s.comparable ? ', over a part of the folds' : '',
        ),
      ),
      h('p', {class: 'muted'}, qualityWords(p.quality), '.'),
      facts([
        s.test !== null && s.test !== undefined && ['on the test file', figure(s.test)],
        s.floor !== null && s.floor !== undefined && ['the floor alone', figure(s.floor)],
        ['rows', count(p.rows)],
        [
          'models',
          p.members.some((m) => m.fold >= 0)
            ? count(p.members.filter((m) => m.fold >= 0 && m.weight > 0).length)
            : 'the floor',
        ],
        ['made', [`number ${p.number}, `, when(p.at, time)]],
      ]),
      !job.files_missing &&
        h(
          'div',
          {class: 'buttons'},
          h(
            'a',
            {class: 'button', href: artifact('predictions.csv'), download: `${job.id}-predictions.csv`},
            `Download predictions.csv`,
            p.bytes ? h('span', {class: 'muted'}, ` ${bytes(p.bytes)}`) : null,
          ),
        ),
    );
  }

  // ---- Tables -----------------------------------------------------------------

  more(name, rows) {
    if (rows.length <= kFirstRows || this.open.has(name)) return {rows, button: null};
    return {
      rows: rows.slice(0, kFirstRows),
      button: h(
        'button',
        {
          class: 'more',
          onclick: () => {
            this.open.add(name);
            this.app.redraw();
          },
        },
        `Show all ${rows.length}`,
      ),
    };
  }

  spent(job) {
    const parts = timeSpent(job.report);
    const sum = parts.reduce((total, part) => total + part.s, 0);
    if (!sum) return section('Where the time went', {}, empty('Nothing was measured yet.'));
    const report = job.report;
    return section(
      'Where the time went',
      {sub: 'seconds of all Attempts together'},
      h(
        'div',
        {class: 'stack', role: 'img', 'aria-label': parts.map((p) => `${p.name} ${percent(p.s / sum)}`).join(', ')},
        parts.map((p) =>
          h('span', {
            key: p.name,
            class: `part p-${p.name.replace(/\W+/g, '-')}`,
            title: `${p.name}: ${duration(p.s)}`,
            style: {width: `${(p.s / sum) * 100}%`},
          }),
        ),
      ),
      h(
        'dl',
        {class: 'spentlist'},
        parts.map((p) =>
          h(
            'div',
            {key: p.name},
            h('dt', null, h('i', {class: `p-${p.name.replace(/\W+/g, '-')}`}), p.name),
            h('dd', {class: 'num'}, duration(p.s), h('span', {class: 'muted'}, percent(p.s / sum))),
          ),
        ),
      ),
      report.more &&
        report.more.buys &&
        h(
          'p',
          {class: 'notice'},
          `${duration(parseFloat(report.more.time))} more would allow ${report.more.buys}`,
          report.more.score
            ? `: ${job.scores.metric} about ${figure(report.more.score)} instead of ${figure(report.more.score_now)}.`
            : '.',
        ),
    );
  }

  // ---- Below ------------------------------------------------------------------

  details(job, time) {
    const plan = job.plan;
    return section(
      'Details',
      {wide: true},
      facts([
        ['owner', job.owner],
        ['accepted', when(job.accepted_at, time)],
        ['started', job.started_at === null ? null : when(job.started_at, time)],
        ['deadline', job.deadline === null ? 'none' : moment(job.deadline, time)],
        ['ended', job.finished_at === null ? null : when(job.finished_at, time)],
        ['training rows', job.train_rows ? count(job.train_rows) : null],
        ['test rows', job.test_rows ? count(job.test_rows) : null],
        plan && [
          'plan',
          `${plural(plan.folds, 'fold')} × ${plural(plan.epochs, 'epoch')}, ${plan.parallel_folds} at a time, ${plural(plan.ranks, 'Rank')} each`,
        ],
        job.after.length > 0 && [
          'waits for',
          job.after.map((id, i) => [i > 0 && ', ', h('a', {key: id, href: jobLink(id)}, id)]),
        ],
        job.runnable_at > job.accepted_at && ['its time began', when(job.runnable_at, time)],
        job.from && ['continues', h('a', {href: jobLink(job.from)}, job.from)],
        job.models_from && ['models from', h('a', {href: jobLink(job.models_from)}, job.models_from)],
        ['results', h('code', null, job.results_dir)],
      ]),
      job.warnings.length > 0 && [
        h('h3', null, 'Warnings'),
        h(
          'ul',
          {class: 'warnings'},
          job.warnings.map((w, i) => h('li', {key: i}, w)),
        ),
      ],
    );
  }

  // Settings stand beside the details where there are some.
  below(job, time) {
    const pairs = settingsOf(job);
    const details = this.details(job, time);
    return pairs.length
      ? h(
          'div',
          {class: 'columns'},
          details,
          section('Settings', {sub: 'of the first trial, as they were resolved'}, facts(pairs)),
        )
      : details;
  }
}

// The settings that a running fold has resolved, else those of the first trial.
function settingsOf(job) {
  const live = job.folds.find((f) => f.live && f.live.resolved_settings);
  if (live)
    return live.live.resolved_settings
      .split(/\s+/)
      .map((pair) => pair.split(/=(.*)/s))
      .filter(([k, v]) => k && v);
  const trial = job.trials.find((t) => Number(t.index) === 0);
  return trial ? Object.entries(trial.settings || {}) : [];
}
