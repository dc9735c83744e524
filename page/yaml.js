// JSON as a reader of YAML likes it: what is unset or empty is left out.

const plain = /^[A-Za-z_/][\w./-]*$/;
const words = /^(true|false|null|yes|no|on|off|y|n|nan|inf)$/i;

function scalar(value) {
  if (typeof value !== 'string') return String(value);
  return plain.test(value) && !words.test(value) ? value : JSON.stringify(value);
}

const isUnset = (value) =>
  value === null ||
  value === undefined ||
  value === '' ||
  (typeof value === 'object' && !Array.isArray(value) && Object.values(value).every(isUnset)) ||
  (Array.isArray(value) && value.length === 0);

export function toYaml(value, indent = '') {
  return Object.entries(value)
    .filter(([, v]) => !isUnset(v))
    .map(([key, v]) => `${indent}${scalar(key)}:${below(v, indent)}`)
    .join('\n');
}

function below(value, indent) {
  if (Array.isArray(value)) {
    if (value.every((v) => typeof v !== 'object')) return ` [${value.map(scalar).join(', ')}]`;
    return value.map((v) => `\n${indent}  - ${toYaml(v, indent + '    ').trimStart()}`).join('');
  }
  if (typeof value === 'object') return '\n' + toYaml(value, indent + '  ');
  return ' ' + scalar(value);
}
