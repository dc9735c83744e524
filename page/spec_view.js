// The spec of a Job: as the user wrote it, and with all defaults filled in.

import {getSpec} from './api.js';
import {h} from './dom.js';
import {choice, crumbs, section, unanswered} from './ui.js';
import {toYaml} from './yaml.js';

export class SpecPage {
  constructor(id) {
    this.id = id;
  }

  title() {
    return `Spec of ${this.id}`;
  }

  start(app) {
    this.app = app;
    this.load();
  }

  stop() {}

  async load() {
    this.error = null;
    try {
      this.spec = await getSpec(this.id);
      this.form = this.spec.text ? 'written' : 'resolved';
    } catch (e) {
      this.error = e;
    }
    this.app.redraw();
  }

  text() {
    return this.form === 'written' ? this.spec.text : toYaml(this.spec.resolved);
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.text());
      this.app.toast('The spec is copied.');
    } catch (e) {
      // Without https a browser may refuse; then the text is marked, to be copied by hand.
      getSelection().selectAllChildren(document.querySelector('.spectext'));
      this.app.toast('The browser does not let the page copy; the text is marked.', 'bad');
    }
  }

  keys() {
    return this.spec ? {y: () => this.copy()} : {};
  }

  tree() {
    const head = h('div', {class: 'pagehead'}, h('div', null, crumbs(this.id), h('h1', null, 'Spec')));
    if (!this.spec)
      return h(
        'div',
        {class: 'page'},
        head,
        unanswered(this.error, () => this.load()),
      );
    const pick = (form) => {
      this.form = form;
      this.app.redraw();
    };
    const forms = [this.spec.text && ['written', 'as written'], ['resolved', 'with all defaults']].filter(Boolean);
    return h(
      'div',
      {class: 'page spec'},
      head,
      section(
        'job.yaml',
        {
          aside: h(
            'div',
            {class: 'controls'},
            choice('Form', forms, this.form, pick),
            h('button', {onclick: () => this.copy(), title: 'y'}, 'Copy'),
          ),
        },
        h('pre', {class: 'spectext', tabindex: '0', 'aria-label': 'The spec'}, this.text()),
      ),
    );
  }
}
