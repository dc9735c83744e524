// The first page: what runs and whether it will be on time, what the slots do, what waits and why, what ended.

import {listJobs, listWorkers, liveStates, now} from './api.js';
import {h} from './dom.js';
import {ago, count, plural} from './format.js';
import {refresh} from './live.js';
import {endWords, health, waiting} from './model.js';
import {
  budgetBar,
  clockOf,
  empty,
  healthText,
  jobLink,
  progressBar,
  qualityChip,
  score,
  section,
  stateChip,
  unanswered,
} from './ui.js';
import {lineColour} from './chart.js';

const kEveryMs = 1500;
const kEnded = 8;
const kBoard = 12;

export class Overview {
  start(app) {
    this.app = app;
    this.stop = refresh(this, kEveryMs);
  }

  async load() {
    const [live, ended, workers] = await Promise.all([
      listJobs({states: liveStates, size: 200}),
      listJobs({states: ['SUCCEEDED', 'FAILED', 'CANCELLED'], size: kEnded}),
      listWorkers(),
    ]);
    Object.assign(this, {live: live.jobs, more: Boolean(live.next), ended: ended.jobs, workers});
  }

  tree() {
    if (!this.live) return unanswered(this.error, () => this.stop.again());
    const time = now();
    const waits = this.live
      .filter((job) => job.state === 'QUEUED')
      .sort((a, b) => (a.queue_position || 1e9) - (b.queue_position || 1e9));
    const all = [...this.live].sort((a, b) => (a.deadline || Infinity) - (b.deadline || Infinity));
    return h(
      'div',
      {class: 'page overview'},
      h('h1', {class: 'hidden'}, 'Overview'),
      this.figures(all, waits, time),
      section(
        'Deadlines',
        {wide: true, sub: all.length ? `${plural(all.length, 'Job')}, the next deadline first` : null},
        all.length ? this.board(all, time) : empty('No Job runs.', this.firstSteps()),
      ),
      h(
        'div',
        {class: 'columns'},
        section('Slots', {sub: this.slotWords()}, this.slots(all)),
        section(
          'Queue',
          {sub: waits.length ? `${plural(waits.length, 'Job')}${this.more ? ' or more' : ''}` : null},
          this.queue(waits),
        ),
      ),
      section('Ended', {wide: true, aside: h('a', {href: '#/jobs'}, 'All Jobs')}, this.endedList(time)),
    );
  }

  board(all, time) {
    const more = all.length - kBoard;
    return [
      h(
        'ul',
        {class: 'board'},
        all.slice(0, kBoard).map((job) => this.boardRow(job, time)),
      ),
      more > 0 &&
        h('p', {class: 'boardmore'}, h('a', {href: '#/jobs?states=live'}, `and ${plural(more, 'later one')}`)),
    ];
  }

  figures(all, waits, time) {
    const slots = this.workers.filter((w) => w.connected).flatMap((w) => w.slots);
    const risk = all.filter((job) => ['tight', 'late'].includes(health(job, time).kind)).length;
    const next = all.find((job) => job.deadline !== null);
    const onTime = this.ended.filter((job) => job.state === 'SUCCEEDED' && job.deadline !== null);
    const late = onTime.filter((job) => job.finished_at > job.deadline).length;
    return h(
      'div',
      {class: 'stats'},
      stat(
        'running',
        count(all.length - waits.length),
        waits.length ? `${count(waits.length)} waiting` : 'nothing waits',
      ),
      stat('next deadline', next ? clockOf(next, time) : '–', next ? next.name : 'none'),
      stat('at risk', count(risk), risk ? 'will be cut to fit' : 'all on track', risk ? 'warn' : ''),
      stat(
        'slots busy',
        `${slots.filter((s) => s.job).length}/${slots.length}`,
        plural(this.workers.filter((w) => w.connected).length, 'Worker'),
      ),
      stat(
        'last answers',
        onTime.length ? `${onTime.length - late}/${onTime.length}` : '–',
        'before their deadline',
        late ? 'warn' : '',
      ),
    );
  }

