//! Descriptions of structs: C tables for the output, and the words of roots (FORMAT.md, section 10)
//! for the file of layouts, equal to Rust's.

use crate::problem::{Place, Refusal};
use crate::program::Program;
use crate::tree::{Field, Record, Shape, Type};
use std::collections::BTreeSet;
use std::fmt::Write;

pub(crate) fn describer(program: &Program<'_>, place: Place) -> Option<String> {
    let record = program.unit.records.get(&place)?;
    let own = format!("pmo_type_{}", record.tag);
    let known = program.structure(place).is_some() || program.unit.functions.contains(&own);
    match () {
        () if record.is_union || record.tag.is_empty() => None,
        () if known => Some(own),
        () => Some(format!("pmo_leds_type_{}", record.tag)),
    }
}

/// A field's record, also in an array, if its fields are described.
fn nested(program: &Program<'_>, field: &Field) -> Option<Place> {
    field.ty.record().filter(|place| {
        let record = program.unit.records.get(place);
        describer(program, *place).is_some()
            && record.is_some_and(|record| !record.fields.iter().any(|field| field.is_bit_field))
    })
}

/// Records for the output to describe, inner ones first.
pub(crate) fn needed(program: &Program<'_>, place: Place, out: &mut Vec<Place>) {
    let Some(record) = program.unit.records.get(&place) else { return };
    for field in &record.fields {
        let Some(inner) = nested(program, field).filter(|inner| !out.contains(inner)) else { continue };
        needed(program, inner, out);
        if describer(program, inner).is_some_and(|name| name.starts_with("pmo_leds_")) {
            out.push(inner);
        }
    }
}

fn type_word(program: &Program<'_>, ty: &Type) -> String {
    match &ty.shape {
        Shape::Number(word) => (*word).to_owned(),
        Shape::Pointer(target) => {
            let record = target.record().filter(|_| !target.is_array());
            let tag =
                record.and_then(|place| program.unit.records.get(&place)).map_or("", |record| &record.tag);
            if tag.is_empty() { "void *".to_owned() } else { format!("{tag} *") }
        }
        Shape::Array(of, count) => {
            let inner = type_word(program, of);
            let base = inner.split('[').next().unwrap_or_default();
            format!("{base}[{count}]")
        }
        Shape::Record(place) => {
            let record = program.unit.records.get(place);
            record.map_or(&ty.text, |record| &record.spelled).clone()
        }
        Shape::Reference(_) | Shape::Other => ty.text.clone(),
    }
}

/// The described target of a pointer or of an array of pointers.
fn target(program: &Program<'_>, ty: &Type) -> Option<String> {
    match &ty.shape {
        Shape::Pointer(target) if !target.is_array() => {
            let place = target.record()?;
            describer(program, place).filter(|name| name.starts_with("pmo_type_"))
        }
        Shape::Array(of, _) => target(program, of),
        _ => None,
    }
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

pub(crate) fn table<'f>(
    program: &Program<'_>,
    function: &str,
    spelled: &str,
    fields: impl Iterator<Item = &'f Field>,
    has_link: bool,
) -> String {
    let mut rows = Vec::new();
    for field in fields {
        let name = &field.name;
        let (word, inner, to) = match nested(program, field).and_then(|place| describer(program, place)) {
            Some(inner) => (type_word(program, &field.ty), inner, None),
            None => (type_word(program, &field.ty), "NULL".to_owned(), target(program, &field.ty)),
        };
        let (word, to) = (quoted(&word), to.unwrap_or_else(|| "NULL".to_owned()));
        rows.push(format!(
            "{{\"{name}\", \"{word}\", offsetof({spelled}, {name}), sizeof((({spelled} *)0)->{name}), {inner}, {to}}}"
        ));
    }
    if has_link {
        rows.push(format!(
            "{{\"extensions\", \"\", offsetof({spelled}, extensions), sizeof(struct pmo_extensions), \
             pmo_type_pmo_extensions, NULL}}"
        ));
    }
    // Rust's name, by which roots are compared.
    let (count, name) = (rows.len(), spelled.trim_start_matches("struct "));
    format!(
        "static inline const struct pmo_type *{function}(void) {{ static const struct pmo_field fields[] = {{{}}}; \
         static const struct pmo_type type = {{\"{name}\", sizeof({spelled}), fields, {count}, PMO_STRUCT, \
         __alignof__({spelled})}}; return &type; }}\n",
        rows.join(", ")
    )
}

