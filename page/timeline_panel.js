// When which Attempt ran, with the Decisions above and the present and the deadline as lines.

import {h} from './dom.js';
import {duration, timeMark, timeTicks} from './format.js';
import {decisionWords, endWords, isOver, ruleWords, timeline} from './model.js';
import {empty, section} from './ui.js';
import {lineColour} from './chart.js';

const kMostRows = 40;

export function timelinePanel(job, now) {
  const t = timeline(job, now);
  if (!t.rows.length) return section('Timeline', {wide: true}, empty('Nothing has started yet.'));
  const place = (ms) => `${(((ms - t.start) / (t.end - t.start)) * 100).toFixed(3)}%`;
  const rows = t.rows.slice(0, kMostRows);
  const seconds = (t.end - t.start) / 1000;
  const words = job.trials.length > 1 ? 'a row for each trial, a colour for each fold' : 'a row for each fold';
  return section(
    'Timeline',
    {wide: true, sub: words},
    h(
      'div',
      {class: 'timeline', style: {'--rows': String(rows.length)}},
      h(
        'div',
        {class: 'trow decisions'},
        h('span', {class: 'tlabel'}, 'Decisions'),
        h(
          'div',
          {class: 'track'},
          job.decisions.map(
            (d, i) =>
              d.at !== null &&
              h('a', {
                key: i,
                class: 'decision',
                href: `#decision-${i}`,
                style: {left: place(Math.min(Math.max(d.at, t.start), t.end))},
                title: `${duration((d.at - t.start) / 1000)}: ${ruleWords(d.rule)}. ${decisionWords(d)}`,
                'aria-label': `Decision at ${duration((d.at - t.start) / 1000)}: ${ruleWords(d.rule)}`,
                onclick: (e) => {
                  e.preventDefault();
                  const item = document.getElementById(`decision-${i}`);
                  if (item) item.scrollIntoView({block: 'center'});
                },
              }),
          ),
        ),
      ),
      rows.map((row) =>
        h(
          'div',
          {key: row.key, class: 'trow', style: {'--lanes': String(row.lanes)}},
          h('span', {class: 'tlabel', title: row.label}, row.label),
          h(
            'div',
            {class: 'track'},
            row.bars.map((bar) => barTree(bar, job, t, place)),
          ),
        ),
      ),
      h(
        'div',
        {class: 'trow axis', 'aria-hidden': 'true'},
        h('span', {class: 'tlabel'}),
        h(
          'div',
          {class: 'track'},
          timeTicks(0, seconds, 6).map((s) =>
            h('span', {key: s, class: 'tick', style: {left: place(t.start + s * 1000)}}, timeMark(s)),
          ),
        ),
      ),
    ),
    t.rows.length > kMostRows && h('p', {class: 'muted'}, `and ${t.rows.length - kMostRows} more`),
    h(
      'ul',
      {class: 'legend'},
      h('li', null, h('i', {class: 'swatch'}), 'an Attempt'),
      h('li', null, h('i', {class: 'swatch running'}), 'runs'),
      h('li', null, h('i', {class: 'swatch stopped'}), 'stopped early'),
      h('li', null, h('i', {class: 'swatch failed'}), 'failed'),
      h('li', null, h('i', {class: 'swatch resumed'}), 'went on from a checkpoint'),
      job.decisions.length > 0 && h('li', null, h('i', {class: 'swatch mark'}), 'Decision'),
    ),
  );
}

function barTree(bar, job, t, place) {
  const a = bar.attempt;
  const how = bar.running ? 'runs' : endWords(a.end_reason);
  const words =
    `${a.task}, Attempt ${a.id} on ${a.worker}: ${duration((bar.from - t.start) / 1000)} to ${duration((bar.to - t.start) / 1000)}, ${how}` +
    (a.first_step > 0 ? `, from the checkpoint of step ${a.first_step}` : '') +
    (a.message ? `. ${a.message}` : '');
  return h('span', {
    key: a.id,
    class: `bar ${bar.kind} ${a.first_step > 0 ? 'resumed' : ''}`,
    title: words,
    style: {
      left: place(bar.from),
      width: `max(3px, ${(((bar.to - bar.from) / (t.end - t.start)) * 100).toFixed(3)}%)`,
      '--lane': String(bar.lane),
      '--line': a.fold === null ? 'var(--muted)' : lineColour(a.fold),
    },
  });
}

export function attemptWords(job) {
  const failed = job.attempts.filter(
    (a) => a.end_reason && !['COMPLETED', 'STOPPED_IN_TIME', 'FINISHED_BY_USER'].includes(a.end_reason),
  );
  return isOver(job) && !failed.length
    ? 'all ended as they should'
    : failed.length
      ? `${failed.length} ended otherwise`
      : '';
}
