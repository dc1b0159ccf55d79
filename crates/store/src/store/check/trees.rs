use super::space::{Claim, Owner, title};
use super::{Cure, Meter, Severity, Survey};
use crate::error::Part;
use crate::format::node::{Node, Slot};
use crate::format::root::{TREES, TreeId};
use crate::format::{PAGE, TABLE_ROOT};
use std::collections::HashSet;

type Key = (u64, u64);

#[derive(Default)]
pub(in crate::store) struct Leaves {
    /// Ascending unless a finding says otherwise.
    pub slots: Vec<(Key, u64)>,
    /// A [`Brief`](super::brief::Brief) has no slots.
    pub keys: u64,
    /// All nodes were intact, and the count is the root's.
    pub complete: bool,
}

struct Walk<'s, 'm, 'p> {
    survey: &'s mut Survey,
    tree: TreeId,
    met: &'s mut HashSet<u64>,
    meter: &'m mut Meter<'p>,
    found: Leaves,
    sound: bool,
}

impl Survey {
    pub(super) fn read_trees(&mut self, met: &mut HashSet<u64>, meter: &mut Meter<'_>) {
        let Some(root) = self.root else { return };
        for tree in TREES {
            let top = root.trees[tree as usize];
            let (node, height, count) = (top.node.get(), top.height.get(), top.count.get());
            let found = Leaves::default();
            let mut walk = Walk { survey: self, tree, met, meter, found, sound: true };
            match height {
                0 if node != 0 || count != 0 => walk.fault(TABLE_ROOT, "the tree is empty and is not"),
                0 => {}
                _ => walk.node(node, height as u16 - 1, (0, 0), None),
            }
            let Walk { mut found, sound, .. } = walk;
            let keys = found.keys;
            if sound && keys != count {
                let what = format!("the {} has {keys} keys, the root counts {count}", title(tree));
                self.find(Severity::Error, Part::Root, TABLE_ROOT, Cure::Rebuild, what);
            }
            found.complete = sound && keys == count;
            self.trees[tree as usize] = found;
        }
    }
}

impl Walk<'_, '_, '_> {
    fn fault(&mut self, offset: u64, what: &str) {
        self.sound = false;
        let what = format!("{}: {what}", title(self.tree));
        self.survey.find(Severity::Error, Part::Node, offset, Cure::Rebuild, what);
    }

    /// Keys are in `low..high`; no page is read twice.
    fn node(&mut self, offset: u64, level: u16, low: Key, high: Option<Key>) {
        if !self.survey.is_table_page(offset) {
            return self.fault(offset, "a tree leads to a node here, where none can be");
        }
        if !self.met.insert(offset) {
            return self.fault(offset, "this page is used as a node twice");
        }
        let Some(node) = self.survey.read::<Node>(Part::Node, offset) else {
            self.sound = false;
            return;
        };
        if !node.verify(self.survey.seed, offset, level) {
            self.survey.damaged_nodes.push((offset, level));
            return self.fault(offset, "this node is damaged");
        }
        self.survey.claims.push(Claim::new(offset / PAGE, 1, Owner::Node(self.tree)));
        let slots = node.used();
        if level == 0 {
            return self.leaf(offset, slots, low, high);
        }
        for (index, slot) in slots.iter().enumerate() {
            // The search ignores an inner node's first key.
            let from = if index == 0 { low } else { slot.key() };
            let to = slots.get(index + 1).map(Slot::key).or(high);
            if from < low || to > high.or(to) || to.is_some_and(|to| to <= from) {
                self.fault(offset, "the keys of this node do not fit those above it");
            }
            self.node(slot.value.get(), level - 1, from, to);
        }
    }

    fn leaf(&mut self, offset: u64, slots: &[Slot], low: Key, high: Option<Key>) {
        let inside = |slot: &Slot| slot.key() >= low && high.is_none_or(|high| slot.key() < high);
        if !slots.iter().all(inside) {
            self.fault(offset, "the keys of this leaf do not fit those above it");
        }
        self.found.keys += slots.len() as u64;
        let slots_of = slots.iter().map(|slot| (slot.key(), slot.value.get()));
        match (self.tree, &mut self.survey.brief) {
            (TreeId::Names, Some(brief)) => slots_of.for_each(|(key, offset)| brief.name(key, offset)),
            (TreeId::Ids, Some(brief)) => slots_of.for_each(|(key, offset)| brief.id(key, offset)),
            _ => self.found.slots.extend(slots_of),
        }
        self.meter.step(slots.len() as u64);
    }
}
