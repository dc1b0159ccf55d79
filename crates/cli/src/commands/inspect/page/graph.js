// Ties and far pointers in layers, from left to right.

const BOX = 190;
const GAP = 60;
const STEP = 34;

function layers(nodes, edges) {
  const layer = nodes.map(() => 0);
  // Far pointers may lead in circles: the rounds end.
  const most = Math.min(nodes.length, 12);
  for (let round = 0, moved = true; moved && round < most; round += 1) {
    moved = false;
    for (const [from, to] of edges) {
      if (from !== to && layer[to] <= layer[from] && layer[from] < most) {
        layer[to] = Math.min(layer[from] + 1, most);
        moved = true;
      }
    }
  }
  return layer;
}

function graph(params, changed) {
  const pages = new Pages('Objects', params, changed);
  const picture = drawn('svg', { class: 'graph', role: 'group', 'aria-label': 'Graph of ties and far pointers' });
  const none = element('p', { class: 'count', text: 'None of these objects is tied to another one, or has far pointers.' });
  const closed = element('p', { class: 'count' });
  const key = element('p', { class: 'count', text: '― tie: the object outlives those to its right.  ┄ far pointers lead to it.' });
  let shown = '';

  const draw = ({ nodes, edges }) => {
    const layer = layers(nodes, edges);
    const [heights, places] = [[], []];
    nodes.forEach((node, at) => {
      const column = layer[at];
      heights[column] = (heights[column] || 0) + 1;
      places[at] = [column * (BOX + GAP) + 2, (heights[column] - 1) * STEP + 2];
    });
    const [columns, rows] = [heights.length, Math.max(0, ...heights.map((height) => height || 0))];
    const [width, height] = [Math.max(1, columns * (BOX + GAP) - GAP + 4), Math.max(1, rows * STEP)];
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height })) picture.setAttribute(name, value);
    const path = ([from, to, kind]) => {
      const [[x1, y1], [x2, y2]] = [places[from], places[to]];
      const [a, b, middle] = [x1 + BOX, x2, (x1 + BOX + x2) / 2];
      return drawn('path', { class: `edge ${kind}`, d: `M${a},${y1 + 13} C${middle},${y1 + 13} ${middle},${y2 + 13} ${b - 6},${y2 + 13} m0,-4 l6,4 l-6,4` });
    };
    const box = (node, at) => {
      const [x, y] = places[at];
      const link = node.name === null ? drawn('g', { class: 'away' })
        : drawn('a', { href: route('object', { name: node.name }), 'aria-label': node.shown });
      link.append(
        drawn('title', { text: node.shown }),
        drawn('rect', { x, y, width: BOX, height: 26, rx: 4 }),
        // It clips the text.
        drawn('svg', { x: x + 8, y, width: BOX - 16, height: 26 }, drawn('text', { y: 17, text: cut(node.shown, 28) })),
      );
      return link;
    };
    picture.replaceChildren(...edges.map(path), ...nodes.map(box));
  };
  return {
    root: element('section', {}, element('h1', { text: 'Graph' }), pages.box, key, none, closed,
      element('div', { class: 'table', tabindex: '0', role: 'region', 'aria-label': 'Graph' }, picture)),
    every: 2000,
    get place() {
      return pages.query;
    },
    async refresh() {
      const page = await ask('graph', pages.query);
      pages.show(page, page.looked);
      none.hidden = page.edges.length > 0;
      key.hidden = !none.hidden;
      closed.hidden = page.closed === 0;
      put(closed, `${number(page.closed)} objects are not looked into: processes write them, or they take a key.`);
      const text = JSON.stringify([page.nodes, page.edges]);
      if (text !== shown) {
        shown = text;
        draw(page);
      }
    },
  };
}
