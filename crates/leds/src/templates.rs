//! Templates of C++'s library are not lowered: they copy and destroy values as bytes.

use crate::rewrite::Rewrite;
use crate::tree::{Kind, Node, Shape, Type};

/// They exchange, inspect, or return references.
const KEEPS: [&str; 10] =
    ["addressof", "as_const", "cref", "forward", "max", "min", "minmax", "move", "ref", "swap"];

/// They copy or overwrite values of ranges.
const COPIES: [&str; 25] = [
    "copy",
    "copy_backward",
    "copy_if",
    "copy_n",
    "destroy",
    "destroy_at",
    "destroy_n",
    "fill",
    "fill_n",
    "generate",
    "generate_n",
    "merge",
    "move",
    "move_backward",
    "remove",
    "remove_copy",
    "remove_if",
    "replace",
    "replace_if",
    "reverse_copy",
    "transform",
    "uninitialized_copy",
    "uninitialized_move",
    "unique",
    "unique_copy",
];

impl Rewrite<'_> {
    pub(crate) fn templates(&mut self, call: &Node) {
        let [callee, arguments @ ..] = &call.children[..] else { return };
        let of_library = call.refers.is_some_and(|to| to.is_of_system && to.kind == Kind::Function);
        if !self.program.is_cpp || !of_library {
            return;
        }
        let name = call.name.as_str();
        let is_free = callee.plain().kind == Kind::Name;
        let ty = |argument: &Node| argument.plain().ty.clone();
        let is_value = |argument: &Node| self.program.extends(&ty(argument)) && !ty(argument).is_array();
        let is_pointer = |argument: &Node| {
            let ty = ty(argument);
            let to = if ty.is_array() { Some(&ty) } else { ty.target() };
            to.is_some_and(|to| self.program.extends(to))
        };
        // A single value is only moved from.
        let writes = COPIES.contains(&name) && (name != "move" || arguments.len() > 1);
        let by_range = is_free && writes && arguments.first().is_some_and(is_pointer);
        if by_range || !KEEPS.contains(&name) && arguments.iter().any(is_value) {
            let text = format!(
                "{name} of C++'s library copies an extendible struct, or destroys it, without its extensions: \
                 assign it (`*to = *from`); containers have pointers"
            );
            self.refuse(call.begin, text);
        }
    }

    pub(crate) fn container(&mut self, node: &Node) {
        let Shape::Record(place) = &node.ty.shape else { return };
        let of_library = self.program.unit.records.get(place).is_some_and(|record| record.is_of_system);
        let tag = self.program.structs.iter().map(|of| of.tag.as_str()).find(|tag| has(&node.ty, tag));
        if let Some(tag) = tag.filter(|_| of_library) {
            let text = format!(
                "{} copies and destroys {tag} without its extensions: let it have pointers ({tag} *)",
                node.ty.text
            );
            self.refuse(node.at, text);
        }
    }
}

/// Whether a type has this name as an argument, without pointer or reference.
fn has(ty: &Type, tag: &str) -> bool {
    let Some((_, arguments)) = ty.text.split_once('<') else { return false };
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    arguments.match_indices(tag).any(|(at, _)| {
        let behind = arguments[at + tag.len()..].trim_start_matches(" const").trim_start();
        !arguments[..at].ends_with(is_name) && !behind.starts_with(['*', '&']) && !behind.starts_with(is_name)
    })
}
