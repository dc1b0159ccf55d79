// Roots, their types, and the types within those: a tree that opens as it is asked.

class Tree {
  constructor(label) {
    this.list = element('ul', { class: 'tree', role: 'tree', 'aria-label': label });
    this.shown = '';
    this.list.addEventListener('keydown', (event) => this.key(event));
    this.list.addEventListener('click', (event) => {
      const item = event.target.closest('[role=treeitem]');
      if (item) {
        this.toggle(item);
        this.focus(item);
      }
    });
  }

  show(roots) {
    const text = JSON.stringify(roots);
    if (text === this.shown) return;
    this.shown = text;
    this.list.replaceChildren(...roots.map((root) => this.root(root)));
    if (this.list.firstChild) this.list.firstChild.tabIndex = 0;
  }

  // A line, and the children that it opens to.
  item(name, type, place, children) {
    const line = element('span', { class: 'line' });
    line.append(element('bdi', { text: visible(name) }), ': ', element('bdi', { class: 'type', text: visible(type) }), ` ${place}`);
    const item = element('li', { role: 'treeitem', tabindex: '-1' }, line);
    if (children) {
      item.setAttribute('aria-expanded', 'false');
      item.children_of = children;
    }
    return item;
  }

  root(root) {
    const place = `· ${number(root.size)} bytes at ${number(root.offset)}`;
    if (root.definitions === null) return this.item(root.root, root.type, `${place} · not described`, null);
    return this.item(root.root, root.type, place, this.within(root.type, root.definitions));
  }

  // The described types that a type's text names; of one alone, what is in it.
  within(text, definitions) {
    const words = new Set(text.split(/[^\p{L}\p{N}_]+/u));
    const named = definitions.filter((definition) => words.has(definition.name));
    if (named.length === 1 && named[0].name === text) return this.inside(named[0], definitions);
    return named.length ? () => named.map((definition) => this.type(definition, definitions)) : null;
  }

  type(definition, definitions) {
    const { name, kind, size, alignment } = definition;
    const place = `· ${number(size)} bytes, alignment ${alignment}`;
    return this.item(name, kind, place, this.inside(definition, definitions));
  }

  inside({ kind, fields, variants }, definitions) {
    const all = (of) => of.map((field) => this.field(field, definitions));
    const variant = (one) => this.item(one.name, `= ${one.number}`, '', one.fields.length ? () => all(one.fields) : null);
    return kind === 'enum' ? () => variants.map(variant) : () => all(fields);
  }

  field({ name, type, offset, size }, definitions) {
    return this.item(name, type, `· ${number(size)} bytes at ${number(offset)}`, this.within(type, definitions));
  }

  toggle(item, to) {
    const open = item.getAttribute('aria-expanded');
    if (open === null || (to !== undefined && String(to) === open)) return;
    if (open === 'true') item.lastChild.remove();
    else item.append(element('ul', { role: 'group' }, ...item.children_of()));
    item.setAttribute('aria-expanded', open === 'true' ? 'false' : 'true');
  }

  focus(item) {
    for (const other of this.list.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    item.tabIndex = 0;
    item.focus();
  }

  key(event) {
    const item = event.target.closest('[role=treeitem]');
    if (!item) return;
    const all = [...this.list.querySelectorAll('[role=treeitem]')];
    const at = all.indexOf(item);
    const expanded = item.getAttribute('aria-expanded');
    const above = item.parentElement.closest('[role=treeitem]');
    let to = null;
    if (event.key === 'ArrowDown') to = all[at + 1];
    else if (event.key === 'ArrowUp') to = all[at - 1];
    else if (event.key === 'Home') to = all[0];
    else if (event.key === 'End') to = all[all.length - 1];
    else if (event.key === 'ArrowRight' && expanded === 'true') to = all[at + 1];
    else if (event.key === 'ArrowRight') this.toggle(item, true);
    else if (event.key === 'ArrowLeft' && expanded === 'true') this.toggle(item, false);
    else if (event.key === 'ArrowLeft') to = above;
    else if (event.key === 'Enter' || event.key === ' ') this.toggle(item);
    else return;
    event.preventDefault();
    if (to) this.focus(to);
  }
}
