//! Copies of extendible structs in variables share extensions with their original.

use crate::access::{root, variable};
use crate::problem::Place;
use crate::rewrite::Rewrite;
use crate::tree::{Kind, Node};

impl Rewrite<'_> {
    /// Rewrites a copy whose source is a variable that is a shallow copy.
    pub(crate) fn copy_of_variable(&mut self, node: &Node) {
        let mut from = node;
        while let Some(inner) = from.children.last().filter(|_| self.program.is_copy(from)) {
            from = inner;
        }
        if !std::ptr::eq(from, node) {
            self.refuse_stale(from, node.begin, "it");
        }
    }

    /// Refuses to read a shallow copy whose original may have changed; returns whether it did.
    pub(crate) fn refuse_stale(&mut self, value: &Node, at: Place, read: &str) -> bool {
        let stale = variable(value).is_some_and(|it| self.temporary.contains(&it))
            && root(value).is_none_or(|name| !self.known.fresh.contains(&name.at));
        if stale {
            let text = format!(
                "{read} is read of a variable that shares its extensions with the struct that it is a copy of, which may \
                 have changed since: read it in the statement behind the copy, or keep a pointer"
            );
            self.refuse(at, text);
        }
        stale
    }

    /// Whether a copy goes to a variable, or is the right side of an assignment.
    pub(crate) fn may_copy(&self, node: &Node, parents: &[&Node]) -> bool {
        match parents.last() {
            Some(parent) if parent.kind == Kind::Variable => true,
            Some(parent) if parent.kind == Kind::Binary || parent.name == "operator=" => {
                parent.children.last().is_some_and(|last| std::ptr::eq(last, node))
            }
            // C++'s constructor within conversions.
            Some(parent)
                if matches!(parent.kind, Kind::Implicit | Kind::Paren | Kind::Call)
                    && self.program.is_copy(parent) =>
            {
                true
            }
            _ => false,
        }
    }

    pub(crate) fn address(&mut self, node: &Node) {
        let Some(inner) = node.children.first() else { return };
        let shared =
            self.program.extends(&inner.ty) && variable(inner).is_some_and(|it| self.temporary.contains(&it));
        if shared {
            self.refuse(node.begin, "the variable shares its extensions with the struct that it is a copy of: its address cannot be taken");
        }
    }
}
