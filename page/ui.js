// Pieces that several pages use.

import {h} from './dom.js';
import {countdown, duration, figure, moment, percent} from './format.js';
import {budget, health, isOver, progress, qualityWords} from './model.js';

export const jobLink = (id) => `#/jobs/${encodeURIComponent(id)}`;

// Where a page of a Job stands: Jobs / ID.
export function crumbs(id) {
  return h(
    'p',
    {class: 'crumbs'},
    h('a', {href: '#/jobs'}, 'Jobs'),
    ' / ',
    h('a', {href: jobLink(id)}, id),
  );
}

// A titled part of a page.
export function section(title, props, ...kids) {
  const {aside, key, wide, sub} = props || {};
  const id = 's-' + title.toLowerCase().replace(/[^a-z]+/g, '-');
  return h(
    'section',
    {key: key || title, class: wide ? 'card wide' : 'card', 'aria-labelledby': id},
    h(
      'div',
      {class: 'cardhead'},
      h('h2', {id}, title),
      sub && h('span', {class: 'sub'}, sub),
      aside && h('div', {class: 'aside'}, aside),
    ),
    kids,
  );
}

const kStates = {
  QUEUED: 'queued',
  PLANNING: 'planning',
  RUNNING: 'running',
  FINALIZING: 'finalizing',
  SUCCEEDED: 'succeeded',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
  PAUSED: 'paused',
};

export function stateChip(state) {
  return h('span', {class: `chip state ${state.toLowerCase()}`}, h('i', null), kStates[state] || state.toLowerCase());
}

export function qualityChip(quality) {
  if (!quality) return null;
  return h('span', {class: `chip quality ${quality.toLowerCase()}`, title: qualityWords(quality)}, quality);
}

export function healthText(job, now) {
  const {kind, text} = health(job, now);
  return h('span', {class: `health ${kind}`}, h('i', null), text);
}

export function score(job) {
  const s = job.scores;
  if (!s.metric || s.oof === null || s.oof === undefined) return null;
  return h(
    'span',
    {
      class: 'score',
      title: s.comparable ? 'over all folds, out of fold' : 'over a part of the folds: do not compare it',
    },
    h('span', {class: 'muted'}, s.metric),
    ' ',
    h('b', null, figure(s.oof)),
    s.comparable ? null : h('span', {class: 'muted'}, ' (part)'),
  );
}

// The clock that runs down, or the time that the Job took.
export function clockOf(job, now) {
  if (isOver(job)) return job.finished_at === null ? '–' : duration((job.finished_at - job.runnable_at) / 1000);
  return job.deadline === null ? '∞' : countdown((job.deadline - now) / 1000);
}

// The bar of the budget: spent, planned, held back, left.
export function budgetBar(job, now) {
  const b = budget(job, now);
  const kind = health(job, now).kind;
  const width = (share) => ({width: `${(share * 100).toFixed(2)}%`});
  const words = `${percent(b.spent)} of the time spent` + (isOver(job) ? '' : `, planned to ${percent(b.planned)}`);
  return h(
    'div',
    {class: `budget ${kind} ${isOver(job) ? 'over' : ''}`, role: 'img', 'aria-label': words, title: words},
    h('div', {class: 'planned', style: width(b.planned)}),
    h('div', {class: 'spent', style: width(b.spent)}),
    b.reserve !== null &&
      h('div', {
        class: 'reserve',
        style: {left: `${(b.reserve * 100).toFixed(2)}%`, right: `${(100 - b.deadline * 100).toFixed(2)}%`},
      }),
    b.deadline !== null &&
      b.deadline < 0.999 &&
      h('div', {class: 'mark', style: {left: `${(b.deadline * 100).toFixed(2)}%`}}),
  );
}

export function progressBar(job) {
  const p = progress(job);
  if (p === null) return null;
  return h(
    'div',
    {class: 'progress', role: 'img', 'aria-label': `${percent(p)} of the planned training is done`},
    h('div', {style: {width: `${(p * 100).toFixed(1)}%`}}),
  );
}

export function foldsText(job) {
  if (!job.plan) return '–';
  const done = job.folds.filter(
    (f) => f.trial === 0 && f.seed === 0 && (f.state === 'DONE' || f.state === 'PARTIAL'),
  ).length;
  return `${done}/${job.plan.folds}`;
}

export function empty(title, ...kids) {
  return h('div', {class: 'empty'}, h('p', {class: 'lead'}, title), kids);
}

export function loading(words = 'Asking traind…') {
  return h('div', {class: 'empty loading', role: 'status'}, h('p', null, words));
}

export function problem(error, again) {
  return h(
    'div',
    {class: 'empty problem', role: 'alert'},
    h('p', {class: 'lead'}, error.message),
    again && h('button', {onclick: again}, 'Try again'),
  );
}

// A page shows this before the first answer. Without a status traind was not reached, which the shell tells.
export function unanswered(error, again) {
  return error && error.status ? problem(error, again) : loading();
}

// {term, value} pairs.
export function facts(pairs) {
  return h(
    'dl',
    {class: 'facts'},
    pairs
      .filter((p) => p && p[1] !== null && p[1] !== undefined && p[1] !== '')
      .map(([term, value]) => h('div', {key: term}, h('dt', null, term), h('dd', null, value))),
  );
}

// A table in a box of its own that scrolls sideways where it must. `columns`: [{head, num, cell(row)}].
export function table(columns, rows, {key, label, rowClass}) {
  return h(
    'div',
    {class: 'tablebox', tabindex: '0', role: 'region', 'aria-label': `${label}, a table`},
    h(
      'table',
      null,
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          columns.map((c) => h('th', {scope: 'col', class: c.num ? 'num' : '', title: c.title}, c.head)),
        ),
      ),
      h(
        'tbody',
        null,
        rows.map((row, i) =>
          h(
            'tr',
            {key: key(row, i), class: rowClass ? rowClass(row) : ''},
            columns.map((c) => h('td', {class: [c.num ? 'num' : '', c.class || ''].join(' ').trim()}, c.cell(row, i))),
          ),
        ),
      ),
    ),
  );
}

export function when(ms, now) {
  return h(
    'time',
    {datetime: ms === null ? '' : new Date(ms).toISOString(), title: ms === null ? '' : new Date(ms).toLocaleString()},
    moment(ms, now),
  );
}

// One of several choices: [[value, text], ...].
export function choice(label, options, value, onpick) {
  return h(
    'div',
    {class: 'choice', role: 'group', 'aria-label': label},
    options.map(([v, text]) =>
      h(
        'button',
        {
          key: v,
          type: 'button',
          'aria-pressed': v === value ? 'true' : 'false',
          onclick: () => onpick(v),
        },
        text,
      ),
    ),
  );
}

// Marks of Jobs to compare, kept while the tab lives.
export const marked = {
  ids() {
    try {
      return JSON.parse(sessionStorage.getItem('marked') || '[]');
    } catch (e) {
      return [];
    }
  },
  toggle(id) {
    const ids = this.ids();
    const next = ids.includes(id) ? ids.filter((i) => i !== id) : [...ids, id].slice(-8);
    sessionStorage.setItem('marked', JSON.stringify(next));
    return next;
  },
};
