//! A parsed source with its extendible structs.

use crate::access::variable;
use crate::extendible::Struct;
use crate::problem::{Place, Refusal};
use crate::tree::{Field, Kind, Node, Record, Shape, Type, Unit};
use std::collections::HashMap;

pub(crate) struct Program<'a> {
    pub(crate) unit: &'a Unit,
    /// Texts by file number; empty for files not read.
    pub(crate) texts: &'a [String],
    /// Compiled structs: not those behind `#if 0`.
    pub(crate) structs: &'a [Struct],
    pub(crate) is_cpp: bool,
    /// Keyed by the place of their definition.
    by_place: HashMap<Place, usize>,
    /// Struct, extension (from 1) and name of their fields.
    fields: HashMap<Place, FieldOf<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldOf<'a> {
    pub(crate) of: usize,
    pub(crate) extension: usize,
    pub(crate) name: &'a str,
}

impl<'a> Program<'a> {
    pub(crate) fn new(unit: &'a Unit, texts: &'a [String], structs: &'a [Struct], is_cpp: bool) -> Self {
        let mut program =
            Program { unit, texts, structs, is_cpp, by_place: HashMap::new(), fields: HashMap::new() };
        for (of, structure) in structs.iter().enumerate() {
            let place = place_of(structure);
            program.by_place.insert(place, of);
            let Some(record) = unit.records.get(&place) else { continue };
            for field in &record.fields {
                let index = structure.extensions.iter().position(|extension| {
                    field.place.file == structure.file && extension.has(field.place.offset)
                });
                if let Some(index) = index {
                    let field_of = FieldOf { of, extension: index + 1, name: &field.name };
                    program.fields.insert(field.place, field_of);
                }
            }
        }
        program
    }

    pub(crate) fn field(&self, place: Place) -> Option<FieldOf<'a>> {
        self.fields.get(&place).copied()
    }

    pub(crate) fn record(&self, of: usize) -> Option<&'a Record> {
        self.unit.records.get(&place_of(&self.structs[of]))
    }

    pub(crate) fn structure(&self, place: Place) -> Option<usize> {
        self.by_place.get(&place).copied()
    }

    pub(crate) fn extends(&self, ty: &Type) -> bool {
        match &ty.shape {
            Shape::Record(place) => self.record_extends(*place),
            Shape::Array(of, _) => self.extends(of),
            _ => false,
        }
    }

    pub(crate) fn record_extends(&self, place: Place) -> bool {
        if self.by_place.contains_key(&place) {
            return true;
        }
        let record = self.unit.records.get(&place);
        record.is_some_and(|record| record.fields.iter().any(|field| self.extends(&field.ty)))
    }

    /// Whether an extendible struct, or a struct in it, such as a list's handle, has the field.
    pub(crate) fn is_within(&self, field: Place) -> bool {
        (0..self.structs.len()).filter_map(|of| self.record(of)).any(|record| self.has_within(record, field))
    }

    fn has_within(&self, record: &Record, place: Place) -> bool {
        let inner = |field: &Field| self.unit.records.get(&field.ty.record()?);
        let has = |inner: &Record| self.has_within(inner, place);
        record.fields.iter().any(|field| field.place == place || inner(field).is_some_and(has))
    }

    pub(crate) fn is_copy(&self, node: &Node) -> bool {
        let [.., inner] = &node.children[..] else { return false };
        let is_value = self.extends(&node.ty) && !node.ty.is_array();
        let of_value = inner.plain().kind != Kind::InitList && self.extends(&inner.ty);
        match node.kind {
            // In C++ a conversion may lead to a reference, and a constructor copies.
            Kind::Implicit if self.is_cpp => is_value && self.is_copy(inner),
            Kind::Implicit => is_value && of_value,
            Kind::Call => {
                let is_tag = || self.unit.records.values().any(|record| record.tag == node.name);
                let constructs = node.refers.is_none_or(|to| to.kind == Kind::Function && is_tag());
                is_value && of_value && constructs
            }
            _ => false,
        }
    }

    /// The variable that receives a copied value with extensions.
    pub(crate) fn shallow_copy(&self, node: &Node) -> Option<Place> {
        match (node.kind, &node.children[..]) {
            (Kind::Variable, [.., value]) if self.is_copy(value) => Some(node.at),
            (Kind::Binary | Kind::Call, [to, .., value]) if self.is_copy(value) => variable(to),
            _ => None,
        }
    }

    /// Refuses structs without a fixed layout, or with extensions that would own values.
    pub(crate) fn check(&self) -> Result<(), Vec<Refusal>> {
        let mut wrong = Vec::new();
        for (of, structure) in self.structs.iter().enumerate() {
            let Some(record) = self.record(of) else { continue };
            let at = place_of(structure);
            if record.is_inner {
                wrong.push(Refusal::new(
                    at,
                    "an extendible struct is declared outside of functions and structs",
                ));
            }
            if record.is_qualified {
                wrong.push(Refusal::new(at, "an extendible struct lies in no namespace, and is no template"));
            }
            for field in &record.fields {
                wrong.extend(self.refused(structure, field).map(|text| Refusal::new(field.place, text)));
            }
            for (number, extension) in (1..).zip(&structure.extensions) {
                if !record.fields.iter().any(|field| extension.has(field.place.offset)) {
                    let at = Place { file: structure.file, offset: extension.range.start };
                    wrong.push(Refusal::new(at, format!("EXTENSION({number}) has no fields")));
                }
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// The word of a type within an unnamed type.
    fn unnamed(&self, ty: &Type) -> Option<&'a str> {
        let record = self.unit.records.get(&ty.record()?)?;
        let is_own = record.tag.is_empty().then_some(record.spelled.as_str());
        is_own.or_else(|| record.fields.iter().find_map(|field| self.unnamed(&field.ty)))
    }

    fn refused(&self, structure: &Struct, field: &Field) -> Option<String> {
        let Struct { tag, .. } = structure;
        let name = &field.name;
        let extended = self.field(field.place).is_some();
        if field.is_bit_field {
            Some(format!("{name} of struct {tag} is a bit-field, which has no address: take an integer"))
        } else if name == "extensions" {
            Some(format!("the link of struct {tag} is called extensions: call the field otherwise"))
        } else if name.is_empty() {
            Some(format!("a struct without a name in struct {tag}: give it one"))
        } else if let Some(inner) = self.unnamed(&field.ty) {
            Some(format!(
                "{name} of struct {tag} has {inner} without a name: give it one, by which it is described"
            ))
        } else if extended && self.extends(&field.ty) {
            Some(format!(
                "{name} is an extendible struct in an extension, which owns nothing, as programs that do not know it copy and \
                 free it: make it a field of its own struct, or a pointer"
            ))
        } else if let Some(Record { is_union: true, spelled, .. }) =
            field.ty.record().and_then(|place| self.unit.records.get(&place))
            && self.extends(&field.ty)
        {
            Some(format!("{name} is a {spelled} with extendible structs: which of them it holds is unknown"))
        } else {
            None
        }
    }
}

pub(crate) fn place_of(structure: &Struct) -> Place {
    Place { file: structure.file, offset: structure.name.start }
}
