// A small virtual DOM. Views return trees of h(); render() changes the document where the new tree differs
// from the last one, so focus, scroll position and text selection survive live updates.
//
// Text is only ever inserted as text nodes and attributes, never as HTML: names of Jobs are written by strangers.

const SVG = 'http://www.w3.org/2000/svg';
const svgTags = new Set(['svg', 'path', 'circle', 'line', 'rect', 'g']);
// These are state of the element and must be set as properties.
const properties = new Set(['value', 'checked', 'disabled', 'open', 'selected']);

// Makes a node. Of the props, `key` names it among its siblings, `style` is an object of CSS properties,
// functions named on<event> are listeners, and mounted(el), updated(el) and removed(el) are called when the
// element has been inserted, has been updated and is about to go. Children that are null or false are left out.
export function h(tag, props, ...children) {
  return {tag, props: props || {}, kids: flatten(children), el: null};
}

function flatten(children) {
  const kids = [];
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    kids.push(typeof child === 'object' ? child : {tag: null, text: String(child), props: {}, kids: [], el: null});
  }
  return kids;
}

// Makes the content of `container` equal to `tree`.
export function render(container, tree) {
  const old = container.tree_ || [];
  const kids = flatten([tree]);
  patchChildren(container, old, kids);
  container.tree_ = kids;
}

function create(node) {
  if (node.tag === null) {
    node.el = document.createTextNode(node.text);
    return node.el;
  }
  const el = svgTags.has(node.tag) ? document.createElementNS(SVG, node.tag) : document.createElement(node.tag);
  node.el = el;
  // Options must exist before the value of their select is set.
  for (const kid of node.kids) el.appendChild(create(kid));
  patchProps(el, {}, node.props);
  return el;
}

function insertedAll(node) {
  for (const kid of node.kids) insertedAll(kid);
  if (node.props.mounted) node.props.mounted(node.el);
}

function removedAll(node) {
  if (node.props.removed) node.props.removed(node.el);
  for (const kid of node.kids) removedAll(kid);
}

function patch(old, node) {
  node.el = old.el;
  if (node.tag === null) {
    if (old.text !== node.text) node.el.nodeValue = node.text;
    return;
  }
  patchChildren(node.el, old.kids, node.kids);
  patchProps(node.el, old.props, node.props);
  if (node.props.updated) node.props.updated(node.el);
}

function patchChildren(parent, oldKids, kids) {
  const keyed = new Map();
  const plain = [];
  for (const old of oldKids) {
    if (old.props.key !== undefined) keyed.set(old.props.key, old);
    else plain.push(old);
  }
  const used = new Set();
  const fresh = [];
  let next = 0;
  for (const node of kids) {
    let old;
    if (node.props.key !== undefined) {
      old = keyed.get(node.props.key);
    } else {
      while (next < plain.length && plain[next].tag !== node.tag) next++;
      old = plain[next++];
    }
    if (old && !used.has(old) && old.tag === node.tag) {
      used.add(old);
      patch(old, node);
    } else {
      create(node);
      fresh.push(node);
    }
  }
  // The old ones go first, so that no element that stays is moved: moving one takes its focus away.
  for (const old of oldKids) {
    if (used.has(old)) continue;
    removedAll(old);
    parent.removeChild(old.el);
  }
  let place = parent.firstChild;
  for (const node of kids) {
    if (node.el === place) place = place.nextSibling;
    else parent.insertBefore(node.el, place);
  }
  if (parent.isConnected) fresh.forEach(insertedAll);
}

function patchProps(el, old, props) {
  for (const name of Object.keys(old)) {
    if (!(name in props)) setProp(el, name, old[name], undefined);
  }
  for (const [name, value] of Object.entries(props)) {
    if (properties.has(name)) {
      if (el[name] !== value) el[name] = value;
    } else if (old[name] !== value) {
      setProp(el, name, old[name], value);
    }
  }
}

const hooks = new Set(['key', 'mounted', 'updated', 'removed']);

function setProp(el, name, old, value) {
  if (hooks.has(name)) return;
  if (name === 'style') {
    setStyle(el, old || {}, value || {});
  } else if (name.startsWith('on')) {
    setListener(el, name.slice(2), value);
  } else if (properties.has(name)) {
    el[name] = value === undefined ? '' : value;
  } else if (value === undefined || value === null || value === false) {
    el.removeAttribute(name);
  } else {
    el.setAttribute(name, value === true ? '' : String(value));
  }
}

// The policy of the page forbids style attributes; single properties may be set.
function setStyle(el, old, style) {
  for (const name of Object.keys(old)) {
    if (!(name in style)) el.style.removeProperty(name);
  }
  for (const [name, value] of Object.entries(style)) {
    if (old[name] !== value) el.style.setProperty(name, value);
  }
}

// One listener per element and event looks up the newest function, so an update does not add and remove any.
function setListener(el, event, listener) {
  if (!el.listeners_) el.listeners_ = {};
  if (!(event in el.listeners_)) {
    el.addEventListener(event, (e) => {
      const current = el.listeners_[event];
      if (current) current(e);
    });
  }
  el.listeners_[event] = listener;
}
