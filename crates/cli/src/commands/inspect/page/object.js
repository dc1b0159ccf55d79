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
  const why = element('p', { class: 'count wrap' });
  const tree = new Tree('Roots and types');
  const others = element('ul', { class: 'names' });
  const far = element('section', { hidden: '' }, element('h2', { text: 'Far pointers lead to' }), others);
  let [shown, looked] = ['', ''];

  const heap = async () => {
    const found = await ask('heap', { name });
    why.hidden = found.why === null && found.roots.length > 0;
    put(why, found.why === null ? 'The heap has no roots.' : visible(found.why));
    tree.show(found.roots);
    far.hidden = found.others.length === 0;
    others.replaceChildren(...found.others.map((other) => element('li', {},
      `${other.number} (${other.rights}): `, other.name === null ? element('bdi', { text: other.shown }) : nameLink(other))));
  };
  return {
    root: element('section', {}, heading, list, tied,
      element('section', {}, element('h2', { text: 'Roots and types' }), why, tree.list), far),
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
      // A heap changes by psyncs alone, and is closed while a process writes it.
      const state = JSON.stringify([found.id, found.psyncs, found.state, found.needs_recovery]);
      if (looked !== state) {
        await heap();
        looked = state;
      }
    },
  };
}
