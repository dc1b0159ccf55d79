'use strict';
// Elements and figures. Text enters by textContent alone: names may have any characters.

const SVG = 'http://www.w3.org/2000/svg';

function make(created, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'text') created.textContent = value;
    else if (name.startsWith('on')) created.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) created.setAttribute(name, value);
  }
  created.append(...children);
  return created;
}

const element = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);
const drawn = (tag, attributes, ...children) => make(document.createElementNS(SVG, tag), attributes, children);

// Shows characters that hide or reorder text, as the tool does.
const visible = (text) =>
  text.replace(/[\p{Cc}\p{Cf}\p{DI}\p{Zl}\p{Zp}]/gu, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`);

function put(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

function bytes(count) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit += 1;
  }
  const digits = unit > 0 && count < 100 && count % 1 !== 0 ? 1 : 0;
  return `${count.toFixed(digits)} ${units[unit]}`;
}

const number = (count) => count.toLocaleString('en');
const rate = (value) => (value === null ? '–' : value.toLocaleString('en', { maximumFractionDigits: 1 }));
const time = (text) => text.replace('T', ' ').replace('Z', ' UTC');
const route = (view, of) => `#/${view}?${new URLSearchParams(of)}`;

const STATES = { D: 'detached', R: 'read', W: 'written', P: 'in a psync', C: 'psync to complete' };

// A name that leads to its object.
function nameLink(row) {
  const link = element('a', { href: route('object', { name: row.name }), class: 'name', title: row.shown });
  link.append(element('bdi', { text: row.shown }));
  return link;
}

// Names and values, which keep their places.
function fields(names) {
  const list = element('dl', { class: 'fields' });
  const values = names.map((name) => {
    const value = element('dd');
    list.append(element('dt', { text: name }), value);
    return value;
  });
  return { list, values };
}

// A table whose rows stay where they are as long as their keys do.
class Table {
  constructor(caption, columns) {
    this.columns = columns;
    this.keys = '';
    this.body = element('tbody');
    const heading = ({ title, kind }) => element('th', { scope: 'col', class: kind || '', text: title });
    this.table = element(
      'table',
      {},
      element('caption', { text: caption, class: 'hidden' }),
      element('thead', {}, element('tr', {}, ...columns.map(heading))),
      this.body,
    );
    this.box = element('div', { class: 'table', role: 'region', 'aria-label': caption, tabindex: '0' }, this.table);
  }

  show(rows, keyOf) {
    const keys = JSON.stringify(rows.map(keyOf));
    if (keys !== this.keys) {
      this.keys = keys;
      const cell = (row) => ({ kind, link }) =>
        link ? element('td', { class: kind || '' }, nameLink(row)) : element('td', { class: kind || '' });
      this.body.replaceChildren(...rows.map((row) => element('tr', {}, ...this.columns.map(cell(row)))));
    }
    rows.forEach((row, at) => {
      this.columns.forEach(({ link, text }, column) => {
        if (!link) {
          const target = this.body.rows[at].cells[column];
          const said = text(row);
          put(target, said);
          if (target.title !== said) target.title = said;
        }
      });
    });
  }
}

// Search by prefix, and pages.
class Pages {
  constructor(what, params, changed) {
    this.from = Number(params.get('from')) || 0;
    this.input = element('input', {
      type: 'search',
      value: params.get('prefix') || '',
      placeholder: 'Names that begin with …',
      'aria-label': `${what} whose names begin with`,
      maxlength: 511,
      spellcheck: 'false',
      autocomplete: 'off',
      oninput: () => this.go(0),
    });
    const button = (text, label, to) =>
      element('button', { type: 'button', text, 'aria-label': label, onclick: () => this.go(to()) });
    this.back = button('‹ Back', `${what} before these`, () => this.from - this.most);
    this.on = button('Next ›', `${what} behind these`, () => this.from + this.most);
    this.said = element('span', { class: 'count', role: 'status' });
    this.box = element('div', { class: 'pages' }, this.input, this.back, this.on, this.said);
    this.changed = changed;
    this.most = 200;
    this.what = what;
  }

  get query() {
    return { prefix: this.input.value, from: this.from };
  }

  go(from) {
    this.from = Math.max(0, from);
    this.changed();
  }

  show({ matching, from }, shown) {
    this.from = from;
    const last = from + shown;
    put(this.said, matching ? `${number(from + 1)}–${number(Math.max(last, from + 1))} of ${number(matching)}` : 'none');
    this.back.disabled = from === 0;
    this.on.disabled = from + this.most >= matching;
  }
}
