// The actions on a Job, each after a question that tells what follows.

import {act, now, setBudget} from './api.js';
import {h} from './dom.js';
import {clock, duration, figure, parseDuration} from './format.js';
import {isOver} from './model.js';

// The buttons that fit the Job's state. `done(job)` gets the Job as it is then.
export function actions(app, job, done) {
  if (isOver(job)) return [];
  const last = job.state === 'FINALIZING';
  const button = (text, dialog, kind, key) =>
    h(
      'button',
      {key: text, class: kind, title: key ? `key ${key}` : null, onclick: () => app.ask(dialog(app, job, done))},
      text,
    );
  return [
    !last && job.deadline !== null && button('More time', moreTime, '', '+'),
    !last && (job.state === 'PAUSED' ? button('Resume', resume, 'primary') : button('Pause', pause, '')),
    button('Cancel', cancel, 'danger-quiet'),
    !last && button('Finish now', finish, 'primary', 'f'),
  ];
}

export function actionKeys(app, job, done) {
  if (!job || isOver(job) || job.state === 'FINALIZING') return {};
  const keys = {f: () => app.ask(finish(app, job, done))};
  if (job.deadline !== null) keys['+'] = () => app.ask(moreTime(app, job, done));
  return keys;
}

function answerNow(job) {
  if (!job.predictions) return 'No answer stands yet; traind makes one from what there is by then, or from the floor.';
  const s = job.scores;
  const told = s.oof === null || s.oof === undefined ? '' : `, ${s.metric} ${figure(s.oof)} out of fold`;
  return `The answer that stands now is ${job.predictions.quality}${told}.`;
}

function simple(title, words, action, verb, told, danger = false) {
  return (app, job, done) => ({
    title: title(job),
    body: () => words(job).map((text) => h('p', {key: text}, text)),
    action,
    danger,
    run: async () => {
      done(await act(job.id, verb));
      app.toast(told(job));
    },
  });
}

const finish = simple(
  (job) => `Finish ${job.name} now?`,
  (job) => ['Training stops, and the models that exist predict. This cannot be undone.', answerNow(job)],
  'Finish now',
  'finish',
  (job) => `${job.name} makes its last prediction.`,
);

const pause = simple(
  (job) => `Pause ${job.name}?`,
  (job) => [
    'Its Ranks save a checkpoint and free their slots.',
    job.deadline === null
      ? 'It goes on when it is resumed.'
      : `The clock goes on: at ${clock(job.deadline)} it answers with what it has.`,
  ],
  'Pause',
  'pause',
  (job) => `${job.name} is paused.`,
);

const resume = simple(
  (job) => `Resume ${job.name}?`,
  () => ['It trains on from its checkpoints as soon as slots are free.'],
  'Resume',
  'resume',
  (job) => `${job.name} goes on.`,
);

const cancel = simple(
  (job) => `Cancel ${job.name}?`,
  (job) => [
    'It stops without another prediction. This cannot be undone.',
    job.predictions
      ? 'The predictions that were made so far stay on disk. To get the best answer instead, finish it.'
      : 'It has made no prediction yet.',
  ],
  'Cancel the Job',
  'cancel',
  (job) => `${job.name} is cancelled.`,
  true,
);

function moreTime(app, job, done) {
  const state = {text: '', extra: 600};
  const choices = [
    [60, '+1 min'],
    [600, '+10 min'],
    [3600, '+1 h'],
    [86400, '+1 d'],
  ];
  const extra = () => (state.text.trim() ? parseDuration(state.text) : state.extra);
  const deadline = () => Math.max(job.deadline, 0) + (extra() || 0) * 1000;
  return {
    title: `More time for ${job.name}`,
    body: () => [
      h(
        'div',
        {class: 'choice big', role: 'group', 'aria-label': 'How much more'},
        choices.map(([s, text]) =>
          h(
            'button',
            {
              key: s,
              type: 'button',
              'aria-pressed': !state.text.trim() && state.extra === s ? 'true' : 'false',
              onclick: () => {
                state.extra = s;
                state.text = '';
                app.redraw();
              },
            },
            text,
          ),
        ),
      ),
      h(
        'label',
        {class: 'field'},
        'or another time, such as 90s or 1h30m',
        h('input', {
          type: 'text',
          value: state.text,
          oninput: (e) => {
            state.text = e.target.value;
            app.redraw();
          },
        }),
      ),
      h(
        'p',
        null,
        extra()
          ? [
              'The deadline moves from ',
              h('b', {class: 'num'}, clock(job.deadline)),
              ' to ',
              h('b', {class: 'num'}, clock(deadline())),
              `, ${duration((deadline() - now()) / 1000)} from now.`,
            ]
          : 'Write a time such as 90s, 15m or 1h30m.',
      ),
    ],
    action: 'Give more time',
    run: async () => {
      if (!extra()) throw new Error('Write a time such as 90s, 15m or 1h30m.');
      done(await setBudget(job.id, (deadline() - job.runnable_at) / 1000));
      app.toast(`${job.name} has ${duration(extra())} more.`);
    },
  };
}
