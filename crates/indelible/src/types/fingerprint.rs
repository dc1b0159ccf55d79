//! The number that a description is known by.

use super::{Description, Kind, TypeId};
use indelible_store::format::checksum;

/// Version of the formats of the collections: part of every fingerprint.
pub(crate) const VERSION: u32 = 1;
/// Version of types with a hash table that has bytes in its keys: in version 1 they were hashed one by one.
pub(crate) const BYTE_KEYS: u32 = 2;

/// The fingerprint of a description: 128 bits of all its words, each followed by a blank.
pub(crate) fn fingerprint(text: &str) -> u128 {
    of_version(text, version(text))
}

/// The fingerprints that a description has had in any version.
pub(crate) fn fingerprints(text: &str) -> [u128; 2] {
    [VERSION, BYTE_KEYS].map(|version| of_version(text, version))
}

fn of_version(text: &str, version: u32) -> u128 {
    let version = version.to_le_bytes();
    let half = |seed| u128::from(checksum(seed, &[&version, text.as_bytes()]));
    half(1) << 64 | half(2)
}

/// Version of the format of what a description describes.
fn version(text: &str) -> u32 {
    let hashed = text.contains("PHash");
    match hashed && Description::parse(text).is_ok_and(|of| of.has_byte_keys()) {
        true => BYTE_KEYS,
        false => VERSION,
    }
}

impl Description {
    /// Whether the keys of a hash table have bytes in a row, which are hashed together.
    fn has_byte_keys(&self) -> bool {
        let keys = self.types.iter().filter_map(|ty| match ty.kind {
            Kind::Hashed { key, .. } => Some(key),
            _ => None,
        });
        let mut pending: Vec<TypeId> = keys.collect();
        let mut met = vec![false; self.types.len()];
        while let Some(id) = pending.pop() {
            if std::mem::replace(&mut met[id], true) {
                continue;
            }
            match &self.get(id).kind {
                Kind::Array { element, .. } | Kind::Vector(element) if self.is_byte(*element) => return true,
                Kind::Array { element: of, .. }
                | Kind::Vector(of)
                | Kind::Boxed { value: of, .. }
                | Kind::Optional(of)
                | Kind::Alias { of, .. } => pending.push(*of),
                Kind::Struct { fields, .. } => pending.extend(fields.iter().map(|field| field.of)),
                Kind::Enum { variants, .. } => {
                    pending.extend(variants.iter().flat_map(|variant| &variant.fields).map(|field| field.of));
                }
                Kind::Opaque { parameters, .. } => pending.extend(parameters),
                Kind::Hashed { .. } | Kind::Ordered { .. } | Kind::Lock { .. } => {}
                Kind::Scalar { .. } | Kind::Pointer { .. } | Kind::Text | Kind::Extensions => {}
            }
        }
        false
    }

    fn is_byte(&self, id: TypeId) -> bool {
        matches!(self.get(id).kind, Kind::Scalar { word: "u8", .. })
    }
}
