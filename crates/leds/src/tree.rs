//! A parsed source, without libclang, whose tree `parse` copies here.

use crate::problem::Place;
use std::collections::HashMap;
use std::path::PathBuf;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// Its first byte; in a macro's body, the macro's use.
    pub(crate) begin: Place,
    pub(crate) end: Place,
    pub(crate) at: Place,
    pub(crate) ty: Type,
    pub(crate) refers: Option<Referent>,
    pub(crate) children: Vec<Node>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Referent {
    pub(crate) place: Place,
    pub(crate) kind: Kind,
    /// A variable or parameter that ends with the call.
    pub(crate) is_local: bool,
    pub(crate) is_reference: bool,
    pub(crate) is_of_system: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Function,
    Parameter,
    Variable,
    Field,
    Member,
    /// A field's name outside of expressions: in `offsetof`, in `.field = 1`.
    FieldName,
    Name,
    Implicit,
    Paren,
    Unary,
    /// Such as `sizeof`.
    Unevaluated,
    /// A type in those.
    TypeName,
    Binary,
    CompoundAssign,
    Conditional,
    Cast,
    Call,
    Subscript,
    InitList,
    CompoundLiteral,
    Block,
    Declarations,
    If,
    Loop,
    Switch,
    Case,
    Label,
    Lambda,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    pub(crate) shape: Shape,
    pub(crate) is_const: bool,
    pub(crate) text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Record(Place),
    Pointer(Box<Type>),
    Reference(Box<Type>),
    Array(Box<Type>, usize),
    /// By its word in descriptions.
    Number(&'static str),
    Other,
}

impl Type {
    /// Its struct or union, also as an array's element.
    pub(crate) fn record(&self) -> Option<Place> {
        match &self.shape {
            Shape::Record(place) => Some(*place),
            Shape::Array(of, _) => of.record(),
            _ => None,
        }
    }

    pub(crate) fn target(&self) -> Option<&Type> {
        match &self.shape {
            Shape::Pointer(of) | Shape::Reference(of) => Some(of),
            _ => None,
        }
    }

    pub(crate) fn is_pointer(&self) -> bool {
        matches!(self.shape, Shape::Pointer(_))
    }

    pub(crate) fn is_array(&self) -> bool {
        matches!(self.shape, Shape::Array(..))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) spelled: String,
    pub(crate) tag: String,
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) is_union: bool,
    /// In a function or another struct.
    pub(crate) is_inner: bool,
    /// In a namespace, or of a template.
    pub(crate) is_qualified: bool,
    pub(crate) is_of_system: bool,
    pub(crate) fields: Vec<Field>,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) ty: Type,
    pub(crate) offset: usize,
    pub(crate) size: usize,
    pub(crate) is_bit_field: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Include {
    pub(crate) at: Place,
    pub(crate) file: usize,
}

/// A source with its includes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) includes: Vec<Include>,
    pub(crate) records: HashMap<Place, Record>,
    /// Functions and variables outside of system headers.
    pub(crate) declarations: Vec<Node>,
    pub(crate) functions: Vec<String>,
}

impl Node {
    pub(crate) fn inner(&self) -> &Node {
        match (self.kind, &self.children[..]) {
            (Kind::Paren, [inner]) => inner.inner(),
            _ => self,
        }
    }

    pub(crate) fn plain(&self) -> &Node {
        match (self.kind, &self.children[..]) {
            (Kind::Paren | Kind::Implicit, [inner]) => inner.plain(),
            _ => self,
        }
    }
}
