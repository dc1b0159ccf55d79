use super::containers::{HASHED, ORDERED, RING, VECTOR};
use super::{Kind, Type, TypeId, Valid};

pub(super) const DEEPEST: usize = 100;
/// Zero-sized fields at most: each field of each value is visited.
const EMPTY_FIELDS: usize = 64;

/// `None`: overflow. Structs and enums state theirs.
pub(super) fn layout_of(types: &[Type], kind: &Kind) -> Option<(u64, u64)> {
    let of = |id: &TypeId| (types[*id].size, types[*id].align);
    match kind {
        Kind::Scalar { .. } | Kind::Struct { .. } | Kind::Enum { .. } | Kind::Opaque { .. } => None,
        Kind::Alias { of: inner, .. } => Some(of(inner)),
        Kind::Pointer { .. } | Kind::Boxed { .. } | Kind::Shared { .. } | Kind::Extensions => Some((8, 8)),
        Kind::Array { element, count } => {
            let (size, align) = of(element);
            Some((size.checked_mul(*count)?, align))
        }
        Kind::Text | Kind::Vector(_) => Some((VECTOR, 8)),
        Kind::Ring(_) => Some((RING, 8)),
        Kind::Optional(value) => {
            let (size, align) = of(value);
            Some((align.checked_add(size)?.checked_next_multiple_of(align)?, align))
        }
        Kind::Hashed { .. } => Some((HASHED, 8)),
        Kind::Ordered { .. } => Some((ORDERED, 8)),
        Kind::Lock { .. } => Some((16, 8)),
    }
}

fn parts(kind: &Kind) -> Vec<TypeId> {
    match kind {
        Kind::Array { element, .. } => vec![*element],
        Kind::Optional(value) => vec![*value],
        Kind::Alias { of, .. } => vec![*of],
        Kind::Struct { fields, .. } => fields.iter().map(|field| field.of).collect(),
        Kind::Enum { variants, .. } => {
            variants.iter().flat_map(|variant| &variant.fields).map(|field| field.of).collect()
        }
        _ => Vec::new(),
    }
}

/// Parts lie within their value, disjoint. Returns the types, each behind its parts.
pub(super) fn check_parts(types: &[Type]) -> Result<Vec<TypeId>, String> {
    for Type { size, align, kind, .. } in types {
        match kind {
            Kind::Struct { name, fields } => apart(types, name, fields, (0, *size), *align)?,
            Kind::Enum { name, tag, variants, .. } => {
                if *tag > *size {
                    return Err(format!("{name}: its tag has more bytes than the enum"));
                }
                for variant in variants {
                    apart(types, name, &variant.fields, (*tag, *size), *align)?;
                }
            }
            _ => {}
        }
    }
    let order = in_order(types)?;
    check_depth(types, &order)?;
    Ok(order)
}

/// A type mentioned by number adds none to the text.
fn check_depth(types: &[Type], order: &[TypeId]) -> Result<(), String> {
    let mut depths = vec![0; types.len()];
    for &id in order {
        depths[id] = parts(&types[id].kind).iter().map(|part| depths[*part] + 1).max().unwrap_or_default();
        if depths[id] > DEEPEST {
            return Err(format!("more than {DEEPEST} types within each other"));
        }
    }
    Ok(())
}

fn apart(
    types: &[Type],
    name: &str,
    fields: &[super::Field],
    (start, end): (u64, u64),
    align: u64,
) -> Result<(), String> {
    let mut at = start;
    let empty = fields.iter().filter(|field| types[field.of].size == 0).count();
    if empty > EMPTY_FIELDS {
        return Err(format!("{name}: {empty} fields without bytes"));
    }
    for field in fields {
        let of = &types[field.of];
        let right = field.offset >= at && field.offset.is_multiple_of(of.align) && of.align <= align;
        at = field.offset.saturating_add(of.size);
        if !right || at > end {
            return Err(format!("field {} of {name} is not where a field can be", field.name));
        }
    }
    Ok(())
}

fn in_order(types: &[Type]) -> Result<Vec<TypeId>, String> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let (mut states, mut order) = (vec![State::New; types.len()], Vec::new());
    for start in 0..types.len() {
        let mut path = vec![(start, parts(&types[start].kind))];
        if states[start] != State::New {
            continue;
        }
        while let Some((id, left)) = path.last_mut() {
            states[*id] = State::Open;
            match left.pop() {
                None => {
                    states[*id] = State::Done;
                    order.push(*id);
                    path.pop();
                }
                Some(part) if states[part] == State::New => path.push((part, parts(&types[part].kind))),
                Some(part) if states[part] == State::Open => {
                    return Err("a type that is a part of itself".to_owned());
                }
                Some(_) => {}
            }
        }
    }
    Ok(order)
}

pub(super) fn settle_plain(types: &mut [Type], order: &[TypeId]) {
    for &id in order {
        // Zero-sized values need no visit, and may be numerous.
        types[id].plain = types[id].size == 0
            || match &types[id].kind {
                Kind::Scalar { valid, .. } => *valid == Valid::Any,
                Kind::Array { element, count } => *count == 0 || types[*element].plain,
                Kind::Alias { of, .. } => types[*of].plain,
                Kind::Struct { fields, .. } => fields.iter().all(|field| types[field.of].plain),
                _ => false,
            };
    }
}