pub(crate) fn fields_of<'a>(
    program: &'a Program<'a>,
    of: usize,
    extension: usize,
) -> impl Iterator<Item = &'a Field> {
    let fields = program.record(of).map_or(&[][..], |record| &record.fields);
    fields
        .iter()
        .filter(move |field| program.field(field.place).map_or(0, |field| field.extension) == extension)
}

pub(crate) struct Words<'a> {
    program: &'a Program<'a>,
    out: String,
    met: Vec<Option<Place>>,
}

impl<'a> Words<'a> {
    pub(crate) fn of(program: &'a Program<'a>, place: Place) -> String {
        let mut words = Words { program, out: String::new(), met: Vec::new() };
        words.record(place);
        words.out
    }

    fn word(&mut self, word: &str) {
        self.out.push_str(word);
        self.out.push(' ');
    }

    fn record(&mut self, place: Place) {
        if let Some(number) = self.met.iter().position(|met| *met == Some(place)) {
            return self.word(&format!("={number}"));
        }
        let Some(record) = self.program.unit.records.get(&place) else { return };
        if record.tag == "pmo_extensions" {
            return self.word("Extensions");
        }
        self.met.push(Some(place));
        self.word(&format!("{}:{}:{}", record.tag, record.size, record.align.min(16)));
        self.word("{");
        for field in &record.fields {
            self.word(&format!("{}@{}:{}", field.name, field.offset, field.size));
            self.field(record, field);
        }
        self.word("}");
    }

    fn field(&mut self, of: &Record, field: &Field) {
        if let Some(inner) = nested(self.program, field) {
            let size = self.program.unit.records.get(&inner).map_or(0, |record| record.size);
            if size > 0 && field.size != size {
                self.word(&format!("[{}]", field.size / size));
            }
            return self.record(inner);
        }
        let word = type_word(self.program, &field.ty);
        let (base, dimensions) =
            word.split_once('[').map_or((word.as_str(), None), |(base, rest)| (base, Some(rest)));
        let element = element(&field.ty);
        let known = element.is_pointer() || matches!(element.shape, Shape::Number(_));
        if known && let Some(count) = dimensions.and_then(|_| count(&field.ty)) {
            self.word(&format!("[{count}]"));
        }
        match (&element.shape, base.strip_suffix('*')) {
            (Shape::Pointer(_), Some(target)) => {
                self.word("*mut");
                self.word(target.trim().trim_start_matches("struct "));
            }
            (Shape::Number(word), _) => self.word(word),
            _ => {
                self.met.push(None);
                let fits = |align: &usize| {
                    field.offset.is_multiple_of(*align)
                        && field.size.is_multiple_of(*align)
                        && *align <= of.align
                };
                let align = [16, 8, 4, 2].into_iter().find(fits).unwrap_or(1);
                let name: Vec<_> = word.split_whitespace().collect();
                let _ = write!(self.out, "{}:{}:{align} < > ", name.join("_"), field.size);
            }
        }
    }
}

fn element(ty: &Type) -> &Type {
    match &ty.shape {
        Shape::Array(of, _) => element(of),
        _ => ty,
    }
}

fn count(ty: &Type) -> Option<usize> {
    match &ty.shape {
        Shape::Array(of, all) => Some(all * count(of).unwrap_or(1)),
        _ => None,
    }
}

/// Other records that contain extendible structs: they are copied and freed with these.
pub(crate) fn holders(program: &Program<'_>) -> BTreeSet<Place> {
    let all = program.unit.records.keys().copied();
    all.filter(|place| program.structure(*place).is_none() && program.record_extends(*place)).collect()
}

/// Refuses records that cannot be described after all sources.
pub(crate) fn check_holders(program: &Program<'_>) -> Result<(), Vec<Refusal>> {
    let mut wrong = Vec::new();
    for place in holders(program) {
        let Some(record) = program.unit.records.get(&place) else { continue };
        if record.is_qualified || record.is_inner && program.is_cpp {
            let text = format!(
                "{} has extendible structs in it, and lies in a namespace, a class or a template: have it lie \
                 outside, or have pointers",
                record.spelled
            );
            wrong.push(Refusal::new(place, text));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}
