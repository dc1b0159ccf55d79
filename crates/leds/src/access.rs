//! How an expression uses a field: it reads it, or needs its place.

use crate::problem::Place;
use crate::tree::{Kind, Node};

/// The use of an extension's field, and the expression that is read: the field, or a part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use<'n> {
    Read(&'n Node),
    Passed,
    Stored,
    /// Its place is needed, maybe unused: by a reference or a type.
    Placed,
    Unevaluated,
}

/// `parents`: from the outermost.
pub(crate) fn usage<'n>(member: &'n Node, parents: &[&'n Node]) -> Use<'n> {
    let mut expression = member;
    let mut outer = parents.iter().rev().copied().peekable();
    while let Some(parent) = outer.next() {
        match parent.kind {
            Kind::Paren => expression = parent,
            // A field of a struct in it.
            Kind::Member if !expression.ty.is_pointer() => expression = parent,
            Kind::Unevaluated => return Use::Unevaluated,
            Kind::Implicit if expression.ty.is_array() && parent.ty.is_pointer() => match outer.peek() {
                Some(element) if element.kind == Kind::Subscript && is_first(element, parent) => {
                    expression = element;
                    outer.next();
                }
                _ => return passed(parent, outer),
            },
            Kind::Implicit if parent.ty.is_const && !parent.ty.is_pointer() => {
                return passed(parent, outer);
            }
            Kind::Implicit => return Use::Read(expression),
            Kind::Binary | Kind::CompoundAssign | Kind::Unary => return Use::Stored,
            _ => return Use::Placed,
        }
    }
    Use::Placed
}

fn is_first(of: &Node, child: &Node) -> bool {
    of.children.first().is_some_and(|first| std::ptr::eq(first, child))
}

/// The use of an expression whose address is `pointer`, or which a reference is bound to.
fn passed<'n>(pointer: &'n Node, outer: impl Iterator<Item = &'n Node>) -> Use<'n> {
    let mut last = pointer;
    for parent in outer {
        match parent.kind {
            Kind::Implicit | Kind::Paren => last = parent,
            Kind::Call if prints(parent, last) => return Use::Passed,
            Kind::Call if !is_first(parent, last) || !last.ty.is_pointer() => {
                let target = last.ty.target().unwrap_or(&last.ty);
                return if target.is_const { Use::Passed } else { Use::Stored };
            }
            Kind::Unevaluated => return Use::Unevaluated,
            _ => return Use::Placed,
        }
    }
    Use::Placed
}

fn prints(call: &Node, argument: &Node) -> bool {
    let format = match call.name.as_str() {
        "printf" => 1,
        "fprintf" | "dprintf" | "sprintf" => 2,
        "snprintf" => 3,
        _ => return false,
    };
    call.children.iter().skip(format + 1).any(|child| std::ptr::eq(child, argument))
}

pub(crate) fn variable(value: &Node) -> Option<Place> {
    let to = root(value)?.refers?;
    (matches!(to.kind, Kind::Variable | Kind::Parameter) && !to.is_reference).then_some(to.place)
}

/// The variable that contains an expression: `v` of `v.field[2]`.
pub(crate) fn root(expression: &Node) -> Option<&Node> {
    let inner = expression.inner();
    match inner.kind {
        Kind::Name => Some(inner),
        Kind::Member => root(inner.children.first().filter(|base| !base.ty.is_pointer())?),
        Kind::Subscript => {
            let base = inner.children.first()?;
            let array =
                base.children.first().filter(|array| base.kind == Kind::Implicit && array.ty.is_array())?;
            root(array)
        }
        _ => None,
    }
}
