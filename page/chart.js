// A chart of lines on a canvas: thinned lines, a band, a crosshair with values, zoom by dragging.

import {extent, lowerBound, thin} from './curves.js';
import {figure, ticks, timeMark, timeTicks} from './format.js';
import {h} from './dom.js';

const kMargin = {left: 52, right: 12, top: 10, bottom: 24};

// Colours that people with any kind of colour vision can tell apart (Okabe and Ito), dark enough on white and
// light enough on black.
const kLight = ['#0072b2', '#d55e00', '#00815f', '#b1468f', '#9a6700', '#3b82c4', '#6d4bb8', '#6b6b6b'];
const kDark = ['#56b4e9', '#f2903f', '#3ecf9f', '#e39ac6', '#f0cf45', '#9fc5f8', '#b9a1f5', '#b0b0b0'];

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

export function lineColour(i) {
  const palette = isDark() ? kDark : kLight;
  return palette[i % palette.length];
}

// data: {
//   lines: [{label, x, y, colour, width, faint, dashed}], band: {x, low, high, colour} or null,
//   axis: epoch | step | time, log, format(y), label (a sentence for those who do not see it), height
// }
// A new picture is drawn when `version` is another one.
export function chart(data) {
  return h(
    'div',
    {
      key: data.key,
      class: 'chart',
      style: {height: `${data.height || 280}px`},
      mounted: (el) => {
        el.chart_ = new Chart(el);
        el.chart_.set(data);
      },
      updated: (el) => el.chart_ && el.chart_.set(data),
      removed: (el) => el.chart_ && el.chart_.stop(),
    },
    h('canvas', {role: 'img', 'aria-label': data.label || 'chart'}),
    h('div', {class: 'tip', hidden: true}),
  );
}

class Chart {
  constructor(el) {
    this.el = el;
    this.canvas = el.querySelector('canvas');
    this.tip = el.querySelector('.tip');
    this.zoom = null;
    this.hover = null;
    this.drag = null;
    this.frame = 0;
    this.sizes = new ResizeObserver(() => this.later());
    this.sizes.observe(el);
    this.redraw = () => this.later();
    window.addEventListener('themechange', this.redraw);
    this.listen();
  }

  stop() {
    this.sizes.disconnect();
    window.removeEventListener('themechange', this.redraw);
    cancelAnimationFrame(this.frame);
  }

  set(data) {
    if (this.data && this.data.version === data.version) return;
    if (this.data && this.data.axis !== data.axis) this.zoom = null;
    this.data = data;
    this.later();
  }

