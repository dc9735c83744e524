import assert from 'node:assert/strict';
import test, {afterEach, beforeEach} from 'node:test';

import {connection, isSignedIn, listWorkers, session, signIn, signOut, toSystem} from '../../../page/api.js';
import {refresh, streamJob} from '../../../page/live.js';

let streams;
let answer;

beforeEach(() => {
  streams = [];
  answer = null;
  connection.tell(false);
  globalThis.EventSource = class {
    constructor(address) {
      this.address = address;
      streams.push(this);
    }
    addEventListener(name, listener) {
      this.onjob = listener;
    }
    send(job) {
      this.onjob({data: JSON.stringify(job)});
    }
    close() {
      this.closed = true;
    }
  };
  globalThis.fetch = async () => {
    if (!answer) throw new TypeError('refused');
    return new Response(JSON.stringify(answer.json), {status: answer.status});
  };
});

afterEach(() => connection.tell(false));

const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

test('each state of a Job is passed on until it is over', () => {
  const seen = [];
  streamJob('a b', (job) => seen.push(job.state));
  assert.equal(streams[0].address, '/v1/jobs/a%20b/events');
  streams[0].send({state: 'RUNNING'});
  streams[0].send({state: 'SUCCEEDED'});
  assert.deepEqual(seen, ['RUNNING', 'SUCCEEDED']);
  assert.ok(streams[0].closed);
});

test('where a stream is refused but calls are answered, the Job is still followed, and nothing is lost', async () => {
  const seen = [];
  answer = {status: 200, json: {state: 'RUNNING', version: 7}};
  const stop = streamJob('a', (job) => seen.push(job.version));
  streams[0].onerror();
  await settled();
  assert.deepEqual(seen, [7]);
  assert.equal(connection.lost, false);
  stop();
});

test('where nothing is answered the connection is lost, until a stream opens again', async () => {
  const stop = streamJob('a', () => {});
  streams[0].onerror();
  await settled();
  assert.equal(connection.lost, true);
  await new Promise((resolve) => setTimeout(resolve, 800));
  assert.equal(streams.length, 2);
  streams[1].onopen();
  assert.equal(connection.lost, false);
  stop();
});

test('a Job that is gone is not asked for again', async () => {
  answer = {status: 404, json: {error: {code: 404, status: 'NOT_FOUND', message: 'no such Job'}}};
  streamJob('a', () => assert.fail('there is no Job'));
  streams[0].onerror();
  await new Promise((resolve) => setTimeout(resolve, 800));
  assert.equal(streams.length, 1);
});

test('nothing comes from a stream that was left', async () => {
  answer = {status: 200, json: {state: 'RUNNING'}};
  const stop = streamJob('a', () => assert.fail('it was left'));
  streams[0].onerror();
  stop();
  await settled();
});

test('a page is drawn after each answer, and an error stands in it until the next answer', async () => {
  globalThis.document = {hidden: false, addEventListener() {}, removeEventListener() {}};
  const drawn = [];
  let fails = true;
  const page = {
    app: {redraw: () => drawn.push(page.error && page.error.message)},
    async load() {
      if (fails) throw new Error('refused');
    },
  };
  const stop = refresh(page, 60000);
  await settled();
  assert.deepEqual(drawn, ['refused']);
  fails = false;
  stop.again();
  await settled();
  assert.deepEqual(drawn, ['refused', null]);
  stop();
  delete globalThis.document;
});

test('the page of metrics tells the version and the start of traind', () => {
  const text = '# TYPE x gauge\ntraind_build_info{version="0.1.0"} 1\nprocess_start_time_seconds 1795439854.5\n';
  assert.deepEqual(toSystem(text), {version: '0.1.0', started_at: 1795439854500, memory_bytes: null, streams: null});
});

test('a call without a token asks for one; it goes to traind as text, and another refusal is told', async () => {
  const kept = new Map();
  globalThis.sessionStorage = {
    getItem: (key) => kept.get(key) || null,
    setItem: (key, value) => kept.set(key, value),
    removeItem: (key) => kept.delete(key),
  };
  const told = [];
  session.listeners.add((needed) => told.push(needed));
  answer = {status: 401, json: {error: {code: 401, status: 'UNAUTHENTICATED', message: 'this traind needs a token'}}};
  await assert.rejects(listWorkers(), /needs a token/);
  assert.deepEqual(told, [true]);
  await assert.rejects(signIn('traind_0'), /needs a token/);
  assert.equal(isSignedIn(), false);
  const asked = [];
  globalThis.fetch = async (path, options) => {
    asked.push([options.method, path, options.body, options.headers['Content-Type']]);
    return new Response(null, {status: 204});
  };
  await signIn('traind_1');
  assert.deepEqual(asked, [['POST', '/session', 'traind_1', 'text/plain']]);
  assert.ok(isSignedIn());
  await signOut();
  assert.equal(isSignedIn(), false);
  assert.deepEqual(told, [true, false, true]);
});