  boardRow(job, time) {
    return h(
      'li',
      {key: job.id, class: 'boardrow'},
      h(
        'a',
        {class: 'cover', href: jobLink(job.id), 'data-row': true, 'data-id': job.id},
        h('span', {class: 'name'}, job.name),
        h('span', {class: 'id'}, job.id),
      ),
      h('div', {class: 'clock num'}, clockOf(job, time)),
      h('div', {class: 'bars'}, budgetBar(job, time), progressBar(job)),
      h('div', {class: 'line'}, stateChip(job.state), healthText(job, time)),
      h(
        'div',
        {class: 'line answer'},
        job.predictions
          ? [qualityChip(job.predictions.quality), score(job)]
          : h('span', {class: 'muted'}, 'no answer yet'),
      ),
    );
  }

  slotWords() {
    const away = this.workers.filter((w) => !w.connected).length;
    return away ? `${plural(away, 'Worker')} away` : null;
  }

  slots(all) {
    const order = all.map((job) => job.id);
    const workers = this.workers.filter((w) => w.connected);
    if (!workers.length)
      return empty(
        'No Worker is connected.',
        h(
          'p',
          null,
          'Jobs wait until one is. Start ',
          h('code', null, 'trainworker'),
          ' or ',
          h('code', null, 'traind --standalone'),
          '.',
        ),
      );
    return workers.map((worker) =>
      h(
        'div',
        {key: worker.id, class: 'worker'},
        h(
          'p',
          {class: 'workername'},
          h('b', null, worker.hostname),
          ' ',
          h(
            'span',
            {class: 'muted'},
            worker.slots.length ? `${worker.slots.length} × ${worker.slots[0].name || worker.slots[0].device}` : '',
          ),
        ),
        h(
          'div',
          {class: 'slotstrip'},
          worker.slots.map((slot) => {
            const rank = order.indexOf(slot.job);
            const words = slot.job ? `slot ${slot.index}: ${slot.job}, ${slot.task}` : `slot ${slot.index}: idle`;
            return slot.job
              ? h(
                  'a',
                  {
                    key: slot.index,
                    class: 'slot busy',
                    href: jobLink(slot.job),
                    title: words,
                    style: {'--line': lineColour(Math.max(0, rank))},
                  },
                  h('b', null, slot.job),
                  h('span', null, slot.task),
                )
              : h('div', {key: slot.index, class: 'slot', title: words}, h('span', null, 'idle'));
          }),
        ),
      ),
    );
  }

  queue(waits) {
    if (!waits.length) return empty('Nothing waits.');
    return h(
      'ol',
      {class: 'queue'},
      waits
        .slice(0, 20)
        .map((job) =>
          h(
            'li',
            {key: job.id},
            h('a', {href: jobLink(job.id), 'data-row': true, 'data-id': job.id}, job.name),
            ' ',
            h('span', {class: 'muted'}, waiting(job)),
            job.priority ? h('span', {class: 'chip'}, `priority ${job.priority}`) : null,
          ),
        ),
      waits.length > 20 &&
        h('li', {class: 'muted'}, h('a', {href: '#/jobs?states=QUEUED'}, `and ${waits.length - 20} more`)),
    );
  }

  endedList(time) {
    if (!this.ended.length) return empty('No Job has ended yet.');
    return h(
      'ul',
      {class: 'ended'},
      this.ended.map((job) =>
        h(
          'li',
          {key: job.id},
          h(
            'a',
            {class: 'cover', href: jobLink(job.id), 'data-row': true, 'data-id': job.id},
            h('span', {class: 'name'}, job.name),
            h('span', {class: 'id'}, job.id),
          ),
          stateChip(job.state),
          qualityChip(job.quality) || h('span', null),
          h(
            'span',
            {class: 'result'},
            job.state === 'SUCCEEDED'
              ? score(job) || h('span', {class: 'muted'}, 'no score')
              : h(
                  'span',
                  {class: 'muted oneline', title: job.end_message},
                  job.end_message || endWords(job.end_reason),
                ),
          ),
          healthText(job, time),
          h('span', {class: 'muted num'}, ago(job.finished_at, time)),
        ),
      ),
    );
  }

  firstSteps() {
    return [
      h('p', null, 'A Job is a small YAML file: data, the column to predict, a budget. Submit one and watch it here:'),
      h('pre', null, 'trainctl submit -f examples/digits/job.yaml --budget 20s'),
    ];
  }
}

function stat(label, value, words, kind = '') {
  return h(
    'div',
    {key: label, class: `stat ${kind}`},
    h('div', {class: 'label'}, label),
    h('div', {class: 'value num'}, value),
    h('div', {class: 'words'}, words),
  );
}
