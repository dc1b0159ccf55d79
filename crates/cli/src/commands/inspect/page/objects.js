// Pages of the objects; rates of those on the page.

function objects(params, changed) {
  const rates = new Rates();
  const pages = new Pages('Objects', params, changed);
  const table = new Table('Objects', [
    { title: 'Name', kind: 'wide', link: true },
    { title: 'State', text: (row) => row.state + (row.needs_recovery ? ' !' : ''), kind: 'short' },
    { title: 'Size', text: (row) => bytes(row.size), kind: 'number' },
    { title: 'Own', text: (row) => bytes(row.own), kind: 'number' },
    { title: 'Class', text: (row) => row.class, kind: 'middle' },
    { title: 'Psyncs', text: (row) => number(row.psyncs), kind: 'number' },
    { title: 'a second', text: (row) => rate(row.rate), kind: 'number' },
    { title: 'Holder', text: (row) => row.held_by, kind: 'holder' },
  ]);
  return {
    root: element('section', {}, element('h1', { text: 'Objects' }), pages.box, table.box),
    every: 1000,
    get place() {
      return pages.query;
    },
    async refresh() {
      const page = await ask('objects', pages.query);
      for (const row of page.rows) row.rate = rates.of(row.id, row.psyncs, page.at);
      rates.keep(page.rows.map((row) => row.id));
      pages.most = page.most;
      pages.show(page, page.rows.length);
      table.show(page.rows, (row) => [row.id, row.name]);
    },
  };
}
