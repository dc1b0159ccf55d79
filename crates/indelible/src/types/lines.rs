//! Descriptions for people: the names of types, their definitions, and the first difference of two of them.

use super::{Description, Field, Kind, Pointer, TypeId};
use std::collections::HashSet;
use std::fmt::Write;

impl Description {
    /// Name of a type, as a Rust program would write it.
    pub(crate) fn name(&self, id: TypeId) -> String {
        match &self.get(id).kind {
            Kind::Scalar { word, .. } => (*word).to_owned(),
            Kind::Pointer { how: Pointer::Mutable, target } => format!("*mut {target}"),
            Kind::Pointer { how: Pointer::Constant, target } => format!("*const {target}"),
            Kind::Pointer { how: Pointer::Atomic, target } => format!("atomic *mut {target}"),
            Kind::Pointer { how: Pointer::Relative, target } => format!("relative *mut {target}"),
            Kind::Array { element, count } => format!("[{}; {count}]", self.name(*element)),
            Kind::Struct { name, .. } | Kind::Enum { name, .. } => name.clone(),
            Kind::Text => "PString".to_owned(),
            Kind::Vector(element) => format!("PVec<{}>", self.name(*element)),
            Kind::Boxed { value, optional: false } => format!("PBox<{}>", self.name(*value)),
            Kind::Boxed { value, optional: true } => format!("Option<PBox<{}>>", self.name(*value)),
            Kind::Optional(value) => format!("POption<{}>", self.name(*value)),
            Kind::Hashed { key, set: true, .. } => format!("PHashSet<{}>", self.name(*key)),
            Kind::Hashed { key, value, .. } => {
                format!("PHashMap<{}, {}>", self.name(*key), self.name(*value))
            }
            Kind::Ordered { key, value } => format!("PBTreeMap<{}, {}>", self.name(*key), self.name(*value)),
            Kind::Lock { word, value } => format!("{word}<{}>", self.name(*value)),
        }
    }

    /// The definitions of all structs and enums, in the order in which they are met.
    pub(crate) fn lines(&self) -> String {
        let mut out = String::new();
        for ty in &self.types {
            match &ty.kind {
                Kind::Struct { name, fields } => {
                    let _ = writeln!(out, "{name}: size {}, alignment {}", ty.size, ty.align);
                    self.fields(&mut out, "  ", fields);
                }
                Kind::Enum { name, tag, variants } => {
                    let _ = writeln!(out, "{name}: size {}, alignment {}, tag of {tag}", ty.size, ty.align);
                    for variant in variants {
                        let _ = writeln!(out, "  {} = {}", variant.name, variant.number);
                        self.fields(&mut out, "    ", &variant.fields);
                    }
                }
                _ => {}
            }
        }
        out
    }

    fn fields(&self, out: &mut String, indent: &str, fields: &[Field]) {
        for Field { name, offset, of } in fields {
            let (kind, size) = (self.name(*of), self.get(*of).size);
            let _ = writeln!(out, "{indent}{name}: {kind} at {offset}, size {size}");
        }
    }

    /// The first difference, from the root on; `None`: values of one are values of the other.
    pub(crate) fn difference(&self, other: &Description) -> Option<String> {
        let mut met = HashSet::new();
        let mut pending = vec![(self.name(self.root), self.root, other.root)];
        while let Some((path, here, there)) = pending.pop() {
            if !met.insert((here, there)) {
                continue;
            }
            let before = pending.len();
            if let Some(what) = self.differ(&path, here, other, there, &mut pending) {
                return Some(what);
            }
            // First fields first.
            pending[before..].reverse();
        }
        None
    }

