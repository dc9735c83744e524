// The shell: addresses, navigation, keyboard, colour scheme, messages. Each page is a view with
//   start(app), stop(), tree() and, where it has them, keys {letter: function}.

import {connection, isSignedIn, session, signIn, signOut} from './api.js';
import {h, render} from './dom.js';
import {countdown} from './format.js';
import {isDark} from './chart.js';
import {Overview} from './overview_view.js';
import {JobPage} from './job_view.js';
import {JobsPage} from './jobs_view.js';
import {LogsPage} from './logs_view.js';
import {ComparePage} from './compare_view.js';
import {SpecPage} from './spec_view.js';
import {WorkersPage} from './workers_view.js';
import {ModelsPage} from './models_view.js';

// jobs, jobs/ID, jobs/ID/logs or jobs/ID/spec
function jobsPage(rest, query) {
  if (!rest) return new JobsPage(query);
  const [id, part] = rest.split('/');
  if (part === 'logs') return new LogsPage(id, query);
  return part === 'spec' ? new SpecPage(id) : new JobPage(id);
}

const kPages = [
  {path: 'overview', title: 'Overview', key: 'o', make: () => new Overview()},
  {path: 'jobs', title: 'Jobs', key: 'j', make: jobsPage},
  {path: 'compare', title: 'Compare', key: 'c', make: (rest, query) => new ComparePage(query)},
  {path: 'models', title: 'Models', key: 'm', make: () => new ModelsPage()},
  {path: 'workers', title: 'Workers', key: 'w', make: () => new WorkersPage()},
];

const kKeys = [
  ['j', 'k', 'next and previous row'],
  ['Enter', '', 'open the row'],
  ['x', '', 'mark the Job to compare'],
  ['/', '', 'search'],
  ...kPages.map((page) => [`g ${page.key}`, '', page.title]),
  ['l', 's', 'on a Job: its logs, its spec'],
  ['e', 'G', 'in logs: next error, the end'],
  ['t', '', 'dark or light'],
  ['?', '', 'this list'],
  ['Esc', '', 'close'],
];

