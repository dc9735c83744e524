// The logs of a Job: the lines of all its Ranks, filtered by traind, and followed while the Job runs. Only the lines
// that are in sight are in the document.

import {getJob, getLogs, now} from './api.js';
import {h} from './dom.js';
import {count, plural} from './format.js';
import {kTails, levels, LogLines, logQuery, periods, shownRows} from './logs.js';
import {refresh} from './live.js';
import {isOver} from './model.js';
import {choice, crumbs, empty, unanswered} from './ui.js';

const kEveryMs = 1000;
const kTypingMs = 300;
// The height of .logrow in page.css.
const kRowPx = 20;

const kFilters = ['rank', 'level', 'text', 'since'];

export class LogsPage {
  constructor(id, query) {
    this.id = id;
    this.filters = Object.fromEntries(kFilters.map((name) => [name, query.get(name) || '']));
    this.log = new LogLines();
    this.follows = true;
    this.top = 0;
    this.height = 600;
  }

  title() {
    return `Logs of ${this.job ? this.job.name : this.id}`;
  }

  start(app) {
    this.app = app;
    this.refresh = refresh(this, kEveryMs);
  }

  stop() {
    clearTimeout(this.typing);
    this.refresh();
  }

  // ---- Lines ------------------------------------------------------------------

  async load() {
    if (this.complete) return;
    const asked = this.filters;
    const [job, reply] = await Promise.all([getJob(this.id), this.ask()]);
    if (asked !== this.filters) return this.load();
    this.job = job;
    this.tail = reply.tail;
    this.cut = this.cut || !reply.end;
    this.refused = reply.refused || '';
    this.log.add(reply.lines);
    // Lines may come while the Job ends, so one more call is made after its end.
    this.complete = this.ended && isOver(job);
    this.ended = isOver(job);
  }

  // The answer with the longest tails that comes whole. A pattern that traind does not understand is told beside it.
  async ask() {
    for (const tail of kTails) {
      try {
        const reply = await getLogs(this.id, logQuery(this.filters, this.log.newestAt, now(), tail));
        if (reply.end || tail === kTails[kTails.length - 1]) return {...reply, tail};
      } catch (e) {
        if (!this.filters.text || e.status !== 400) throw e;
        return {lines: [], end: true, tail, refused: e.message};
      }
    }
    return null;
  }

  filter(name, value) {
    if (this.filters[name] === value) return;
    this.filters = {...this.filters, [name]: value};
    this.log.clear();
    this.cut = this.complete = this.ended = false;
    this.follows = true;
    const query = new URLSearchParams(Object.entries(this.filters).filter(([, v]) => v));
    history.replaceState(null, '', `#/jobs/${encodeURIComponent(this.id)}/logs${query.size ? '?' + query : ''}`);
    this.refresh.again();
    this.app.redraw();
  }

  // ---- Sight ------------------------------------------------------------------

  scrolled(box) {
    if (box.scrollTop === this.top && box.clientHeight === this.height) return;
    const [follows, rows] = [this.follows, this.rows().join()];
    this.follows = box.scrollTop + box.clientHeight >= box.scrollHeight - kRowPx;
    this.top = box.scrollTop;
    this.height = box.clientHeight;
    if (follows !== this.follows || rows !== this.rows().join()) this.app.draw();
  }

  rows() {
    return shownRows(this.log.lines.length, this.top, this.height, kRowPx);
  }

  // After each drawing: the end stays in sight unless the user scrolled away from it.
  placed(box) {
    this.box = box;
    if (this.follows) box.scrollTop = box.scrollHeight;
    if (box.scrollTop === this.top && box.clientHeight === this.height) return;
    this.top = box.scrollTop;
    this.height = box.clientHeight;
    this.app.redraw();
  }

  show(row) {
    this.follows = false;
    this.box.scrollTop = Math.max(0, row * kRowPx - this.height / 2);
    this.marked = row;
    this.scrolled(this.box);
    this.app.redraw();
  }

  // The next line behind the marked one, or before it, that is an error; after the last comes the first.
  jump(by) {
    const {lines} = this.log;
    const from = this.marked === undefined ? (by > 0 ? -1 : lines.length) : this.marked;
    for (let i = 1; i <= lines.length; i++) {
      const row = (from + by * i + 2 * lines.length) % lines.length;
      if (lines[row].level === 'error') return this.show(row);
    }
    return this.app.toast('No line here is an error.');
  }

  follow() {
    this.follows = true;
    this.marked = undefined;
    this.app.redraw();
  }

  keys() {
    return {e: () => this.jump(1), E: () => this.jump(-1), G: () => this.follow()};
  }

