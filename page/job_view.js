// The page of one Job.

import {getJob, now} from './api.js';
import {CurvesPanel} from './curves_panel.js';
import {h} from './dom.js';
import {bytes, clock, count, duration, figure, moment, percent, plural} from './format.js';
import {actionKeys, actions} from './job_actions.js';
import {streamJob} from './live.js';
import {
  decisionWords,
  endWords,
  foldTable,
  health,
  isOver,
  leaderboard,
  qualityWords,
  resourceFacts,
  ruleWords,
  timeSpent,
  waiting,
} from './model.js';
import {attemptWords, timelinePanel} from './timeline_panel.js';
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
  table,
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
      job.trials.length > 1 && this.board(job, time),
      timelinePanel(job, time),
      h('div', {class: 'columns'}, this.spent(job), this.decisions(job)),
      job.trials.length > 1 ? null : this.folds(job),
      this.panel.system(job),
      this.below(job, time),
      this.attempts(job),
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

  board(job, time) {
    const tried = leaderboard(job, time).filter((t) => t.done || t.running || t.score !== null);
    const {rows, button} = this.more('trials', tried);
    const search = job.search && job.search.parameters && job.search.parameters.length ? job.search.parameters : null;
    const heaviest = Math.max(...tried.map((t) => t.weight), 1e-9);
    const columns = [
      {head: '#', num: true, cell: (t, i) => i + 1},
      {
        head: 'Trial',
        cell: (t) => [
          h('b', null, t.name),
          t.running && h('span', {class: 'chip state running'}, h('i', null), 'running'),
        ],
      },
      {head: job.scores.metric || 'Score', num: true, cell: (t) => h('b', null, figure(t.score))},
      {
        head: 'Range',
        num: true,
        cell: (t) => (t.low === null || t.low === t.high ? '–' : `${figure(t.low)} – ${figure(t.high)}`),
      },
      {head: 'Folds', num: true, cell: (t) => (t.index < 0 ? '–' : `${t.done}/${job.plan ? job.plan.folds : t.done}`)},
      {
        head: 'Weight',
        num: true,
        cell: (t) => [
          h('span', {class: 'weight'}, h('span', {style: {width: `${(t.weight / heaviest) * 100}%`}})),
          t.weight ? percent(t.weight) : '–',
        ],
      },
      {head: 'Slot time', num: true, cell: (t) => (t.index < 0 ? '–' : duration(t.spent_s))},
      {head: 'Settings', class: 'settings', cell: (t) => settingsText(t)},
    ];
    return section(
      'Leaderboard',
      {
        wide: true,
        sub: `${tried.filter((t) => t.index >= 0).length} of ${plural(job.trials.length, 'trial')} tried; the weight is the share of the answer`,
      },
      tried.length ? table(columns, rows, {key: (t) => t.index, label: 'Trials'}) : empty('No trial has a score yet.'),
      button,
      search &&
        h(
          'div',
          {class: 'importance'},
          h('h3', null, 'What the search varies'),
          h(
            'ul',
            null,
            search.map((p) =>
              h(
                'li',
                {key: p.path},
                h('code', null, p.path),
                ' ',
                h('span', {class: 'muted'}, p.range),
                ' ',
                p.importance === null || p.importance === undefined
                  ? null
                  : h('b', {class: 'num'}, percent(p.importance)),
              ),
            ),
          ),
        ),
    );
  }

  folds(job) {
    const all = foldTable(job);
    if (!all.length) return null;
    const columns = [
      {head: 'Fold', num: true, cell: (f) => f.index + (f.seed ? ` seed ${f.seed}` : '')},
      {
        head: 'State',
        cell: (f) => h('span', {class: `chip state ${f.state.toLowerCase()}`}, h('i', null), f.state.toLowerCase()),
      },
      {head: 'Epochs', num: true, cell: (f) => `${Number(f.progress.done.toFixed(1))}/${f.progress.planned}`},
      {head: job.scores.metric || 'Score', num: true, cell: (f) => h('b', null, figure(f.score))},
      {head: 'Best epoch', num: true, cell: (f) => (f.epoch === null ? '–' : figure(f.epoch))},
      {head: 'Weight', num: true, cell: (f) => (f.weight ? percent(f.weight) : '–')},
      {
        head: 'Speed',
        num: true,
        cell: (f) => (f.live ? `${count(Number(f.live.samples_per_s))}/s` : '–'),
        title: 'samples per second',
      },
      {head: 'Attempts', num: true, cell: (f) => count(f.attempts)},
      {
        head: 'Note',
        class: 'settings',
        cell: (f) => [
          f.message,
          f.from_job && [
            f.message ? ', ' : '',
            f.reused ? 'taken over from ' : 'went on from ',
            h('a', {href: jobLink(f.from_job)}, f.from_job),
          ],
        ],
      },
    ];
    const {rows, button} = this.more('folds', all);
    return section(
      'Folds',
      {wide: true, sub: 'the models behind the answer'},
      table(columns, rows, {key: (f) => `${f.index}/${f.seed}`, label: 'Folds'}),
      button,
    );
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

  decisions(job) {
    const all = job.decisions.map((d, i) => ({...d, i}));
    if (!all.length)
      return section(
        'Decisions',
        {},
        empty('Nothing was cut or changed.', h('p', null, 'The Job ran as its spec asked.')),
      );
    const {rows, button} = this.more('decisions', all);
    return section(
      'Decisions',
      {sub: `${plural(all.length, 'change')} of the Plan, with what was measured`},
      h(
        'ol',
        {class: 'decisionlist'},
        rows.map((d) =>
          h(
            'li',
            {key: d.i, id: `decision-${d.i}`},
            h(
              'div',
              {class: 'line'},
              h('span', {class: 'num muted'}, sinceStart(job, d.at)),
              h('b', null, ruleWords(d.rule)),
              h('span', {class: 'chip'}, d.rule),
            ),
            h('p', null, decisionWords(d)),
            d.cause && h('details', null, h('summary', null, 'why'), h('p', {class: 'muted'}, d.cause)),
            d.effect && h('p', {class: 'muted'}, d.effect),
          ),
        ),
      ),
      button,
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

  attempts(job) {
    if (!job.attempts.length) return null;
    const {rows, button} = this.more('attempts', [...job.attempts].reverse());
    const columns = [
      {head: 'Attempt', num: true, cell: (a) => a.id},
      {head: 'Task', cell: (a) => a.task},
      {head: 'Worker', cell: (a) => h('span', {title: (a.resources && a.resources.summary) || null}, a.worker)},
      {
        head: 'Began',
        num: true,
        cell: (a) => sinceStart(job, a.started_at) || '–',
      },
      {
        head: 'Took',
        num: true,
        cell: (a) =>
          a.ended_at === null || a.started_at === null ? '–' : duration((a.ended_at - a.started_at) / 1000),
      },
      {head: 'End', cell: (a) => (a.end_reason ? endWords(a.end_reason) : 'runs')},
      {head: 'Message', class: 'settings', cell: (a) => a.message || (a.resources && a.resources.advice) || ''},
    ];
    return section(
      'Attempts',
      {wide: true, sub: [plural(job.attempts.length, 'execution'), attemptWords(job)].filter(Boolean).join(', ')},
      table(columns, rows, {key: (a) => a.id, label: 'Attempts'}),
      button,
    );
  }
}

// How long after the Job's time began; nothing for what was before.
function sinceStart(job, at) {
  return at === null || at < job.runnable_at ? '' : `+${duration((at - job.runnable_at) / 1000)}`;
}

// Two lines of it; the pointer shows the rest.
function settingsText({index, kind, settings}) {
  const text = Object.entries(settings)
    .map(([k, v]) => `${k} ${v}`)
    .join(', ');
  return h('span', {class: 'clamp', title: text}, text || (index < 0 ? kind : 'as the spec says'));
}

// What a running fold has resolved, else what the first trial sets.
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