    /// Compares two types without their parts, which join `pending`.
    fn differ(
        &self,
        path: &str,
        here: TypeId,
        other: &Description,
        there: TypeId,
        pending: &mut Vec<(String, TypeId, TypeId)>,
    ) -> Option<String> {
        let (one, two) = (self.get(here), other.get(there));
        let mut join = |way: &str, one: TypeId, two: TypeId| pending.push((format!("{path}{way}"), one, two));
        let kinds = || Some(format!("{path}: {} here, {} there", self.name(here), other.name(there)));
        match (&one.kind, &two.kind) {
            (Kind::Struct { name, fields }, Kind::Struct { name: second, fields: others })
                if name == second =>
            {
                let found = self.differ_in_fields(path, fields, other, others, pending);
                found.or_else(|| sizes(path, (one.size, two.size), (one.align, two.align)))
            }
            (
                Kind::Enum { name, tag, variants },
                Kind::Enum { name: second, tag: width, variants: others },
            ) if name == second => {
                for (index, variant) in variants.iter().enumerate() {
                    let Some(same) = others.get(index) else {
                        return Some(format!("{path}: {} is here only", variant.name));
                    };
                    if (&variant.name, variant.number) != (&same.name, same.number) {
                        let text =
                            |variant: &super::Variant| format!("{} = {}", variant.name, variant.number);
                        return Some(format!("{path}: {} here, {} there", text(variant), text(same)));
                    }
                    let path = format!("{path}.{}", variant.name);
                    let found = self.differ_in_fields(&path, &variant.fields, other, &same.fields, pending);
                    if found.is_some() {
                        return found;
                    }
                }
                match others.get(variants.len()) {
                    Some(more) => Some(format!("{path}: {} is there only", more.name)),
                    None => sizes(path, (one.size, two.size), (*tag, *width)),
                }
            }
            (Kind::Array { element, count }, Kind::Array { element: second, count: many })
                if count == many =>
            {
                join("[0]", *element, *second);
                None
            }
            (Kind::Vector(element), Kind::Vector(second)) => {
                join("[0]", *element, *second);
                None
            }
            (Kind::Boxed { value, optional }, Kind::Boxed { value: second, optional: same })
                if optional == same =>
            {
                join("", *value, *second);
                None
            }
            (Kind::Optional(value), Kind::Optional(second)) => {
                join("", *value, *second);
                None
            }
            (Kind::Hashed { key, value, set }, Kind::Hashed { key: second, value: other, set: same })
                if set == same =>
            {
                join(".keys", *key, *second);
                join(".values", *value, *other);
                None
            }
            (Kind::Ordered { key, value }, Kind::Ordered { key: second, value: other }) => {
                join(".keys", *key, *second);
                join(".values", *value, *other);
                None
            }
            (Kind::Lock { word, value }, Kind::Lock { word: same, value: second }) if word == same => {
                join("", *value, *second);
                None
            }
            (Kind::Text, Kind::Text) => None,
            (Kind::Scalar { word, .. }, Kind::Scalar { word: same, .. }) if word == same => None,
            (Kind::Pointer { how, target }, Kind::Pointer { how: same, target: to })
                if how == same && target == to =>
            {
                None
            }
            _ => kinds(),
        }
    }

    fn differ_in_fields(
        &self,
        path: &str,
        fields: &[Field],
        other: &Description,
        others: &[Field],
        pending: &mut Vec<(String, TypeId, TypeId)>,
    ) -> Option<String> {
        for (index, field) in fields.iter().enumerate() {
            let Some(same) = others.get(index) else {
                return Some(format!("{path}: field {} is here only", field.name));
            };
            if field.name != same.name {
                return Some(format!("{path}: field {} here, {} there", field.name, same.name));
            }
            let kinds = (self.name(field.of), other.name(same.of));
            if kinds.0 != kinds.1 {
                return Some(format!("{path}.{}: {} here, {} there", field.name, kinds.0, kinds.1));
            }
            if field.offset != same.offset {
                let (here, there) = (field.offset, same.offset);
                return Some(format!("{path}.{}: at {here} here, at {there} there", field.name));
            }
            pending.push((format!("{path}.{}", field.name), field.of, same.of));
        }
        let more = others.get(fields.len())?;
        Some(format!("{path}: field {} is there only", more.name))
    }
}

fn sizes(path: &str, (one, two): (u64, u64), others: (u64, u64)) -> Option<String> {
    if one != two {
        return Some(format!("{path}: {one} bytes here, {two} there"));
    }
    (others.0 != others.1)
        .then(|| format!("{path}: alignment or tag of {} here, of {} there", others.0, others.1))
}
