//! Describes a type's layout in words, which are fingerprinted, and read by
//! [`types`](crate::types). Types are walked depth first, and numbered when first met, so that
//! recursion ends and types of the same name differ.

use super::points_to::PointsTo;
use crate::types::fingerprint;
use std::collections::VecDeque;

type Describe = fn(&mut Layout);

/// A type's description in progress.
#[derive(Debug, Default)]
pub struct Layout {
    pub(super) stream: String,
    met: Vec<&'static str>,
    pointers: usize,
    targets: VecDeque<(usize, Describe)>,
    pub(super) atomics: bool,
    pub(super) extended: bool,
}

impl Layout {
    /// Adds a word.
    pub fn word(&mut self, word: &str) {
        self.stream.push_str(word);
        self.stream.push(' ');
    }

    pub(super) fn alias<'h, T: super::Persist<'h>>(&mut self) {
        let mut name = String::new();
        T::type_name(&mut name);
        name.retain(|letter| letter != ' ');
        self.word(&format!("{name}~"));
    }

    /// States that a shared reference can store to the value.
    pub fn atomics(&mut self) {
        self.atomics = true;
    }

    /// Adds a struct or enum, once; `members` adds its contents.
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

    pub(super) fn pointer(&mut self, kind: &str) {
        self.pointers += 1;
        self.word(kind);
    }

    pub(super) fn finish(&mut self) {
        while let Some((number, describe)) = self.targets.pop_front() {
            self.word(&format!("-> {number}"));
            describe(self);
        }
    }

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

    /// A field of type `P`, a pointer to values of type `T`.
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

    /// A value of an enum with `fields`.
    pub fn variant(&mut self, name: &str, number: i128, fields: impl FnOnce(&mut Members<'_>)) {
        self.value(name, number);
        self.layout.word("(");
        fields(&mut Members { layout: self.layout });
        self.layout.word(")");
    }

    /// The integer that tells an enum's variants apart.
    pub fn tag(&mut self, integer: &str) {
        self.layout.word(&format!("tag:{integer}"));
    }
}
