//! A source as the compiler understands it, apart from libclang, whose tree `parse` copies here.

use crate::problem::Place;
use std::collections::HashMap;
use std::path::PathBuf;

/// A declaration, a statement or an expression.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// Its first byte; of an expression in a macro's body, where the macro is used.
    pub(crate) begin: Place,
    /// After its last byte.
    pub(crate) end: Place,
    /// The name in it.
    pub(crate) at: Place,
    pub(crate) ty: Type,
    /// The declaration that a name leads to.
    pub(crate) refers: Option<Referent>,
    pub(crate) children: Vec<Node>,
}

/// A declaration that a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Referent {
    pub(crate) place: Place,
    pub(crate) kind: Kind,
    /// It is a variable or a parameter of a function, and is gone with the call.
    pub(crate) is_local: bool,
    /// It stands for a value that lies elsewhere.
    pub(crate) is_reference: bool,
    /// A header of the system declares it.
    pub(crate) is_of_system: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Function,
    Parameter,
    Variable,
    Field,
    /// `x->field`, `x.field`.
    Member,
    /// A field's name that is no expression: in `offsetof`, in `.field = 1`.
    FieldName,
    /// The name of a variable or a function.
    Name,
    /// A conversion that is not written down.
    Implicit,
    Paren,
    Unary,
    /// `sizeof` and the like.
    Unevaluated,
    /// The type in one of those.
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
    /// As errors show it.
    pub(crate) text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A struct or union, by the place of its definition.
    Record(Place),
    Pointer(Box<Type>),
    Reference(Box<Type>),
    Array(Box<Type>, usize),
    /// A number, by its word in descriptions.
    Number(&'static str),
    Other,
}

impl Type {
    /// The struct or union that it is, or that an array of it has as elements.
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

/// A struct or union that is defined.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// Its name in a declaration, such as `struct item`.
    pub(crate) spelled: String,
    /// The name alone; empty if it has none.
    pub(crate) tag: String,
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) is_union: bool,
    /// Whether it lies in a function or another struct.
    pub(crate) is_inner: bool,
    /// Whether it lies in a namespace, or is made of a template.
    pub(crate) is_qualified: bool,
    /// A header of the system declares it.
    pub(crate) is_of_system: bool,
    pub(crate) fields: Vec<Field>,
}

/// A field of a struct or union.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) ty: Type,
    pub(crate) offset: usize,
    pub(crate) size: usize,
    pub(crate) is_bit_field: bool,
}

/// A line that includes a file.
#[derive(Clone, Debug)]
pub(crate) struct Include {
    pub(crate) at: Place,
    pub(crate) file: usize,
}

/// A source with all that it includes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    /// Paths of the files that were read.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) includes: Vec<Include>,
    pub(crate) records: HashMap<Place, Record>,
    /// Functions and variables outside of system headers.
    pub(crate) declarations: Vec<Node>,
    /// Names of all functions.
    pub(crate) functions: Vec<String>,
}

impl Node {
    /// Without parentheses around it.
    pub(crate) fn inner(&self) -> &Node {
        match (self.kind, &self.children[..]) {
            (Kind::Paren, [inner]) => inner.inner(),
            _ => self,
        }
    }

    /// Without conversions and parentheses around it.
    pub(crate) fn plain(&self) -> &Node {
        match (self.kind, &self.children[..]) {
            (Kind::Paren | Kind::Implicit, [inner]) => inner.plain(),
            _ => self,
        }
    }
}
