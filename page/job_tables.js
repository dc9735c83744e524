// The long lists of a Job's page: its trials, folds, columns, answers, Decisions and Attempts.
// more(name, rows) gives the rows that are shown at first, and the button that shows all.

import {h} from './dom.js';
import {count, duration, figure, percent, plural} from './format.js';
import {answersOf, decisionWords, endWords, foldTable, importanceOf, leaderboard, ruleWords} from './model.js';
import {attemptWords} from './timeline_panel.js';
import {empty, jobLink, qualityChip, section, table} from './ui.js';

export function trialsTable(job, time, more) {
  const tried = leaderboard(job, time).filter((t) => t.done || t.running || t.score !== null);
  const {rows, button} = more('trials', tried);
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

export function foldsTable(job, more) {
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
  const {rows, button} = more('folds', all);
  return section(
    'Folds',
    {wide: true, sub: 'the models behind the answer'},
    table(columns, rows, {key: (f) => `${f.index}/${f.seed}`, label: 'Folds'}),
    button,
  );
}

export function columnsTable(job, more) {
  const all = importanceOf(job.report);
  if (!all.length) return null;
  const {rows, button} = more('importance', all);
  const columns = [
    {head: 'Column', cell: (of) => h('b', null, of.column)},
    {
      head: 'Worth',
      num: true,
      cell: (of) => [figure(of.drop), of.error !== null && h('span', {class: 'muted'}, ` ± ${figure(of.error)}`)],
    },
    {
      head: 'Beside the first',
      cell: (of) => h('span', {class: 'weight'}, h('span', {style: {width: `${of.share * 100}%`}})),
    },
  ];
  return section(
    'What the columns are worth',
    {wide: true, sub: `how much worse ${job.scores.metric || 'the score'} gets where the column is shuffled`},
    table(columns, rows, {key: (of) => of.column, label: 'Columns'}),
    button,
  );
}

export function answersTable(job, more) {
  const all = answersOf(job.report);
  if (all.length < 2) return null;
  const {rows, button} = more('answers', all);
  const columns = [
    {head: '#', num: true, cell: (a) => a.number},
    {head: 'After', num: true, cell: (a) => duration(a.at_s)},
    {head: 'Quality', cell: (a) => qualityChip(a.quality)},
    {
      head: job.scores.metric || 'Score',
      num: true,
      cell: (a) => [h('b', null, figure(a.oof)), !a.comparable && h('span', {class: 'muted'}, ' of a part')],
    },
    all.some((a) => a.test !== null) && {head: 'Test file', num: true, cell: (a) => figure(a.test)},
    {head: 'Models', num: true, cell: (a) => (a.models ? count(a.models) : 'the floor')},
  ].filter(Boolean);
  return section(
    'What the time has bought',
    {wide: true, sub: 'the answers that have stood, one after the other'},
    table(columns, rows, {key: (a) => a.number, label: 'Answers'}),
    button,
  );
}

export function decisionList(job, more) {
  const all = job.decisions.map((d, i) => ({...d, i}));
  if (!all.length)
    return section(
      'Decisions',
      {},
      empty('Nothing was cut or changed.', h('p', null, 'The Job ran as its spec asked.')),
    );
  const {rows, button} = more('decisions', all);
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

export function attemptsTable(job, more) {
  if (!job.attempts.length) return null;
  const {rows, button} = more('attempts', [...job.attempts].reverse());
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
