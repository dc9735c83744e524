// The Workers with their slots, and the quotas.

import {getSystem, listQuotas, listWorkers, now} from './api.js';
import {h} from './dom.js';
import {ago, bytes, deviceFigures, duration, parseDuration, plural} from './format.js';
import {refresh} from './live.js';
import {empty, facts, jobLink, section, table, unanswered} from './ui.js';

const MODES = {CORDONED: ', cordoned', LEAVING: ', leaving'};

function modeText(worker) {
  if (worker.mode === 'DRAINING') return worker.attempts ? ', draining' : ', drained';
  return MODES[worker.mode] || '';
}

export class WorkersPage {
  start(app) {
    this.app = app;
    this.stop = refresh(this, 2000);
  }

  async load() {
    [this.workers, this.quotas, this.system] = await Promise.all([listWorkers(), listQuotas(), getSystem()]);
  }

  tree() {
    const head = h('div', {class: 'pagehead'}, h('h1', null, 'Workers'));
    if (!this.workers)
      return h(
        'div',
        {class: 'page'},
        head,
        unanswered(this.error, () => this.stop.again()),
      );
    const time = now();
    return h(
      'div',
      {class: 'page workers'},
      head,
      this.workers.length
        ? this.workers.map((w) => this.worker(w, time))
        : empty(
            'No Worker has ever connected.',
            h(
              'p',
              null,
              'Start one with ',
              h('code', null, 'trainworker'),
              ', or traind with ',
              h('code', null, '--standalone'),
              '.',
            ),
          ),
      this.traind(time),
      section(
        'Quotas',
        {wide: true, sub: 'device-seconds that owners and labels may use'},
        this.quotas.length ? this.quotaTable(time) : empty('There are no quotas: owners may use all slots.'),
      ),
    );
  }

  traind(time) {
    const s = this.system;
    return section(
      'traind',
      {wide: true},
      facts([
        ['version', s.version],
        ['up for', s.started_at === null ? null : duration((time - s.started_at) / 1000)],
        ['memory', s.memory_bytes === null ? null : bytes(s.memory_bytes)],
        ['streams of events', s.streams],
        ['calls', h('a', {href: '/openapi.json'}, 'openapi.json')],
        ['metrics', h('a', {href: '/metrics'}, '/metrics')],
      ]),
    );
  }

  worker(w, time) {
    const busy = w.slots.filter((s) => s.job).length;
    const columns = [
      {head: 'Slot', num: true, cell: (s) => s.index},
      {head: 'Device', cell: (s) => [s.name || s.device, s.uuid && h('span', {class: 'id'}, s.uuid)]},
      {head: 'Memory', num: true, cell: (s) => (s.memory_bytes ? bytes(s.memory_bytes) : '–')},
      ...(w.slots.some((s) => s.figures) ? [{head: 'Now', cell: (s) => deviceFigures(s.figures)}] : []),
      {
        head: 'Runs',
        cell: (s) =>
          s.job
            ? [h('a', {href: jobLink(s.job), 'data-row': true}, s.job), ' ', h('span', {class: 'muted'}, s.task)]
            : h('span', {class: 'muted'}, 'idle'),
      },
    ];
    return section(
      w.hostname || w.id,
      {
        key: w.id,
        wide: true,
        sub: `${busy} of ${plural(w.slots.length, 'slot')} busy`,
        aside: h(
          'span',
          {class: `health ${w.connected ? 'good' : 'late'}`},
          h('i', null),
          (w.connected ? 'connected' : `away, last seen ${ago(w.last_seen, time)}`) + modeText(w),
        ),
      },
      facts([
        ['id', w.id],
        ['version', w.version],
        ['process', w.pid],
        ['warm Ranks', w.warm_ranks],
        ['labels', Object.entries(w.labels || {}).map(([key, value]) => `${key}=${value}`).join(', ') || null],
      ]),
      table(columns, w.slots, {key: (s) => s.index, label: `Slots of ${w.hostname}`}),
    );
  }

  quotaTable(time) {
    const seconds = (text) => parseDuration(String(text || '')) || 0;
    const columns = [
      {
        head: 'For',
        cell: (q) =>
          q.subject && q.subject.label ? `label ${q.subject.label}` : `owner ${(q.subject && q.subject.owner) || ''}`,
      },
      {head: 'Used', num: true, cell: (q) => duration(q.used_s)},
      {head: 'Left', num: true, cell: (q) => duration(q.left_s)},
      {
        head: 'Share',
        cell: (q) => {
          const share = Math.min(1, q.used_s / Math.max(1, q.used_s + q.left_s));
          return h(
            'div',
            {
              class: `meter ${share > 0.9 ? 'late' : share > 0.8 ? 'tight' : ''}`,
              role: 'img',
              'aria-label': `${Math.round(share * 100)} % used`,
            },
            h('div', {style: {width: `${share * 100}%`}}),
          );
        },
      },
      {head: 'Each', num: true, cell: (q) => (q.rolling ? 'last ' : '') + duration(seconds(q.period))},
      {
        head: 'Free again',
        num: true,
        cell: (q) => (q.free_at === null ? '–' : `in ${duration((q.free_at - time) / 1000)}`),
      },
    ];
    return table(columns, this.quotas, {key: (q, i) => i, label: 'Quotas'});
  }
}
