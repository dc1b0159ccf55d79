//! Two descriptions beside each other: the first thing in which they differ.

use super::{Description, Field, Kind, TypeId};
use std::collections::HashSet;

/// A part of a type, by the way to it.
struct Part {
    way: String,
    /// Offset, of a field.
    offset: Option<u64>,
    of: TypeId,
}

impl Part {
    fn new(way: &str, of: TypeId) -> Part {
        Part { way: way.to_owned(), offset: None, of }
    }

    fn field(before: &str, field: &Field) -> Part {
        Part { way: format!("{before}.{}", field.name), offset: Some(field.offset), of: field.of }
    }
}

impl Description {
    /// The first difference, from the root on, `self` being here and `other` there. `None`: values of one are values of the other.
    pub(crate) fn difference(&self, other: &Description) -> Option<String> {
        let mut met = HashSet::new();
        let mut pending = vec![(self.name(self.root), self.root, other.root)];
        while let Some((path, here, there)) = pending.pop() {
            if !met.insert((here, there)) {
                continue;
            }
            if let Some(what) = self.differ(&path, here, other, there) {
                return Some(what);
            }
            let pairs = self.parts(here).into_iter().zip(other.parts(there)).rev();
            pending.extend(pairs.map(|(one, two)| (format!("{path}{}", one.way), one.of, two.of)));
        }
        None
    }

    /// Compares two types, and their parts by name and place.
    fn differ(&self, path: &str, here: TypeId, other: &Description, there: TypeId) -> Option<String> {
        let (heads, names) = ((self.head(here), other.head(there)), (self.name(here), other.name(there)));
        if heads.0 != heads.1 {
            return Some(format!("{path}: {} here, {} there", names.0, names.1));
        }
        let mut variants = self.variants(here).into_iter().zip(other.variants(there));
        if let Some((one, two)) = variants.find(|(one, two)| one != two) {
            return Some(format!("{path}: {one} here, {two} there"));
        }
        let (parts, others) = (self.parts(here), other.parts(there));
        for (one, two) in parts.iter().zip(&others) {
            let (first, second) = (self.name(one.of), other.name(two.of));
            if one.way != two.way {
                return Some(format!("{path}{} here, {path}{} there", one.way, two.way));
            }
            if first != second {
                return Some(format!("{path}{}: {first} here, {second} there", one.way));
            }
            if let (Some(at), Some(elsewhere)) = (one.offset, two.offset)
                && at != elsewhere
            {
                return Some(format!("{path}{}: at {at} here, at {elsewhere} there", one.way));
            }
        }
        if let Some(only) = parts.get(others.len()) {
            return Some(format!("{path}{} is here only", only.way));
        }
        if let Some(only) = others.get(parts.len()) {
            return Some(format!("{path}{} is there only", only.way));
        }
        let (one, two) = (self.get(here), other.get(there));
        let text = |ty: &super::Type| format!("{} bytes, alignment {}", ty.size, ty.align);
        ((one.size, one.align) != (two.size, two.align))
            .then(|| format!("{path}: {} here, {} there", text(one), text(two)))
    }

    /// The kind of a type, without its parts.
    fn head(&self, id: TypeId) -> String {
        match &self.get(id).kind {
            Kind::Scalar { .. }
            | Kind::Pointer { .. }
            | Kind::Struct { .. }
            | Kind::Opaque { .. }
            | Kind::Alias { .. }
            | Kind::Text => self.name(id),
            Kind::Enum { name, .. } => format!("enum {name}"),
            Kind::Array { count, .. } => format!("[{count}]"),
            Kind::Vector(_) => "PVec".to_owned(),
            Kind::Boxed { optional, .. } => format!("PBox, {optional}"),
            Kind::Optional(_) => "POption".to_owned(),
            Kind::Hashed { set, .. } => format!("PHashMap, {set}"),
            Kind::Ordered { .. } => "PBTreeMap".to_owned(),
            Kind::Lock { word, .. } => (*word).to_owned(),
        }
    }

    /// The tag and the variants of an enum, each as a text; a last one that no variant has.
    fn variants(&self, id: TypeId) -> Vec<String> {
        let Kind::Enum { integer, tag, variants, .. } = &self.get(id).kind else { return Vec::new() };
        let integer =
            integer.map_or_else(|| format!("tag of {tag} bytes"), |integer| format!("tag: {integer}"));
        let all = variants.iter().map(|variant| format!("{} = {}", variant.name, variant.number));
        std::iter::once(integer).chain(all).chain(["no more variants".to_owned()]).collect()
    }

    fn parts(&self, id: TypeId) -> Vec<Part> {
        match &self.get(id).kind {
            Kind::Struct { fields, .. } => fields.iter().map(|field| Part::field("", field)).collect(),
            Kind::Enum { variants, .. } => {
                let of = |variant: &super::Variant| {
                    let before = format!(".{}", variant.name);
                    variant.fields.iter().map(|field| Part::field(&before, field)).collect::<Vec<_>>()
                };
                variants.iter().flat_map(of).collect()
            }
            Kind::Opaque { parameters, .. } => {
                let part = |(index, of): (usize, &TypeId)| Part::new(&format!("<{index}>"), *of);
                parameters.iter().enumerate().map(part).collect()
            }
            Kind::Array { element, .. } | Kind::Vector(element) => vec![Part::new("[0]", *element)],
            Kind::Boxed { value, .. }
            | Kind::Optional(value)
            | Kind::Lock { value, .. }
            | Kind::Alias { of: value, .. } => {
                vec![Part::new("", *value)]
            }
            Kind::Hashed { key, value, .. } | Kind::Ordered { key, value } => {
                vec![Part::new(".keys", *key), Part::new(".values", *value)]
            }
            Kind::Scalar { .. } | Kind::Pointer { .. } | Kind::Text => Vec::new(),
        }
    }
}
