//! Description of a type as it lies in an object: everything that matters, in words that a
//! fingerprint is of, and that are read by [`types`](crate::types).
//!
//! Types are walked depth first; each struct or enum gets a number when it is met first and is
//! named by it from then on, so that recursive types come to an end, and types of the same name are
//! told apart.

use super::points_to::PointsTo;
use crate::types::fingerprint;
use std::collections::VecDeque;

/// Describes a type.
type Describe = fn(&mut Layout);

/// Description of a type under way.
#[derive(Debug, Default)]
pub struct Layout {
    pub(super) stream: String,
    met: Vec<&'static str>,
    /// How many pointers are described.
    pointers: usize,
    /// Pointers whose targets are not described yet, with the functions that describe them: the
    /// number of each.
    targets: VecDeque<(usize, Describe)>,
    /// Whether a shared reference is enough to store somewhere.
    pub(super) atomics: bool,
    /// Whether the program has extensions of a struct in the type.
    pub(super) extended: bool,
}

impl Layout {
    /// Adds a word.
    pub fn word(&mut self, word: &str) {
        self.stream.push_str(word);
        self.stream.push(' ');
    }

    /// Gives the type that is described next another name, which people see: that of `T`, which has
    /// its layout.
    pub(super) fn alias<'h, T: super::Persist<'h>>(&mut self) {
        let mut name = String::new();
        T::type_name(&mut name);
        name.retain(|letter| letter != ' ');
        self.word(&format!("{name}~"));
    }

    /// States that a shared reference is enough to store to the described value.
    pub fn atomics(&mut self) {
        self.atomics = true;
    }

    /// Adds a struct or enum, once; `members` adds what it consists of.
    pub fn define<T>(&mut self, name: &str, members: impl FnOnce(&mut Members<'_>)) {
        let key = std::any::type_name::<T>();
        if let Some(number) = self.met.iter().position(|met| *met == key) {
            self.word(&format!("={number}"));
            return;
        }
        self.met.push(key);
        let (size, align) = (size_of::<T>(), align_of::<T>());
        self.word(&format!("{name}:{size}:{align} {{"));
        members(&mut Members { layout: self });
        self.word("}");
    }

    /// Adds a pointer of this kind. Names of types may have the same words in them, and are none.
    pub(super) fn pointer(&mut self, kind: &str) {
        self.pointers += 1;
        self.word(kind);
    }

    /// Describes the targets of pointers, once the type that has them is.
    pub(super) fn finish(&mut self) {
        while let Some((number, describe)) = self.targets.pop_front() {
            self.word(&format!("-> {number}"));
            describe(self);
        }
    }

    /// The description.
    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        &self.stream
    }

    pub(super) fn fingerprint(&self) -> u128 {
        fingerprint(&self.stream)
    }
}

/// Members of a struct or enum.
#[derive(Debug)]
pub struct Members<'a> {
    layout: &'a mut Layout,
}

impl Members<'_> {
    /// A field of type `T`.
    pub fn field<'h, T: super::Persist<'h>>(&mut self, name: &str, offset: usize) {
        self.layout.word(&format!("{name}@{offset}:{}", size_of::<T>()));
        self.layout.atomics |= T::SHARED;
        T::describe(self.layout);
    }

    /// A field of type `P`, whose pointer leads to values of type `T`.
    pub fn pointer<'h, P: super::Persist<'h> + PointsTo, T: super::Persist<'h>>(
        &mut self,
        name: &str,
        offset: usize,
    ) {
        self.layout.targets.push_back((self.layout.pointers, T::describe));
        self.field::<P>(name, offset);
    }

    /// A value of an enum.
    pub fn value(&mut self, name: &str, number: i128) {
        self.layout.word(&format!("{name}={number}"));
    }

    /// A value of an enum that has `fields`.
    pub fn variant(&mut self, name: &str, number: i128, fields: impl FnOnce(&mut Members<'_>)) {
        self.value(name, number);
        self.layout.word("(");
        fields(&mut Members { layout: self.layout });
        self.layout.word(")");
    }

    /// The integer at the beginning of an enum that says which variant it is.
    pub fn tag(&mut self, integer: &str) {
        self.layout.word(&format!("tag:{integer}"));
    }
}
