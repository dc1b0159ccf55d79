//! Types as they lie in objects, read back from their descriptions: for programs and tools that do
//! not have them.
//!
//! A description is a text of words (FORMAT.md, section 10). [`Description`] is one that was read
//! and makes sense: every type has a size, values lie within the values that they are parts of, and
//! none is a part of itself. [`walk`](walk::walk) goes through the values of a described type in
//! any bytes of an object.
//!
//! All of it is safe code: it reads a slice, and its results may be wrong, but nothing else.

mod containers;
#[cfg(test)]
mod damage;
mod difference;
pub(crate) mod far;
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
pub(crate) mod walk;

pub(crate) use containers::{EMPTY, EXTENSIONS, GROUP, KEYS, LEAST, LEVELS, REMOVED};
pub(crate) use difference::Relation;
pub(crate) use fingerprint::{BYTE_KEYS, VERSION, fingerprint, fingerprints, fingerprints_are_broken, own};
pub(crate) use follow::Ranges;
pub(crate) use lines::truncate;
pub(crate) use parse::{MOST, Malformed};
pub(crate) use path::Path;
pub(crate) use scalar::Valid;

/// Number of a type in its description.
pub(crate) type TypeId = usize;

/// A type, and those that it consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    types: Vec<Type>,
    root: TypeId,
}

/// One type of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    /// Bytes of a value.
    pub(crate) size: u64,
    /// Its alignment, a power of two.
    pub(crate) align: u64,
    /// Whether any bytes are a value that neither owns nor points at anything: the walk skips it.
    pub(crate) plain: bool,
    pub(crate) kind: Kind,
}

/// The inner structure of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Scalar {
        word: &'static str,
        valid: Valid,
    },
    /// An address that a program follows at its own risk; `target` is the name of the value there,
    /// `to` its type, if that is known.
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
        /// Bytes of the integer at the beginning that says which variant it is.
        tag: u64,
        /// Its type, if variants have fields.
        integer: Option<&'static str>,
        variants: Vec<Variant>,
        /// Tags, in their order, each with the index of its variant.
        by_tag: Vec<(u128, usize)>,
    },
    /// Text in a block.
    Text,
    /// Values in a block.
    Vector(TypeId),
    /// Values in a block, around its end.
    Ring(TypeId),
    /// A value in a block of its own; optional: or zero.
    Boxed {
        value: TypeId,
        optional: bool,
    },
    /// A value in a block that counts its owners, of which this is one; optional: or zero.
    Shared {
        value: TypeId,
        optional: bool,
    },
    /// A byte that says whether there is a value, then the value.
    Optional(TypeId),
    /// A hash table; a set has values without bytes.
    Hashed {
        key: TypeId,
        value: TypeId,
        set: bool,
    },
    /// A B-tree.
    Ordered {
        key: TypeId,
        value: TypeId,
    },
    /// Bytes that foreign code makes sense of, such as a container of another library, and the
    /// types that its name has as parameters.
    Opaque {
        name: String,
        parameters: Vec<TypeId>,
    },
    /// A type by another name, which people see.
    Alias {
        name: String,
        of: TypeId,
    },
    /// A link to a chain of blocks, by which later versions of a program extended a struct.
    Extensions,
    /// A word, and a value in a block.
    Lock {
        word: &'static str,
        value: TypeId,
    },
}

/// Kinds of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pointer {
    Mutable,
    Constant,
    Atomic,
    /// A distance from where it lies; zero: none.
    Relative,
    /// The number of an entry in the object's table of other objects, and an offset
    /// ([`Far`](crate::Far)); zero: none.
    Far,
}

/// A field of a struct, or of a variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) offset: u64,
    pub(crate) of: TypeId,
}

/// A variant of an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) name: String,
    /// The tag.
    pub(crate) number: i128,
    pub(crate) fields: Vec<Field>,
}

impl Description {
    /// The type that is described.
    pub(crate) fn root(&self) -> TypeId {
        self.root
    }

    pub(crate) fn get(&self, id: TypeId) -> &Type {
        &self.types[id]
    }

    /// All types, in the order in which they are met.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Type> {
        self.types.iter()
    }
}
