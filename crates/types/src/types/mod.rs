//! Types of values in objects, read back from their descriptions, for programs and tools without
//! these types.
//!
//! A description is a text of words (FORMAT.md, section 10). In a valid [`Description`] every type
//! has a size, parts lie within their values, and no type contains itself. `walk`
//! visits the values of a described type in any bytes.

mod containers;
#[cfg(test)]
mod damage;
mod difference;
pub mod far;
mod fingerprint;
mod follow;
mod keys;
mod lines;
mod locate;
mod measure;
mod memory;
mod parse;
mod path;
mod scalar;
#[cfg(test)]
mod tests;
mod visitor;
pub mod walk;

pub use containers::{EMPTY, EXTENSIONS, GROUP, KEYS, LEAST, LEVELS, REMOVED};
pub use difference::Relation;
pub use fingerprint::{BYTE_KEYS, VERSION, fingerprint, fingerprints, fingerprints_are_broken, own};
pub use follow::Ranges;
pub use lines::truncate;
pub use parse::{MOST, Malformed};
pub use path::Path;
pub use scalar::Valid;

pub type TypeId = usize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    types: Vec<Type>,
    root: TypeId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    pub size: u64,
    pub align: u64,
    pub plain: bool,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Scalar {
        word: &'static str,
        valid: Valid,
    },
    /// `target` is the name of its type, `to` the type, if known.
    Pointer {
        how: Pointer,
        target: String,
        to: Option<TypeId>,
    },
    Array {
        element: TypeId,
        count: u64,
    },
    Struct {
        name: String,
        fields: Vec<Field>,
    },
    Enum {
        name: String,
        tag: u64,
        integer: Option<&'static str>,
        variants: Vec<Variant>,
        by_tag: Vec<(u128, usize)>,
    },
    Text,
    Vector(TypeId),
    Ring(TypeId),
    Boxed {
        value: TypeId,
        optional: bool,
    },
    Shared {
        value: TypeId,
        optional: bool,
    },
    Optional(TypeId),
    Hashed {
        key: TypeId,
        value: TypeId,
        set: bool,
    },
    Ordered {
        key: TypeId,
        value: TypeId,
    },
    /// Foreign code's bytes, with the type parameters of its name.
    Opaque {
        name: String,
        parameters: Vec<TypeId>,
    },
    Alias {
        name: String,
        of: TypeId,
    },
    Extensions,
    Lock {
        word: &'static str,
        value: TypeId,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    Mutable,
    Constant,
    Atomic,
    /// A distance from its own place; zero: none.
    Relative,
    /// Index into the table of other objects, and offset ([`Far`](crate::Far)); zero: none.
    Far,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub offset: u64,
    pub of: TypeId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    pub name: String,
    pub number: i128,
    pub fields: Vec<Field>,
}

impl Description {
    #[inline]
    pub fn root(&self) -> TypeId {
        self.root
    }

    #[inline]
    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id]
    }

    pub fn all(&self) -> impl Iterator<Item = &Type> {
        self.types.iter()
    }
}