  later() {
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
    }
  }

  listen() {
    const at = (event) => event.clientX - this.canvas.getBoundingClientRect().left;
    this.canvas.addEventListener('pointermove', (event) => {
      this.hover = at(event);
      this.later();
    });
    this.canvas.addEventListener('pointerleave', () => {
      this.hover = null;
      this.later();
    });
    this.canvas.addEventListener('pointerdown', (event) => {
      // A finger that moves scrolls the page.
      if (event.pointerType === 'touch' || event.button !== 0) return;
      this.drag = at(event);
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener('pointerup', (event) => {
      const from = this.drag;
      this.drag = null;
      if (from === null || !this.view) return;
      const to = at(event);
      if (Math.abs(to - from) > 6) this.zoom = [from, to].map((px) => this.view.toX(px)).sort((a, b) => a - b);
      this.later();
    });
    this.canvas.addEventListener('dblclick', () => {
      this.zoom = null;
      this.later();
    });
  }

  draw() {
    const began = performance.now();
    const width = this.el.clientWidth;
    const height = this.el.clientHeight;
    if (!width || !this.data) return;
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const g = this.canvas.getContext('2d');
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    const style = getComputedStyle(this.el);
    this.ink = {
      text: style.getPropertyValue('--muted'),
      grid: style.getPropertyValue('--grid'),
      font: style.fontFamily,
    };
    this.view = this.makeView(width, height);
    if (this.view) {
      this.drawAxes(g);
      g.save();
      g.beginPath();
      g.rect(kMargin.left, 0, width - kMargin.left - kMargin.right, height);
      g.clip();
      if (this.data.band) this.drawBand(g, this.data.band);
      for (const line of this.data.lines) this.drawLine(g, line);
      this.drawDrag(g);
      g.restore();
    }
    this.drawHover(g);
    this.el.drawMs = performance.now() - began;
  }

  // The mapping between values and pixels; null where there is nothing to draw.
  makeView(width, height) {
    const {lines, log} = this.data;
    const xs = this.zoom || extent(lines.map((line) => (line.x.length ? [line.x[0], line.x[line.x.length - 1]] : [])));
    if (!xs) return null;
    const room = this.zoom ? 0 : (xs[1] - xs[0]) * 0.01 || 0.5;
    const [x0, x1] = [xs[0] - room, xs[1] + room];
    const visible = lines.map((line) => {
      const from = Math.max(0, lowerBound(line.x, x0) - 1);
      return line.y.slice(from, Math.min(line.x.length, lowerBound(line.x, x1) + 1));
    });
    const ys = extent(visible, log);
    if (!ys) return null;
    const f = log ? Math.log10 : (v) => v;
    let [y0, y1] = ys.map(f);
    const pad = (y1 - y0) * 0.06 || Math.abs(y1) * 0.05 || 0.5;
    // Values that are never negative get no negative axis.
    y0 = !log && ys[0] >= 0 ? Math.max(0, y0 - pad) : y0 - pad;
    y1 += pad;
    const [left, right, top, bottom] = [kMargin.left, width - kMargin.right, kMargin.top, height - kMargin.bottom];
    return {
      width,
      height,
      left,
      right,
      top,
      bottom,
      x0,
      x1,
      y0,
      y1,
      log,
      px: (x) => left + ((x - x0) / (x1 - x0)) * (right - left),
      py: (y) => bottom - ((f(y) - y0) / (y1 - y0)) * (bottom - top),
      toX: (px) => x0 + ((px - left) / (right - left)) * (x1 - x0),
    };
  }

  drawAxes(g) {
    const v = this.view;
    g.font = `11px ${this.ink.font}`;
    g.lineWidth = 1;
    g.strokeStyle = this.ink.grid;
    g.fillStyle = this.ink.text;
    g.textBaseline = 'middle';
    g.textAlign = 'right';
    for (const y of this.yTicks()) {
      const py = Math.round(v.py(y)) + 0.5;
      line(g, v.left, py, v.right, py);
      g.fillText(this.data.format ? this.data.format(y) : figure(y), v.left - 8, py);
    }
    g.textBaseline = 'top';
    const most = Math.max(2, Math.floor((v.right - v.left) / 70));
    const timed = this.data.axis === 'time';
    const marks = timed ? timeTicks(v.x0, v.x1, most) : ticks(v.x0, v.x1, most);
    for (const x of marks) {
      const px = v.px(x);
      const text = timed ? timeMark(x) : figure(x);
      const half = g.measureText(text).width / 2;
      g.textAlign = px + half > v.right + 8 ? 'right' : 'center';
      g.fillText(text, g.textAlign === 'right' ? v.right + 8 : px, v.bottom + 8);
    }
  }

  yTicks() {
    const v = this.view;
    const most = Math.max(2, Math.floor((v.bottom - v.top) / 46));
    if (!v.log) return ticks(v.y0, v.y1, most);
    const marks = [];
    for (let e = Math.ceil(v.y0); e <= v.y1; e++) marks.push(10 ** e);
    if (marks.length >= 2) return marks.filter((_, i) => i % Math.ceil(marks.length / most) === 0);
    return ticks(10 ** v.y0, 10 ** v.y1, most).filter((y) => y > 0);
  }

  drawBand(g, band) {
    const v = this.view;
    if (band.x.length < 2) return;
    const ok = (y) => !v.log || y > 0;
    g.beginPath();
    band.x.forEach((x, i) => ok(band.high[i]) && g.lineTo(v.px(x), v.py(band.high[i])));
    for (let i = band.x.length - 1; i >= 0; i--) if (ok(band.low[i])) g.lineTo(v.px(band.x[i]), v.py(band.low[i]));
    g.closePath();
    g.globalAlpha = 0.13;
    g.fillStyle = band.colour;
    g.fill();
    g.globalAlpha = 1;
  }

  drawLine(g, data) {
    const v = this.view;
    const from = Math.max(0, lowerBound(data.x, v.x0) - 1);
    const to = Math.min(data.x.length, lowerBound(data.x, v.x1) + 2);
    g.beginPath();
    let pen = false;
    let drawn = 0;
    thin(data.x, data.y, from, to, v.x0, v.x1, v.right - v.left, (x, y) => {
      if (!isFinite(y) || (v.log && y <= 0)) {
        pen = false;
        return;
      }
      if (pen) g.lineTo(v.px(x), v.py(y));
      else g.moveTo(v.px(x), v.py(y));
      pen = true;
      drawn++;
    });
    g.strokeStyle = data.colour;
    g.globalAlpha = data.faint ? 0.45 : 1;
    g.lineWidth = data.width || 1.5;
    g.lineJoin = 'round';
    g.setLineDash(data.dashed ? [5, 4] : []);
    g.stroke();
    g.setLineDash([]);
    if (drawn === 1 || data.x.length === 1) dot(g, v.px(data.x[0]), v.py(data.y[0]), data.colour);
    g.globalAlpha = 1;
  }

  drawDrag(g) {
    if (this.drag === null || this.hover === null) return;
    g.globalAlpha = 0.12;
    g.fillStyle = this.ink.text;
    g.fillRect(this.drag, this.view.top, this.hover - this.drag, this.view.bottom - this.view.top);
    g.globalAlpha = 1;
  }

  drawHover(g) {
    const v = this.view;
    const inside = v && this.hover !== null && this.hover >= v.left && this.hover <= v.right;
    this.tip.hidden = !inside;
    if (!inside) return;
    const x = v.toX(this.hover);
    const near = this.data.lines
      .map((data) => ({data, i: nearest(data.x, x)}))
      .filter(({data, i}) => i >= 0 && Math.abs(v.px(data.x[i]) - this.hover) < 24 && isFinite(data.y[i]));
    if (!near.length) {
      this.tip.hidden = true;
      return;
    }
    const at = near.reduce((a, b) => (Math.abs(b.data.x[b.i] - x) < Math.abs(a.data.x[a.i] - x) ? b : a));
    const px = v.px(at.data.x[at.i]);
    g.strokeStyle = this.ink.text;
    g.globalAlpha = 0.5;
    line(g, px, v.top, px, v.bottom);
    g.globalAlpha = 1;
    for (const {data, i} of near) dot(g, v.px(data.x[i]), v.py(data.y[i]), data.colour);
    this.fillTip(at.data.x[at.i], near, px);
  }

  fillTip(x, near, px) {
    const format = this.data.format || figure;
    const head = this.data.axis === 'time' ? timeMark(Number(x.toPrecision(3))) : `${this.data.axis} ${figure(x)}`;
    const shown = near.slice(0, 10);
    this.tip.replaceChildren(
      tipLine(head, null),
      ...shown.map(({data, i}) => tipLine(`${data.label}`, data.colour, format(data.y[i]))),
    );
    const right = px > this.view.width / 2;
    this.tip.style.setProperty('left', right ? 'auto' : `${px + 12}px`);
    this.tip.style.setProperty('right', right ? `${this.view.width - px + 12}px` : 'auto');
  }
}

function tipLine(text, colour, value) {
  const row = document.createElement('div');
  if (colour) {
    const mark = document.createElement('i');
    mark.style.setProperty('background', colour);
    row.append(mark);
  }
  const name = document.createElement('span');
  name.textContent = text;
  row.append(name);
  if (value !== undefined) {
    const figure = document.createElement('b');
    figure.textContent = value;
    row.append(figure);
  }
  return row;
}

function nearest(x, at) {
  if (!x.length) return -1;
  const i = lowerBound(x, at);
  if (i === 0) return 0;
  if (i === x.length) return x.length - 1;
  return at - x[i - 1] <= x[i] - at ? i - 1 : i;
}

function line(g, x0, y0, x1, y1) {
  g.beginPath();
  g.moveTo(x0, y0);
  g.lineTo(x1, y1);
  g.stroke();
}

function dot(g, x, y, colour) {
  g.beginPath();
  g.arc(x, y, 3.2, 0, 2 * Math.PI);
  g.fillStyle = colour;
  g.fill();
}
