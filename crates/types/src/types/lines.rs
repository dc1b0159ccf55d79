use super::{Description, Field, Kind, Pointer, TypeId};
use std::fmt::Write;

impl Description {
    pub fn name(&self, id: TypeId) -> String {
        match &self.get(id).kind {
            Kind::Scalar { word, .. } => (*word).to_owned(),
            Kind::Pointer { how: Pointer::Mutable, target, .. } => format!("*mut {target}"),
            Kind::Pointer { how: Pointer::Constant, target, .. } => format!("*const {target}"),
            Kind::Pointer { how: Pointer::Atomic, target, .. } => format!("atomic *mut {target}"),
            Kind::Pointer { how: Pointer::Relative, target, .. } => format!("relative *mut {target}"),
            Kind::Pointer { how: Pointer::Far, target, .. } => format!("far {target}"),
            Kind::Array { element, count } => format!("[{}; {count}]", self.name(*element)),
            Kind::Struct { name, .. }
            | Kind::Enum { name, .. }
            | Kind::Opaque { name, .. }
            | Kind::Alias { name, .. } => name.clone(),
            Kind::Text => "PString".to_owned(),
            Kind::Extensions => "Extensions".to_owned(),
            Kind::Vector(element) => format!("PVec<{}>", self.name(*element)),
            Kind::Ring(element) => format!("PVecDeque<{}>", self.name(*element)),
            Kind::Boxed { value, optional: false } => format!("PBox<{}>", self.name(*value)),
            Kind::Boxed { value, optional: true } => format!("Option<PBox<{}>>", self.name(*value)),
            Kind::Shared { value, optional: false } => format!("PRc<{}>", self.name(*value)),
            Kind::Shared { value, optional: true } => format!("Option<PRc<{}>>", self.name(*value)),
            Kind::Optional(value) => format!("POption<{}>", self.name(*value)),
            Kind::Hashed { key, set: true, .. } => format!("PHashSet<{}>", self.name(*key)),
            Kind::Hashed { key, value, .. } => {
                format!("PHashMap<{}, {}>", self.name(*key), self.name(*value))
            }
            Kind::Ordered { key, value } => format!("PBTreeMap<{}, {}>", self.name(*key), self.name(*value)),
            Kind::Lock { word, value } => format!("{word}<{}>", self.name(*value)),
        }
    }

    pub fn lines(&self) -> String {
        let mut out = String::new();
        for ty in &self.types {
            match &ty.kind {
                Kind::Struct { name, fields } => {
                    let _ = writeln!(out, "{name}: size {}, alignment {}", ty.size, ty.align);
                    self.fields(&mut out, "  ", fields);
                }
                Kind::Enum { name, integer, variants, .. } => {
                    let _ = writeln!(out, "{name}: size {}, alignment {}", ty.size, ty.align);
                    if let Some(integer) = integer {
                        let _ = writeln!(out, "  tag: {integer} at 0");
                    }
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
            let (mut kind, size) = (self.name(*of), self.get(*of).size);
            truncate(&mut kind, SHOWN);
            let _ = writeln!(out, "{indent}{name}: {kind} at {offset}, size {size}");
        }
    }
}

const SHOWN: usize = 255;

pub fn truncate(text: &mut String, most: usize) {
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
