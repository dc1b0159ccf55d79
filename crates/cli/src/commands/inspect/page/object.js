// One object.

const FLAGS = {
  snapshot: 'snapshot',
  read_only: 'read-only',
  sparse: 'sparse',
  shares: 'shares pages',
  sealed: 'sealed',
  ecc: 'check words',
  readable_outside: 'readable outside',
  position_independent: 'position-independent',
  by_content: 'ID by content',
  volatile: 'volatile',
  gone: 'gone',
  read_key: 'read key',
  write_key: 'write key',
};

function object(params) {
  const name = params.get('name') || '';
  const rates = new Rates();
  const { list, values } = fields([
    'Name',
    'ID',
    'State',
    'Holder',
    'Size',
    'Extent',
    'Own',
    'Address',
    'Psyncs',
    'Psyncs a second',
    'Class',
    'Flags',
    'Created',
  ]);
  const heading = element('h1', { class: 'wrap' }, element('bdi', { text: 'Object' }));
  const ties = element('ul', { class: 'names' });
  const tied = element('section', { hidden: '' }, element('h2', { text: 'Tied to' }), ties);
  let shown = '';
  return {
    root: element('section', {}, heading, list, tied),
    every: 1000,
    async refresh() {
      const found = await ask('object', { name });
      put(heading.firstChild, found.shown);
      const flags = Object.keys(FLAGS).filter((flag) => found[flag]);
      const said = [
        found.shown,
        found.id,
        `${found.state}, ${found.meaning}`,
        found.held_by,
        `${number(found.size)} bytes (${bytes(found.size)})`,
        `${bytes(found.extent)} at ${number(found.offset)}`,
        bytes(found.own),
        `${found.address}, can grow to ${bytes(found.reach)}`,
        `${number(found.psyncs)}, up to byte ${number(found.published)}`,
        rate(rates.of(found.id, found.psyncs, found.at)),
        found.class,
        flags.map((flag) => FLAGS[flag]).join(', ') || '–',
        time(found.created),
      ];
      said.forEach((text, at) => put(values[at], text));
      const names = (found.ties || []).map((tie, at) => ({ name: tie, shown: found.shown_ties[at] }));
      tied.hidden = names.length === 0;
      if (shown !== JSON.stringify(names)) {
        shown = JSON.stringify(names);
        ties.replaceChildren(...names.map((tie) => element('li', {}, nameLink(tie))));
      }
    },
  };
}
