use crate::heap::Root;
use crate::types::{Description, Field, Kind};

/// A struct or an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeDefinition {
    /// Its name, perhaps not unique across modules.
    pub name: String,
    /// Bytes of a value.
    pub size: u64,
    /// Its alignment.
    pub align: u64,
    /// Fields of a struct.
    pub fields: Vec<FieldDefinition>,
    /// Variants of an enum.
    pub variants: Option<Vec<VariantDefinition>>,
}

/// A field of a struct or a variant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldDefinition {
    /// Its name; a number in tuple structs.
    pub name: String,
    /// Name of its type.
    pub type_name: String,
    /// Offset in the struct or enum, in bytes.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
}

/// A variant of an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VariantDefinition {
    /// Its name.
    pub name: String,
    /// The tag.
    pub number: i128,
    /// Its fields.
    pub fields: Vec<FieldDefinition>,
}

impl Root {
    /// The structs and enums of the root's values; `None`: the heap has no readable description.
    #[must_use]
    pub fn definitions(&self) -> Option<Vec<TypeDefinition>> {
        Some(definitions(&self.description()?))
    }
}

fn definitions(of: &Description) -> Vec<TypeDefinition> {
    let fields = |fields: &[Field]| -> Vec<FieldDefinition> {
        let definition = |field: &Field| FieldDefinition {
            name: field.name.clone(),
            type_name: of.name(field.of),
            offset: field.offset,
            size: of.get(field.of).size,
        };
        fields.iter().map(definition).collect()
    };
    let definition = |ty: &crate::types::Type| {
        let (name, direct, variants) = match &ty.kind {
            Kind::Struct { name, fields: all } => (name, fields(all), None),
            Kind::Enum { name, variants, .. } => {
                let variant = |variant: &crate::types::Variant| VariantDefinition {
                    name: variant.name.clone(),
                    number: variant.number,
                    fields: fields(&variant.fields),
                };
                (name, Vec::new(), Some(variants.iter().map(variant).collect()))
            }
            _ => return None,
        };
        Some(TypeDefinition { name: name.clone(), size: ty.size, align: ty.align, fields: direct, variants })
    };
    of.all().filter_map(definition).collect()
}