class App {
  constructor(root) {
    this.root = root;
    this.frame = 0;
    this.view = null;
    this.dialog = null;
    this.toasts = [];
    this.chord = 0;
    window.addEventListener('hashchange', () => this.route());
    document.addEventListener('keydown', (event) => this.onKey(event));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.themed());
    connection.listeners.add(() => this.redraw());
    session.listeners.add(() => this.redraw());
    // Countdowns go on without news from traind.
    setInterval(() => {
      if (!document.hidden) this.redraw();
    }, 1000);
    this.route();
  }

  // ---- Addresses --------------------------------------------------------------

  route() {
    const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
    const [first, ...rest] = path.split('/');
    const page = kPages.find((p) => p.path === first) || kPages[0];
    const address = `${page.path}/${rest.join('/')}`;
    const values = new URLSearchParams(query || '');
    if (this.view && this.address === address && this.view.query) {
      this.view.query(values);
      this.redraw();
      return;
    }
    if (this.view) this.view.stop();
    this.address = address;
    this.page = page;
    this.view = page.make(decode(rest.join('/')), values);
    this.view.start(this);
    this.title();
    window.scrollTo(0, 0);
    this.draw();
    const main = document.querySelector('main');
    if (main && this.moved) main.focus({preventScroll: true});
    this.moved = true;
  }

  go(address) {
    location.hash = '#/' + address;
  }

  title() {
    const name = this.view.title ? this.view.title() : this.page.title;
    document.title = `${name} – traind`;
  }

  // ---- Drawing ----------------------------------------------------------------

  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    render(this.root, this.tree());
    this.title();
  }

  tree() {
    return h(
      'div',
      {class: 'shell'},
      h(
        'a',
        {
          class: 'skip',
          href: '#main',
          onclick: (e) => {
            e.preventDefault();
            document.querySelector('main').focus();
          },
        },
        'Skip to the content',
      ),
      h(
        'header',
        {class: 'top'},
        h(
          'a',
          {class: 'brand', href: '#/overview', 'aria-label': 'traind, overview'},
          mark(),
          h('span', null, 'traind'),
        ),
        h(
          'nav',
          {'aria-label': 'Pages'},
          kPages.map((page) =>
            h(
              'a',
              {
                key: page.path,
                href: `#/${page.path}`,
                'aria-current': page === this.page ? 'page' : null,
                title: `g ${page.key}`,
              },
              page.title,
            ),
          ),
        ),
        h(
          'div',
          {class: 'tools'},
          this.liveMark(),
          isSignedIn() &&
            !session.needed &&
            h('button', {onclick: () => signOut().catch((e) => this.toast(e.message, 'bad'))}, 'Sign out'),
          h(
            'button',
            {
              class: 'icon',
              onclick: () => this.switchTheme(),
              'aria-label': 'Switch between dark and light',
              title: 'Dark or light (t)',
            },
            isDark() ? '☀' : '☾',
          ),
          h(
            'button',
            {
              class: 'icon',
              onclick: () => this.showKeys(),
              'aria-label': 'Keyboard shortcuts',
              title: 'Keyboard shortcuts (?)',
            },
            '?',
          ),
        ),
      ),
      connection.lost &&
        h(
          'div',
          {class: 'lost', role: 'alert'},
          h('b', null, 'Connection lost.'),
          ` traind has not answered for ${countdown((Date.now() - connection.since) / 1000)}. `,
          'The page goes on by itself when it is back; Jobs go on without it.',
        ),
      h(
        'main',
        {id: 'main', tabindex: '-1', key: this.address, class: connection.lost ? 'stale' : ''},
        session.needed ? this.signInTree() : this.view.tree(),
      ),
      this.dialog && this.dialogTree(),
      h(
        'div',
        {class: 'toasts', role: 'status', 'aria-live': 'polite'},
        this.toasts.map((toast) => h('div', {key: toast.id, class: `toast ${toast.kind}`}, toast.text)),
      ),
    );
  }

  signInTree() {
    const form = this.signInForm || (this.signInForm = {token: '', error: '', busy: false});
    const run = async (event) => {
      event.preventDefault();
      if (form.busy) return;
      form.busy = true;
      form.error = '';
      this.redraw();
      try {
        await signIn(form.token);
        this.signInForm = null;
        this.again();
      } catch (e) {
        form.error = e.message;
      }
      form.busy = false;
      this.redraw();
    };
    return h(
      'section',
      {class: 'card signin', 'aria-labelledby': 'signin-title'},
      h(
        'form',
        {onsubmit: run},
        h('h1', {id: 'signin-title'}, 'This traind needs a token'),
        h('p', null, 'Its administrator makes one with ', h('code', null, 'traind token add NAME'), '.'),
        h(
          'label',
          {class: 'field'},
          'Token',
          h('input', {
            type: 'password',
            name: 'token',
            autocomplete: 'current-password',
            value: form.token,
            mounted: (el) => el.focus(),
            oninput: (e) => {
              form.token = e.target.value;
            },
          }),
        ),
        form.error && h('p', {class: 'problem', role: 'alert'}, form.error),
        h(
          'div',
          {class: 'buttons'},
          h('button', {type: 'submit', class: 'primary', disabled: form.busy}, form.busy ? 'Asking traind…' : 'Sign in'),
        ),
      ),
    );
  }

  // Loads the page as if it were opened now.
  again() {
    this.address = null;
    this.route();
  }

  liveMark() {
    const state = connection.lost ? 'lost' : 'live';
    return h(
      'span',
      {class: `livemark ${state}`, title: connection.lost ? 'traind cannot be reached' : 'The page is up to date'},
      h('i', null),
      h('span', null, state),
    );
  }

  // ---- Dialogs and messages ---------------------------------------------------

  toast(text, kind = '') {
    const toast = {id: ++App.toasts, text, kind};
    this.toasts.push(toast);
    setTimeout(
      () => {
        this.toasts = this.toasts.filter((t) => t !== toast);
        this.redraw();
      },
      kind === 'bad' ? 9000 : 5000,
    );
    this.redraw();
  }

  // Shows {title, body(), action, danger, run}; run() may throw, then its message is shown and the dialog stays.
  ask(dialog) {
    this.dialog = {error: '', busy: false, ...dialog};
    this.opener = document.activeElement;
    this.redraw();
  }

  closeDialog() {
    this.dialog = null;
    this.draw();
    if (this.opener && this.opener.isConnected) this.opener.focus();
  }

  dialogTree() {
    const d = this.dialog;
    const run = async (event) => {
      event.preventDefault();
      if (d.busy) return;
      d.busy = true;
      d.error = '';
      this.redraw();
      try {
        await d.run();
        if (this.dialog === d) this.closeDialog();
      } catch (e) {
        d.error = e.message;
      }
      d.busy = false;
      this.redraw();
    };
    return h(
      'dialog',
      {
        class: 'dialog',
        'aria-labelledby': 'dialog-title',
        mounted: (el) => el.showModal(),
        oncancel: (e) => {
          e.preventDefault();
          this.closeDialog();
        },
        onclick: (e) => {
          if (e.target.tagName === 'DIALOG') this.closeDialog();
        },
      },
      h(
        'form',
        {method: 'dialog', onsubmit: run},
        h('h2', {id: 'dialog-title'}, d.title),
        d.body(),
        d.error && h('p', {class: 'problem', role: 'alert'}, d.error),
        h(
          'div',
          {class: 'buttons'},
          h('button', {type: 'button', onclick: () => this.closeDialog()}, d.run ? 'Back' : 'Close'),
          d.run &&
            h(
              'button',
              {type: 'submit', class: d.danger ? 'danger' : 'primary', disabled: d.busy, autofocus: true},
              d.busy ? 'Asking traind…' : d.action,
            ),
        ),
      ),
    );
  }

  showKeys() {
    this.ask({
      title: 'Keyboard',
      body: () =>
        h(
          'dl',
          {class: 'keys'},
          kKeys.map(([a, b, words]) =>
            h('div', null, h('dt', null, h('kbd', null, a), b && ' ', b && h('kbd', null, b)), h('dd', null, words)),
          ),
        ),
    });
  }

  // ---- Keyboard ---------------------------------------------------------------

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.key === 'Escape' && typing) event.target.blur();
    if (typing || this.dialog) return;
    const chord = Date.now() - this.chord < 1200;
    this.chord = 0;
    if (chord) {
      const page = kPages.find((p) => p.key === event.key);
      if (page) {
        event.preventDefault();
        this.go(page.path);
        return;
      }
    }
    if (this.keyOf(event)) event.preventDefault();
  }

  keyOf(event) {
    switch (event.key) {
      case 'g':
        this.chord = Date.now();
        return true;
      case '?':
        this.showKeys();
        return true;
      case 't':
        this.switchTheme();
        return true;
      case 'j':
        return this.moveRow(1);
      case 'k':
        return this.moveRow(-1);
      case '/': {
        const search = document.querySelector('[data-search]');
        if (!search) {
          this.go('jobs?search=');
          return true;
        }
        search.focus();
        search.select();
        return true;
      }
    }
    const own = this.view.keys && this.view.keys()[event.key];
    if (own) own();
    return Boolean(own);
  }

  // Rows that can be opened are links with data-row; the focus moves along them.
  moveRow(by) {
    const rows = [...document.querySelectorAll('main [data-row]')];
    if (!rows.length) return false;
    const at = rows.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by));
    rows[next].focus();
    rows[next].scrollIntoView({block: 'nearest'});
    return true;
  }

  // ---- Colour scheme ----------------------------------------------------------

  switchTheme() {
    const theme = isDark() ? 'light' : 'dark';
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem('theme', theme);
    } catch (e) {
      // Then it holds until the page is loaded again.
    }
    this.themed();
  }

  themed() {
    this.view.themed?.();
    window.dispatchEvent(new Event('themechange'));
    this.redraw();
  }
}

App.toasts = 0;

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch (e) {
    return text;
  }
}

function mark() {
  return h(
    'svg',
    {viewBox: '0 0 32 32', width: 22, height: 22, 'aria-hidden': 'true'},
    h('path', {
      d: 'M4 24 L12 14 L17 18 L24 8',
      fill: 'none',
      stroke: 'currentColor',
      'stroke-width': 3.2,
      'stroke-linecap': 'round',
      'stroke-linejoin': 'round',
    }),
    h('path', {d: 'M28 4v24', stroke: 'currentColor', 'stroke-width': 3, 'stroke-linecap': 'round', class: 'deadline'}),
  );
}

window.app = new App(document.getElementById('app'));
