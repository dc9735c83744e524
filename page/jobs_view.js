// All Jobs, the newest first: filters, pages, marks to compare.

import {listJobs, now} from './api.js';
import {h} from './dom.js';
import {refresh} from './live.js';
import {isOver} from './model.js';
import {
  choice,
  clockOf,
  empty,
  foldsText,
  healthText,
  jobLink,
  marked,
  qualityChip,
  score,
  stateChip,
  table,
  unanswered,
  when,
} from './ui.js';

const kPage = 50;
const kEveryMs = 3000;

const kGroups = {
  all: [],
  live: ['QUEUED', 'PLANNING', 'RUNNING', 'FINALIZING', 'PAUSED'],
  QUEUED: ['QUEUED'],
  SUCCEEDED: ['SUCCEEDED'],
  FAILED: ['FAILED'],
  CANCELLED: ['CANCELLED'],
};

export class JobsPage {
  constructor(query) {
    this.pages = ['']; // the tokens of the pages before, and of this one
    this.query(query, true);
  }

  query(values, first = false) {
    this.group = values.get('states') in kGroups ? values.get('states') : 'all';
    this.label = values.get('label') || '';
    this.wanted = values.has('search');
    if (first) {
      this.text = '';
      return;
    }
    this.pages = [''];
    this.stop.again();
  }

  start(app) {
    this.app = app;
    this.marks = marked.ids();
    this.stop = refresh(this, kEveryMs);
  }

  async load() {
    const asked = this.address();
    const match = /^([^=\s]+)=(.*)$/.exec(this.label.trim());
    const reply = await listJobs({
      states: kGroups[this.group],
      labels: match ? {[match[1]]: match[2]} : {},
      size: kPage,
      page: this.pages[this.pages.length - 1],
    });
    if (asked !== this.address()) return;
    this.jobs = reply.jobs;
    this.next = reply.next;
  }

  address() {
    return [this.group, this.label, this.pages.join()].join('|');
  }

  show(group, label) {
    this.jobs = null;
    const values = new URLSearchParams();
    if (group !== 'all') values.set('states', group);
    if (label) values.set('label', label);
    const query = values.toString();
    this.app.go('jobs' + (query ? '?' + query : ''));
  }

  turn(by) {
    if (by > 0 && this.next) this.pages.push(this.next);
    else if (by < 0 && this.pages.length > 1) this.pages.pop();
    else return;
    this.jobs = null;
    this.stop.again();
    this.app.redraw();
  }

  keys() {
    return {
      x: () => {
        const id = document.activeElement && document.activeElement.dataset.id;
        if (id) this.mark(id);
      },
      n: () => this.turn(1),
      p: () => this.turn(-1),
    };
  }

  mark(id) {
    this.marks = marked.toggle(id);
    this.app.redraw();
  }

  tree() {
    const time = now();
    return h(
      'div',
      {class: 'page jobs'},
      h(
        'div',
        {class: 'pagehead'},
        h('h1', null, 'Jobs'),
        h(
          'div',
          {class: 'aside'},
          this.marks.length > 0 &&
            h(
              'a',
              {class: 'button primary', href: `#/compare?jobs=${this.marks.map(encodeURIComponent).join(',')}`},
              `Compare ${this.marks.length}`,
            ),
        ),
      ),
      h(
        'div',
        {class: 'filters'},
        choice(
          'State',
          [
            ['all', 'All'],
            ['live', 'Live'],
            ['QUEUED', 'Queued'],
            ['SUCCEEDED', 'Succeeded'],
            ['FAILED', 'Failed'],
            ['CANCELLED', 'Cancelled'],
          ],
          this.group,
          (g) => this.show(g, this.label),
        ),
        h('input', {
          type: 'search',
          'data-search': true,
          placeholder: 'Name on this page  /',
          'aria-label': 'Names on this page',
          value: this.text,
          mounted: (el) => this.wanted && el.focus(),
          oninput: (e) => {
            this.text = e.target.value;
            this.app.redraw();
          },
        }),
        h('input', {
          type: 'text',
          placeholder: 'label=value',
          'aria-label': 'Label',
          value: this.label,
          onchange: (e) => this.show(this.group, e.target.value.trim()),
        }),
      ),
      this.list(time),
    );
  }

  list(time) {
    if (!this.jobs) return unanswered(this.error, () => this.stop.again());
    const wanted = this.text.trim().toLowerCase();
    const jobs = this.jobs.filter(
      (job) => !wanted || `${job.name} ${job.id} ${job.owner}`.toLowerCase().includes(wanted),
    );
    return [
      jobs.length
        ? table(this.columns(time), jobs, {
            key: (job) => job.id,
            label: 'Jobs',
            rowClass: (job) => (isOver(job) ? '' : 'live'),
          })
        : empty(
            this.jobs.length
              ? `No name on this page contains “${this.text}”.`
              : this.group === 'all' && !this.label
                ? 'There are no Jobs yet.'
                : 'No Job is like this.',
          ),
      (this.next || this.pages.length > 1) &&
        h(
          'div',
          {class: 'pager'},
          h('button', {disabled: this.pages.length < 2, onclick: () => this.turn(-1)}, '← Newer'),
          h('span', {class: 'muted num'}, `page ${this.pages.length}`),
          h('button', {disabled: !this.next, onclick: () => this.turn(1)}, 'Older →'),
        ),
    ];
  }

  columns(time) {
    return [
      {
        head: h('span', {class: 'hidden'}, 'Compare'),
        cell: (job) =>
          h('input', {
            type: 'checkbox',
            'aria-label': `Compare ${job.id}`,
            checked: this.marks.includes(job.id),
            onchange: () => this.mark(job.id),
          }),
      },
      {
        head: 'Job',
        class: 'jobcell',
        cell: (job) => [
          h('a', {href: jobLink(job.id), 'data-row': true, 'data-id': job.id, class: 'name'}, job.name),
          h('span', {class: 'id'}, job.id),
          Object.entries(job.labels).map(([k, v]) => h('span', {key: k, class: 'chip label'}, `${k}=${v}`)),
        ],
      },
      {head: 'State', cell: (job) => stateChip(job.state)},
      {head: 'Quality', cell: (job) => qualityChip(job.quality)},
      {head: 'Score', num: true, cell: score},
      {head: 'Folds', num: true, cell: foldsText},
      {head: 'Time', num: true, title: 'left, or taken', cell: (job) => clockOf(job, time)},
      {head: 'Deadline', cell: (job) => healthText(job, time)},
      {head: 'Accepted', num: true, cell: (job) => when(job.accepted_at, time)},
      {head: 'Owner', cell: (job) => job.owner},
    ];
  }
}
