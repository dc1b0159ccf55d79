//! Types that contain addresses: such keys of hash tables may hash by address, which objects that
//! travel must not.

use super::{Description, Kind, Pointer, Type, TypeId};

impl Description {
    pub fn keys_with_pointers(&self) -> Option<String> {
        let key = self.types.iter().find_map(|ty| match ty.kind {
            Kind::Hashed { key, .. } if self.has_pointers(key) => Some(key),
            _ => None,
        });
        key.map(|key| self.name(key))
    }

    pub fn with_addresses(&self) -> Option<String> {
        let has = |ty: &Type| match &ty.kind {
            Kind::Pointer { how, .. } => !matches!(how, Pointer::Relative | Pointer::Far),
            Kind::Scalar { .. }
            | Kind::Array { .. }
            | Kind::Struct { .. }
            | Kind::Enum { .. }
            | Kind::Alias { .. }
            | Kind::Optional(_) => false,
            Kind::Text
            | Kind::Vector(_)
            | Kind::Ring(_)
            | Kind::Boxed { .. }
            | Kind::Shared { .. }
            | Kind::Hashed { .. }
            | Kind::Ordered { .. }
            | Kind::Opaque { .. }
            | Kind::Extensions
            | Kind::Lock { .. } => true,
        };
        self.types.iter().position(has).map(|id| self.name(id))
    }

    fn has_pointers(&self, id: TypeId) -> bool {
        let (mut seen, mut pending) = (vec![false; self.types.len()], vec![id]);
        while let Some(id) = pending.pop() {
            if std::mem::replace(&mut seen[id], true) {
                continue;
            }
            match &self.types[id].kind {
                Kind::Pointer { .. } => return true,
                Kind::Scalar { .. } | Kind::Text | Kind::Opaque { .. } | Kind::Extensions => {}
                Kind::Array { element: of, .. }
                | Kind::Vector(of)
                | Kind::Ring(of)
                | Kind::Optional(of)
                | Kind::Alias { of, .. }
                | Kind::Lock { value: of, .. }
                | Kind::Shared { value: of, .. }
                | Kind::Boxed { value: of, .. } => pending.push(*of),
                Kind::Hashed { key, value, .. } | Kind::Ordered { key, value } => {
                    pending.extend([*key, *value])
                }
                Kind::Struct { fields, .. } => pending.extend(fields.iter().map(|field| field.of)),
                Kind::Enum { variants, .. } => {
                    pending.extend(variants.iter().flat_map(|variant| &variant.fields).map(|field| field.of));
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::Description;

    #[test]
    fn addresses_are_found() {
        let first = |words: &str| Description::parse(words).unwrap().with_addresses();
        assert_eq!(first("a:24:8 { x@0:8 far b y@8:8 relative *mut u8 z@16:8 [8] u8 } "), None);
        assert_eq!(first("[2] PVec u8 ").as_deref(), Some("PVec<u8>"));
        assert_eq!(first("far b -> 0 b:8:8 { x@0:8 *mut u8 } ").as_deref(), Some("*mut u8"));
        assert_eq!(first("a:8:8 { x@0:8 std::map<int>:8:8 < i32 > } ").as_deref(), Some("std::map<int>"));
    }

    #[test]
    fn pointers_in_keys_are_found() {
        let keys = |words: &str| Description::parse(words).unwrap().keys_with_pointers();
        assert_eq!(keys("PHashMap u64 *mut u8 "), None);
        assert_eq!(keys("PHashMap PVec PString PBTreeMap u64 *mut u8 "), None);
        assert_eq!(keys("PHashSet PVec key:8:8 { at@0:8 *const u8 } ").as_deref(), Some("PVec<key>"));
    }
}
