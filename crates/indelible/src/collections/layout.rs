//! Description of a type as it lies in an object: a text for people, and a fingerprint of everything that
//! matters.
//!
//! Types are walked depth first; each struct or enum gets a number when it is met first and is named by
//! it from then on, so that recursive types come to an end, and types of the same name are told apart.

use indelible_store::format::checksum;
use std::fmt::Write;

/// Description of a type under way.
#[derive(Debug, Default)]
pub struct Layout {
    /// The text that the fingerprint covers.
    stream: String,
    met: Vec<&'static str>,
    /// Whether a shared reference is enough to store somewhere.
    pub(super) atomics: bool,
    definitions: Vec<String>,
}

impl Layout {
    /// The version of the formats of this module: part of every fingerprint.
    pub const VERSION: u32 = 1;

    /// Adds a word.
    pub fn word(&mut self, word: &str) {
        self.stream.push_str(word);
        self.stream.push(' ');
    }

    /// Says that a shared reference is enough to store to what is described.
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
        let number = self.met.len();
        self.met.push(key);
        let (size, align) = (size_of::<T>(), align_of::<T>());
        self.word(&format!("{name}:{size}:{align} {{"));
        self.definitions.push(format!("{name}: size {size}, alignment {align}\n"));
        members(&mut Members { layout: self, number, indent: "  " });
        self.word("}");
    }

    /// All of the description.
    #[cfg(test)]
    pub(crate) fn stream(&self) -> &str {
        &self.stream
    }

    /// The text, of at most `most` bytes.
    pub(super) fn text(&self, most: usize) -> String {
        let mut text = self.definitions.concat();
        truncate(&mut text, most);
        text
    }

    pub(super) fn fingerprint(&self) -> u128 {
        let version = Layout::VERSION.to_le_bytes();
        let half = |seed| u128::from(checksum(seed, &[&version, self.stream.as_bytes()]));
        half(1) << 64 | half(2)
    }
}

/// Cuts a text that is too long, and shows it.
pub(super) fn truncate(text: &mut String, most: usize) {
    if text.len() <= most {
        return;
    }
    let mut end = most - '…'.len_utf8();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push('…');
}

/// Members of a struct or enum.
#[derive(Debug)]
pub struct Members<'a> {
    layout: &'a mut Layout,
    number: usize,
    indent: &'static str,
}

impl Members<'_> {
    /// A field of type `T`.
    pub fn field<'h, T: super::Persist<'h>>(&mut self, name: &str, offset: usize) {
        let mut kind = String::new();
        T::type_name(&mut kind);
        let size = size_of::<T>();
        self.line(format_args!("{name}: {kind} at {offset}, size {size}"));
        self.layout.word(&format!("{name}@{offset}:{size}"));
        self.layout.atomics |= T::SHARED;
        T::describe(self.layout);
    }

    /// A value of an enum.
    pub fn value(&mut self, name: &str, number: i128) {
        self.line(format_args!("{name} = {number}"));
        self.layout.word(&format!("{name}={number}"));
    }

    /// A value of an enum that has `fields`.
    pub fn variant(&mut self, name: &str, number: i128, fields: impl FnOnce(&mut Members<'_>)) {
        self.value(name, number);
        self.layout.word("(");
        fields(&mut Members { layout: self.layout, number: self.number, indent: "    " });
        self.layout.word(")");
    }

    /// The integer at the beginning of an enum that says which variant it is.
    pub fn tag(&mut self, integer: &str) {
        self.line(format_args!("tag: {integer} at 0"));
        self.layout.word(&format!("tag:{integer}"));
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.layout.definitions[self.number], "{}{text}", self.indent);
    }
}
