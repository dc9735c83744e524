// Jobs whose models can predict: what they learnt, how well, with which members.

import {listJobs, now} from './api.js';
import {h} from './dom.js';
import {count, figure} from './format.js';
import {refresh} from './live.js';
import {empty, jobLink, qualityChip, table, unanswered, when} from './ui.js';

const kPage = 100;

export class ModelsPage {
  start(app) {
    this.app = app;
    this.stop = refresh(this, 5000);
  }

  async load() {
    const reply = await listJobs({states: ['SUCCEEDED'], size: kPage});
    this.jobs = reply.jobs.filter(
      (job) => !job.models_from && job.predictions && job.predictions.members.some((m) => m.fold >= 0),
    );
    this.more = Boolean(reply.next);
  }

  tree() {
    return h(
      'div',
      {class: 'page models'},
      h(
        'div',
        {class: 'pagehead'},
        h('h1', null, 'Models'),
        h(
          'p',
          {class: 'muted'},
          'Trained ensembles that can predict later files: ',
          h('code', null, 'trainctl predict JOB --data FILE'),
        ),
      ),
      this.list(),
    );
  }

  list() {
    if (!this.jobs) return unanswered(this.error, () => this.stop.again());
    if (!this.jobs.length) return empty('No Job has left models yet.');
    const time = now();
    const columns = [
      {
        head: 'Job',
        class: 'jobcell',
        cell: (job) => [
          h('a', {href: jobLink(job.id), 'data-row': true, class: 'name'}, job.name),
          h('span', {class: 'id'}, job.id),
        ],
      },
      {head: 'Kinds', cell: (job) => kinds(job.predictions.members)},
      {head: 'Members', num: true, cell: (job) => count(job.predictions.members.filter((m) => m.weight > 0).length)},
      {head: 'Metric', cell: (job) => job.scores.metric},
      {head: 'Out of fold', num: true, cell: (job) => figure(job.scores.oof)},
      {head: 'Test', num: true, cell: (job) => figure(job.scores.test)},
      {head: 'Floor', num: true, cell: (job) => figure(job.scores.floor)},
      {head: 'Quality', cell: (job) => qualityChip(job.predictions.quality)},
      {head: 'Rows learnt', num: true, cell: (job) => count(job.train_rows)},
      {head: 'Ended', num: true, cell: (job) => when(job.finished_at, time)},
    ];
    return [
      table(columns, this.jobs, {key: (job) => job.id, label: 'Jobs with models'}),
      this.more &&
        h(
          'p',
          {class: 'muted'},
          `The newest ${kPage} Jobs are looked at; the `,
          h('a', {href: '#/jobs?states=SUCCEEDED'}, 'list of Jobs'),
          ' has all.',
        ),
    ];
  }
}

// The share of the answer that each kind of model has: "lightgbm 62 %, mlp 38 %".
function kinds(members) {
  const shares = new Map();
  for (const m of members) shares.set(m.kind, (shares.get(m.kind) || 0) + m.weight);
  return [...shares]
    .sort((a, b) => b[1] - a[1])
    .map(([kind, share]) => h('span', {key: kind, class: 'chip'}, `${kind} ${Math.round(share * 100)} %`));
}
