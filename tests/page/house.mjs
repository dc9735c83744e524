// A real traind with its Worker in a state folder of its own, and a browser that looks at its page.

import {execFileSync, spawn} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {setTimeout as sleep} from 'node:timers/promises';

// run.sh has installed the packages there.
const packages = createRequire(path.join(process.env.PAGE_MODULES, 'package.json'));
const {chromium} = packages('playwright-core');
export const axe = packages('axe-core');

const kBin = path.resolve(process.env.TRAIND_BIN || 'bazel-bin');
const kBrowser = process.env.CHROMIUM || '/usr/bin/chromium';
const kFlags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export class House {
  constructor() {
    this.folder = mkdtempSync(path.join(tmpdir(), 'traind-page-'));
    this.grpc = '127.0.0.1:0';
    this.http = '127.0.0.1:0';
    this.flags = [];
  }

  // Starts traind, at later times with the same addresses.
  async start() {
    this.process = spawn(
      path.join(kBin, 'server/traind'),
      [
        '--standalone',
        '--slots',
        '2',
        '--state',
        this.folder,
        '--data-root',
        'examples',
        '--listen',
        this.grpc,
        '--http',
        this.http,
        ...this.flags,
      ],
      {stdio: ['ignore', 'pipe', 'pipe']},
    );
    this.log = '';
    const ready = new Promise((resolve, reject) => {
      const take = (data) => {
        this.log += data;
        const match = /traind ready grpc=(\S+) http=(\S+)/.exec(this.log);
        if (match) resolve(match);
      };
      this.process.stdout.on('data', take);
      this.process.stderr.on('data', take);
      this.process.on('exit', (code) => reject(new Error(`traind ended with ${code}: ${this.log}`)));
    });
    const [, grpc, http] = await ready;
    Object.assign(this, {grpc, http, url: `http://${http}`});
  }

  // Lets traind want tokens, and makes one. To be called before start().
  makeToken(name, role) {
    const traind = path.join(kBin, 'server/traind');
    if (!this.flags.length) {
      const tls = path.join(this.folder, 'tls');
      execFileSync(traind, ['init-tls', tls, '--host', '127.0.0.1'], {stdio: 'ignore'});
      this.flags = ['--tls', tls];
    }
    const file = path.join(this.folder, `${name}.token`);
    const state = ['--state', this.folder];
    execFileSync(traind, ['token', 'add', name, '--role', role, '--out', file, ...state], {stdio: 'ignore'});
    return readFileSync(file, 'utf8').trim();
  }

  // As the kernel would: no time to say goodbye.
  async kill() {
    const gone = new Promise((resolve) => this.process.on('exit', resolve));
    this.process.kill('SIGKILL');
    await gone;
  }

  async close() {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const gone = new Promise((resolve) => this.process.on('exit', resolve));
      this.process.kill('SIGTERM');
      await gone;
    }
    rmSync(this.folder, {recursive: true, force: true, maxRetries: 20, retryDelay: 200});
  }

  async call(method, address, body) {
    const response = await fetch(this.url + address, {method, body});
    const json = await response.json();
    if (!response.ok) throw new Error(`${method} ${address}: ${JSON.stringify(json)}`);
    return json;
  }

  async submit(spec) {
    return (await this.call('POST', '/v1/jobs', spec)).job.id;
  }

  job(id) {
    return this.call('GET', `/v1/jobs/${id}`);
  }

  // The Job as soon as `true_of` it holds.
  async until(id, what, trueOf, limitS = 60) {
    const end = Date.now() + limitS * 1000;
    for (;;) {
      const job = await this.job(id);
      if (trueOf(job)) return job;
      if (Date.now() > end) throw new Error(`not within ${limitS} s: ${what}; the Job is ${job.state}`);
      await sleep(100);
    }
  }

  over(id, limitS = 90) {
    return this.until(id, 'its end', (job) => ['SUCCEEDED', 'FAILED', 'CANCELLED'].includes(job.state), limitS);
  }
}

export function openBrowser() {
  return chromium.launch({executablePath: kBrowser, args: kFlags});
}

// With PAGE_FILES=page the files come from that folder instead of the program, which need not be built for each change.
function serveFromFolder(route) {
  const name = new URL(route.request().url()).pathname.replace(/^\/(assets\/)?/, '') || 'index.html';
  return route.fulfill({path: path.join(process.env.PAGE_FILES, name)});
}

// A tab that notes what a user would not see: errors of the page, and requests to anywhere else.
export async function openTab(browser, house, {width = 1280, height = 900, scheme = 'light'} = {}) {
  const context = await browser.newContext({viewport: {width, height}, colorScheme: scheme, reducedMotion: 'reduce'});
  const tab = await context.newPage();
  tab.problems = [];
  tab.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) tab.problems.push(`console: ${message.text()}`);
  });
  tab.on('pageerror', (error) => tab.problems.push(`error: ${error.stack}`));
  tab.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== house.url)
      tab.problems.push(`request to ${request.url()}`);
  });
  if (process.env.PAGE_FILES) await tab.route(`${house.url}/{,assets/*}`, serveFromFolder);
  tab.show = async (address) => {
    await tab.goto('about:blank');
    await tab.goto(`${house.url}/#/${address}`);
    await tab.waitForSelector('main .page');
    await tab.waitForFunction(() => !document.querySelector('main .loading'));
  };
  return tab;
}
