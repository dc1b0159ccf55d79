// The pool as a whole.

function overview() {
  const rates = new Rates();
  const { list, values } = fields([
    'Path',
    'Label',
    'ID',
    'Medium',
    'Format',
    'Formatted',
    'Length',
    'Free',
    'Objects',
    'Their size',
    'Their own pages',
    'Psyncs',
    'Psyncs a second',
    'To recover',
    'Damaged',
  ]);
  const used = drawn('rect', { height: 10, class: 'used' });
  const bar = drawn('svg', { class: 'bar', viewBox: '0 0 100 10', preserveAspectRatio: 'none', role: 'img' }, used);
  const states = element('ul', { class: 'states', 'aria-label': 'Objects by state' });
  const damage = element('p', { class: 'damage', hidden: '' });
  const root = element(
    'section',
    {},
    element('h1', { text: 'Overview' }),
    bar,
    states,
    list,
    damage,
  );
  return {
    root,
    every: 1000,
    async refresh() {
      const pool = await ask('overview');
      const { totals } = pool;
      const share = pool.length ? (100 * (pool.length - pool.free)) / pool.length : 0;
      used.setAttribute('width', share);
      bar.setAttribute('aria-label', `${share.toFixed(1)} % of the pool is in use`);
      const said = [
        pool.shown,
        pool.label || '–',
        pool.id,
        pool.medium,
        `version ${pool.version}`,
        time(pool.created),
        bytes(pool.length),
        `${bytes(pool.free)} in ${number(pool.free_pieces)} ${pool.free_pieces === 1 ? 'piece' : 'pieces'}, the largest ${bytes(pool.largest_free)}`,
        number(pool.objects),
        bytes(totals.size),
        bytes(totals.own),
        number(totals.psyncs),
        rate(rates.of('pool', totals.psyncs, pool.at)),
        number(totals.needs_recovery),
        number(totals.damaged),
      ];
      said.forEach((text, at) => put(values[at], text));
      const counts = Object.keys(STATES).map((state) => [state, totals.states[state] || 0]);
      if (states.children.length === 0) {
        states.append(...counts.map(([state]) => element('li', {},
          element('span', { class: `state ${state}`, text: state }), element('b'), element('span', { text: STATES[state] }))));
      }
      counts.forEach(([, count], at) => put(states.children[at].children[1], number(count)));
      damage.hidden = !totals.error;
      put(damage, totals.error || '');
      return pool;
    },
  };
}
