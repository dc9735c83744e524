// How figures, times and words of the daemon are written. Pure functions.

const pad = (n) => String(n).padStart(2, '0');

// 3.2 s, 1 m 30 s, 2 h 05 m, 3 d 4 h; for tables and sentences.
export function duration(s) {
  if (s === null || s === undefined || !isFinite(s)) return '–';
  if (s < 0) return '−' + duration(-s);
  if (s < 0.9995) return `${Math.round(s * 1000)} ms`;
  if (s < 9.95) return `${s.toFixed(1)} s`;
  const whole = Math.round(s);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${pad(whole % 60)} s`;
  const minutes = Math.round(s / 60);
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} m`;
  const hours = Math.round(s / 3600);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

// A clock that runs down: 0:42, 12:05, 1:02:03, 2 d 03:04.
export function countdown(s) {
  if (s === null || s === undefined || !isFinite(s)) return '–';
  const sign = s < 0 ? '−' : '';
  const whole = Math.floor(Math.abs(s));
  const [d, hh, mm, ss] = [
    Math.floor(whole / 86400),
    Math.floor(whole / 3600) % 24,
    Math.floor(whole / 60) % 60,
    whole % 60,
  ];
  if (d) return `${sign}${d} d ${pad(hh)}:${pad(mm)}`;
  return sign + (hh ? `${hh}:${pad(mm)}:${pad(ss)}` : `${mm}:${pad(ss)}`);
}

// Seconds of a duration as the daemon writes it ("3.484s") or people do ("1h30m", "90 s"); null if it is none.
export function parseDuration(text) {
  if (typeof text === 'number') return text;
  if (typeof text !== 'string') return null;
  const parts = [...text.trim().matchAll(/([0-9]*\.?[0-9]+)\s*(ms|s|m|h|d)\s*/gy)];
  const length = parts.reduce((n, part) => n + part[0].length, 0);
  if (!parts.length || length !== text.trim().length) return null;
  const size = {ms: 0.001, s: 1, m: 60, h: 3600, d: 86400};
  return parts.reduce((sum, [, n, unit]) => sum + Number(n) * size[unit], 0);
}

export function clock(ms) {
  if (ms === null || ms === undefined) return '–';
  const t = new Date(ms);
  return `${pad(t.getHours())}:${pad(t.getMinutes())}:${pad(t.getSeconds())}`;
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

// The time alone where it is of today, else with its day.
export function moment(ms, now = Date.now()) {
  if (ms === null || ms === undefined) return '–';
  const t = new Date(ms);
  const day = `${t.getDate()} ${months[t.getMonth()]}`;
  if (t.toDateString() === new Date(now).toDateString()) return clock(ms);
  const time = `${pad(t.getHours())}:${pad(t.getMinutes())}`;
  return t.getFullYear() === new Date(now).getFullYear() ? `${day} ${time}` : `${day} ${t.getFullYear()} ${time}`;
}

export function ago(ms, now = Date.now()) {
  if (ms === null || ms === undefined) return '–';
  const s = (now - ms) / 1000;
  if (s < 5) return 'just now';
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}

// Four significant digits, as scores are compared by.
export function figure(x) {
  if (x === null || x === undefined) return '–';
  if (typeof x !== 'number' || Number.isNaN(x)) return 'NaN';
  if (!isFinite(x)) return x > 0 ? '∞' : '−∞';
  if (x === 0) return '0';
  const size = Math.abs(x);
  if (size >= 1e6 || size < 1e-4) return x.toExponential(2).replace('e+', 'e').replace('-', '−').replace('e-', 'e−');
  if (size >= 1000) return Math.round(x).toLocaleString('en-US').replace('-', '−');
  return String(Number(x.toPrecision(4))).replace('-', '−');
}

export function count(n) {
  return n === null || n === undefined ? '–' : Math.round(n).toLocaleString('en-US');
}

export function bytes(n) {
  if (n === null || n === undefined) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

// What a GPU told last: "72 %, 3.0 GiB, 250 W, 61 °C".
export function deviceFigures(figures) {
  if (!figures) return '–';
  const parts = [];
  if (figures.utilisation !== null) parts.push(percent(figures.utilisation));
  if (figures.memory_bytes !== null) parts.push(bytes(figures.memory_bytes));
  if (figures.power_watts !== null) parts.push(`${Math.round(figures.power_watts)} W`);
  if (figures.temperature_celsius !== null) parts.push(`${Math.round(figures.temperature_celsius)} °C`);
  return parts.join(', ') || '–';
}

export function percent(share) {
  if (share === null || share === undefined || !isFinite(share)) return '–';
  const p = share * 100;
  return `${p > 0 && p < 9.95 ? p.toFixed(1).replace(/\.0$/, '') : Math.round(p)} %`;
}

export function plural(n, one, many = one + 's') {
  return `${count(n)} ${n === 1 ? one : many}`;
}

// Where marks of an axis stand: about `most` round values from `low` to `high`.
export function ticks(low, high, most) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const marks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++)
    marks.push(Number((k * step).toPrecision(12)));
  return marks;
}

// The same in seconds, on steps that clocks have.
export function timeTicks(low, high, most) {
  const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];
  const rough = (high - low) / Math.max(1, most);
  const step = steps.find((s) => s >= rough) || 86400 * Math.ceil(rough / 86400);
  const marks = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) marks.push(Number((k * step).toPrecision(12)));
  return marks;
}

// A mark of such an axis: 30 s, 5 m, 1:30 h.
export function timeMark(s) {
  if (s === 0) return '0';
  if (s < 60) return `${Number(s.toPrecision(3))} s`;
  if (s < 3600) return s % 60 ? `${Math.floor(s / 60)}:${pad(Math.round(s % 60))}` : `${s / 60} m`;
  if (s < 172800) return s % 3600 ? `${Math.floor(s / 3600)}:${pad(Math.round((s % 3600) / 60))} h` : `${s / 3600} h`;
  return `${Math.round(s / 86400)} d`;
}
