// A map of the pool's bytes: cells from left to right, filled from below.

const WIDE = 64;
const SIDE = 12;
const KINDS = [
  ['objects', 'Objects'],
  ['lanes', 'Logs of writers'],
  ['other', 'Table, and objects without a name'],
  ['free', 'Free'],
];

function hue(name) {
  let sum = 7;
  for (const letter of name) sum = (sum * 31 + letter.codePointAt(0)) % 1000003;
  return sum % 8;
}

function space() {
  const map = drawn('svg', {
    class: 'map',
    tabindex: '0',
    role: 'application',
    'aria-label': 'Map of space: arrow keys choose a cell, Enter goes into it, Escape out',
    'aria-describedby': 'cell',
  });
  const cursor = drawn('rect', { class: 'cursor', width: SIDE, height: SIDE });
  const said = element('p', { id: 'cell', class: 'cell', role: 'status' });
  const legend = element('ul', { class: 'legend' }, ...KINDS.map(([kind, title]) => element('li', {},
    drawn('svg', { viewBox: '0 0 10 10', class: 'key', 'aria-hidden': 'true' },
      drawn('rect', { width: 10, height: 10, class: kind === 'objects' ? 'o0' : kind })),
    element('span', { text: title }), element('b'))));
  const out = element('button', { type: 'button', text: 'Whole pool', disabled: '', onclick: () => leave() });
  const range = element('span', { class: 'count' });
  let [within, chosen, found] = [[], 0, null];

  const leave = () => {
    within.pop();
    chosen = 0;
    view.refresh().then(() => map.focus());
  };
  const enter = () => {
    const from = found.from + chosen * found.cell;
    if (found.cell <= 4096) return;
    within.push({ from, to: Math.min(from + found.cell, found.to) });
    chosen = 0;
    view.refresh();
  };
  const choose = (at) => {
    chosen = Math.max(0, Math.min(at, found.cells.length - 1));
    point();
  };
  const point = () => {
    cursor.setAttribute('x', (chosen % WIDE) * SIDE);
    cursor.setAttribute('y', Math.floor(chosen / WIDE) * SIDE);
    const cell = found.cells[chosen];
    const parts = KINDS.filter(([kind]) => cell[kind] > 0).map(([kind, title]) => `${title.toLowerCase()} ${bytes(cell[kind])}`);
    said.replaceChildren(`At ${number(found.from + chosen * found.cell)}: ${parts.join(', ')}. `);
    if (cell.object !== undefined) {
      const [name, shown] = found.objects[cell.object];
      said.append('The largest part is of ', nameLink({ name, shown }), '.');
    }
  };
  map.addEventListener('keydown', (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -WIDE, ArrowDown: WIDE, Home: -Infinity, End: Infinity };
    if (event.key in steps && found) choose(chosen + steps[event.key]);
    else if (event.key === 'Enter' && found) enter();
    else if (event.key === 'Escape' && within.length) leave();
    else return;
    event.preventDefault();
  });
  map.addEventListener('click', (event) => {
    const box = map.getBoundingClientRect();
    const scale = (WIDE * SIDE) / box.width;
    const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    if (found) choose(Math.floor(y / SIDE) * WIDE + Math.floor(x / SIDE));
  });
  map.addEventListener('dblclick', () => found && enter());

  const view = {
    root: element('section', {}, element('h1', { text: 'Space' }),
      element('div', { class: 'pages' }, out, range), map, said, legend),
    every: 3000,
    async refresh() {
      found = await ask('space', within.length ? within[within.length - 1] : {});
      const rows = Math.ceil(found.cells.length / WIDE);
      map.setAttribute('viewBox', `0 0 ${WIDE * SIDE} ${rows * SIDE}`);
      const parts = [];
      found.cells.forEach((cell, at) => {
        const [x, y] = [(at % WIDE) * SIDE, Math.floor(at / WIDE) * SIDE];
        const all = cell.objects + cell.lanes + cell.other + cell.free;
        const kind = (of) => (of === 'objects' ? `o${hue(found.objects[cell.object][0])}` : of);
        let top = SIDE - 1;
        parts.push(drawn('rect', { x, y, width: SIDE - 1, height: SIDE - 1, class: 'free' }));
        for (const [of] of KINDS.slice(0, 3)) {
          if (cell[of] > 0) {
            const height = Math.max(1, Math.round(((SIDE - 1) * cell[of]) / all));
            top = Math.max(0, top - height);
            parts.push(drawn('rect', { x, y: y + top, width: SIDE - 1, height: Math.min(height, SIDE - 1), class: kind(of) }));
          }
        }
      });
      map.replaceChildren(...parts, cursor);
      choose(chosen);
      KINDS.forEach(([kind], at) => put(legend.children[at].lastChild, bytes(found.totals[kind])));
      out.disabled = within.length === 0;
      put(out, within.length > 1 ? 'Out' : 'Whole pool');
      put(range, `bytes ${number(found.from)} to ${number(found.to)}, ${bytes(found.cell)} a cell`);
    },
  };
  return view;
}
