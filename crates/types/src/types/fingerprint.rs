use super::{Description, Kind, TypeId};
use indelible_store::Mutant;
use indelible_store::format::checksum;
use std::borrow::Cow;

/// Part of every fingerprint.
pub const VERSION: u32 = 1;
/// Version of types with byte keys, which version 1 hashed one by one.
pub const BYTE_KEYS: u32 = 2;

pub fn own(text: &str) -> &str {
    text.find(" -> ").map_or(text, |at| &text[..=at])
}

pub fn fingerprint(text: &str) -> u128 {
    let text = own(text);
    of_version(text, version(text))
}

pub fn fingerprints(text: &str) -> [u128; 2] {
    [VERSION, BYTE_KEYS].map(|version| of_version(own(text), version))
}

fn of_version(text: &str, version: u32) -> u128 {
    let (version, text) = (version.to_le_bytes(), broken(text));
    let half = |seed| u128::from(checksum(seed, &[&version, text.as_bytes()]));
    half(1) << 64 | half(2)
}

/// Then fingerprints must not be cached.
pub fn fingerprints_are_broken() -> bool {
    Mutant::NestingIgnored.is_on() || Mutant::OrderIgnored.is_on()
}

fn broken(text: &str) -> Cow<'_, str> {
    let mut words: Vec<&str> = Vec::new();
    if Mutant::NestingIgnored.is_on() {
        let mut depth = 0;
        for word in text.split(' ') {
            depth -= i32::from(word == "}");
            words.extend((depth <= 1).then_some(word));
            depth += i32::from(word == "{");
        }
    } else if Mutant::OrderIgnored.is_on() {
        words.extend(text.split(' ').map(|word| word.split('@').next().unwrap_or_default()));
        words.sort_unstable();
    } else {
        return Cow::Borrowed(text);
    }
    Cow::Owned(words.join(" "))
}

fn version(text: &str) -> u32 {
    let hashed = text.contains("PHash");
    match hashed && Description::parse(text).is_ok_and(|of| of.has_byte_keys()) {
        true => BYTE_KEYS,
        false => VERSION,
    }
}

impl Description {
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
                | Kind::Ring(of)
                | Kind::Boxed { value: of, .. }
                | Kind::Shared { value: of, .. }
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