  // ---- Tree -------------------------------------------------------------------

  tree() {
    const head = h(
      'div',
      {class: 'pagehead'},
      h('div', null, crumbs(this.id), h('h1', null, 'Logs')),
      h('div', {class: 'aside controls'}, this.job && this.state()),
    );
    if (!this.job)
      return h(
        'div',
        {class: 'page'},
        head,
        unanswered(this.error, () => this.refresh.again()),
      );
    return h(
      'div',
      {class: 'page logs'},
      head,
      this.controls(),
      this.refused && h('p', {class: 'notice bad', role: 'alert'}, this.refused),
      this.lines(),
      this.notes(),
    );
  }

  state() {
    if (this.complete) return h('span', {class: 'muted'}, 'the Job is over');
    if (!this.follows) return h('button', {class: 'primary', onclick: () => this.follow(), title: 'G'}, 'Follow the end');
    return h('span', {class: 'health good'}, h('i', null), 'follows the end');
  }

  controls() {
    return h(
      'div',
      {class: 'filters'},
      h('input', {
        type: 'search',
        'data-search': true,
        'aria-label': 'Only lines that this regular expression matches',
        placeholder: 'Text or regular expression  /',
        value: this.typed ?? this.filters.text,
        oninput: (e) => {
          this.typed = e.target.value;
          clearTimeout(this.typing);
          this.typing = setTimeout(() => this.filter('text', this.typed), kTypingMs);
        },
      }),
      choice(
        'The least level',
        levels.map((level) => [level, level]),
        this.filters.level || 'info',
        (level) => this.filter('level', level === 'info' ? '' : level),
      ),
      choice('Since', [['', 'all'], ...periods.map((p) => [p, p])], this.filters.since, (p) => this.filter('since', p)),
      this.ranks(),
    );
  }

  ranks() {
    const most = this.job.plan ? Number(this.job.plan.ranks || 1) : 1;
    if (most < 2 && !this.filters.rank) return null;
    const ranks = Array.from({length: Math.max(most, Number(this.filters.rank) + 1)}, (_, i) => String(i));
    return h(
      'label',
      {class: 'pick'},
      'Rank ',
      h(
        'select',
        {value: this.filters.rank, onchange: (e) => this.filter('rank', e.target.value)},
        h('option', {value: ''}, 'all'),
        ranks.map((rank) => h('option', {key: rank, value: rank}, rank)),
      ),
    );
  }

  lines() {
    const {lines, width} = this.log;
    const [first, behind] = this.rows();
    return h(
      'div',
      {
        class: 'logbox',
        tabindex: '0',
        role: 'region',
        'aria-label': `Lines of the logs, ${plural(lines.length, 'line')}`,
        onscroll: (e) => this.scrolled(e.target),
        mounted: (box) => this.placed(box),
        updated: (box) => this.placed(box),
      },
      lines.length
        ? h(
            'div',
            {class: 'logall', style: {height: `${lines.length * kRowPx}px`, 'min-width': `${width + 48}ch`}},
            lines.slice(first, behind).map((line, i) => this.row(line, first + i)),
          )
        : empty(this.refused ? 'The pattern cannot be used.' : 'No line fits.'),
    );
  }

  // Without keys, so that the elements of rows that went out of sight serve those that came.
  row(line, row) {
    return h(
      'div',
      {
        class: `logrow ${line.level}${row === this.marked ? ' found' : ''}`,
        style: {top: `${row * kRowPx}px`},
      },
      h('span', {class: 'muted'}, timeOf(line.at)),
      h('span', {class: 'logtask', title: `Attempt ${line.attempt}, Rank ${line.rank}`}, `${line.task}/${line.rank}`),
      h('span', {class: 'level'}, line.level === 'info' ? '' : line.level),
      h('span', null, line.text),
    );
  }

  notes() {
    const {lines, dropped} = this.log;
    return h(
      'p',
      {class: 'muted'},
      `${count(lines.length)} ${lines.length === 1 ? 'line' : 'lines'}`,
      dropped > 0 && `, ${count(dropped)} older ones are not kept here`,
      `. Of each log at most the last ${count(this.tail)} lines are asked for`,
      this.cut && ', and not all Attempts fit: filter by level, text or time',
      '. All of them: ',
      h('code', null, `trainctl logs ${this.job.name}`),
      '. ',
      h('kbd', null, 'e'),
      ' next error, ',
      h('kbd', null, 'G'),
      ' end.',
    );
  }
}

function timeOf(ms) {
  return ms === null ? '' : new Date(ms).toLocaleTimeString('en-GB') + '.' + String(ms % 1000).padStart(3, '0');
}
