// Snapshots in time: a line for each object that they are of, as their names say.

const LINES = 24;
const LEFT = 220;
const LENGTH = 700;
const LINE = 22;

const source = (row) => (row.name.includes('@') ? row.shown.slice(0, row.shown.lastIndexOf('@')) : row.shown);
const cut = (text, most) => {
  const letters = [...text];
  return letters.length > most ? `${letters.slice(0, most - 1).join('')}…` : text;
};

function snapshots(params, changed) {
  const pages = new Pages('Snapshots', params, changed);
  const line = drawn('svg', { class: 'timeline', role: 'img', 'aria-label': 'Snapshots in time; the table below has them all' });
  const table = new Table('Snapshots, the newest first', [
    { title: 'Name', kind: 'wide', link: true },
    { title: 'Created', text: (row) => time(row.created), kind: 'date' },
    { title: 'Size', text: (row) => bytes(row.size), kind: 'number' },
    { title: 'Own', text: (row) => bytes(row.own), kind: 'number' },
    { title: 'Holder', text: (row) => row.held_by, kind: 'holder' },
  ]);

  const draw = (rows) => {
    const times = rows.map((row) => Date.parse(row.created));
    const [first, last] = [Math.min(...times), Math.max(...times)];
    const place = (at) => LEFT + 12 + (LENGTH - 24) * (last > first ? (at - first) / (last - first) : 0.5);
    const sources = [...new Set(rows.map(source))];
    const drawnLines = sources.slice(0, LINES);
    const height = (drawnLines.length + 1) * LINE + 8;
    line.setAttribute('viewBox', `0 0 ${LEFT + LENGTH} ${height}`);
    line.replaceChildren();
    drawnLines.forEach((of, at) => {
      const y = (at + 0.5) * LINE + 4;
      line.append(
        drawn('line', { x1: LEFT, x2: LEFT + LENGTH, y1: y, y2: y, class: 'rule' }),
        drawn('text', { x: LEFT - 10, y: y + 4, 'text-anchor': 'end' }, drawn('title', { text: of }), cut(of, 28)),
      );
    });
    rows.forEach((row, at) => {
      const number = drawnLines.indexOf(source(row));
      if (number < 0) return;
      const dot = drawn('circle', { cx: place(times[at]), cy: (number + 0.5) * LINE + 4, r: 5 });
      dot.append(drawn('title', { text: `${row.shown}\n${time(row.created)}, own ${bytes(row.own)}` }));
      line.append(dot);
    });
    const y = height - 8;
    if (rows.length) {
      const label = (at, anchor, x) => drawn('text', { x, y, 'text-anchor': anchor, text: time(new Date(at).toISOString().slice(0, 19)) });
      line.append(label(first, 'start', LEFT), ...(last > first ? [label(last, 'end', LEFT + LENGTH)] : []));
    }
    line.style.display = rows.length ? '' : 'none';
  };
  return {
    root: element('section', {}, element('h1', { text: 'Snapshots' }), pages.box, line, table.box),
    every: 2000,
    get place() {
      return pages.query;
    },
    async refresh() {
      const page = await ask('snapshots', pages.query);
      pages.show(page, page.rows.length);
      draw(page.rows);
      table.show(page.rows, (row) => [row.id, row.name]);
    },
  };
}
