//! Links are zero from the beginning: in variables, initial values, allocated memory.

use crate::rewrite::Rewrite;
use crate::tree::{Kind, Node, Shape, Type};

impl Rewrite<'_> {
    pub(crate) fn local(&mut self, node: &Node, parents: &[&Node]) {
        let list = node.children.last().map(Node::plain).filter(|value| value.kind == Kind::InitList);
        if let Some(list) = list {
            self.list(&node.ty, list);
        } else if self.program.extends(&node.ty) && !parents.is_empty() && !self.has_value(node) {
            let zero = if self.program.is_cpp { " = {}" } else { " = {0}" };
            self.edits(node.end).close(node.end.offset, zero.to_owned());
        }
    }

    pub(crate) fn allocation(&mut self, node: &Node) {
        let leads = node.ty.target().is_some_and(|to| self.program.extends(to));
        let call = node.children.last().map(Node::plain).filter(|call| leads && call.kind == Kind::Call);
        let Some(call) = call else { return };
        let [callee, arguments @ ..] = &call.children[..] else { return };
        let (name, size) = match (call.name.as_str(), arguments) {
            ("pmo_malloc", [_, size]) => ("pmo_calloc", size),
            ("malloc", [size]) => ("calloc", size),
            ("pmo_realloc" | "pmo_aligned_alloc" | "realloc" | "aligned_alloc", _) => {
                let text = format!(
                    "{} does not fill extendible structs with zeros: take pmo_calloc, copy them by memcpy, and free the \
                     others by pmo_extended_free",
                    call.name
                );
                return self.refuse(call.begin, text);
            }
            _ => return,
        };
        if !self.is_new(callee.begin, name.to_owned()) {
            return;
        }
        self.replace_name(callee, name.to_owned());
        self.edits(size.begin).open(size.begin.offset, "1, ".to_owned());
    }

    fn has_value(&self, node: &Node) -> bool {
        let text = self.text(node.at.file);
        let declared = text.get(node.begin.offset..node.at.offset).unwrap_or_default();
        let storage = declared.split_whitespace().any(|word| matches!(word, "static" | "extern"));
        let value = |rest: &str| rest.contains(['=', '{', '(']);
        storage || text.get(node.at.offset..node.end.offset).is_none_or(value)
    }

    pub(crate) fn list(&mut self, ty: &Type, list: &Node) {
        if ty.is_array() {
            let Shape::Array(of, _) = &ty.shape else { return };
            for child in &list.children {
                match child.plain().kind {
                    Kind::InitList => self.list(of, child.plain()),
                    _ if self.program.extends(of) => self
                        .refuse(child.begin, "write braces around each struct: its link is not named here"),
                    _ => {}
                }
            }
            return;
        }
        let Some(place) = ty.record().filter(|place| self.program.record_extends(*place)) else { return };
        let Some(record) = self.program.unit.records.get(&place) else { return };
        let own = record.fields.iter().take_while(|field| self.program.field(field.place).is_none()).count();
        let named = list.children.iter().any(has_field_name);
        let is_zero = matches!(&list.children[..], [only] if self.text(only.begin.file).get(only.begin.offset..only.end.offset) == Some("0"));
        if !named && list.children.len() > own && self.program.structure(place).is_some() {
            let at = list.children[own].begin;
            return self.refuse(at, "an initial value for a field of an extension, which INIT computes");
        }
        for (child, field) in list.children.iter().zip(&record.fields).filter(|_| !named) {
            if child.plain().kind == Kind::InitList {
                self.list(&field.ty, child.plain());
            } else if self.program.extends(&field.ty) && !is_zero && !self.program.is_copy(child) {
                self.refuse(child.begin, "write braces around each struct: its link is not named here");
            }
        }
        if !named
            && list.children.len() == own
            && own > 0
            && self.program.structure(place).is_some()
            && !is_zero
        {
            let last = list.children[own - 1].end;
            self.edits(last).close(last.offset, ", {0}".to_owned());
        }
    }
}

fn has_field_name(node: &Node) -> bool {
    node.kind == Kind::FieldName || (node.kind == Kind::Implicit && node.children.iter().any(has_field_name))
}
