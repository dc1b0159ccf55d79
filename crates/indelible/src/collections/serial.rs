//! serde for collections, with the feature `serde`. A value that allocates needs a heap while it is
//! read: it has a seed, [`InHeap`], instead of `Deserialize`.

use super::boxed::PBox;
use super::duration::PDuration;
use super::into_persist::IntoPersist;
use super::ip_addr::PIpAddr;
use super::key::StableHash;
use super::option::POption;
use super::persist::Persist;
use super::place::HeapRef;
use super::rc::PRc;
use super::{PBTreeMap, PBTreeSet, PBinaryHeap, PHashMap, PHashSet, PString, PVec, PVecDeque};
use crate::error::Result;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// A value that can be deserialised into a heap. Structs implement it by a serialised form of their
/// own, or field by field.
pub trait DeserializeIn<'h>: Sized {
    /// The value, with its blocks allocated in `heap`.
    ///
    /// # Errors
    /// The deserialiser's; `HeapFull`, as its custom error: nothing is left in the heap.
    fn deserialize_in<'de, D: Deserializer<'de>>(
        deserializer: D,
        heap: HeapRef<'h>,
    ) -> std::result::Result<Self, D::Error>;
}

/// The seed of a `T` in a heap.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # let mut heap = pool.heap("o", 1 << 20)?;
/// use indelible::collections::{InHeap, PHashMap, PString, PVec};
/// use serde::de::DeserializeSeed;
///
/// type Plants<'h> = PHashMap<'h, PString<'h>, PVec<'h, u32>>;
///
/// let text = r#"{"rose":[1,2],"fern":[]}"#;
/// let (plants, place) = heap.root_and_heap::<Plants>("plants")?;
/// *plants = InHeap::<Plants>::new(place).deserialize(&mut serde_json::Deserializer::from_str(text))?;
/// assert_eq!(plants["rose"][1], 2);
/// assert_eq!(serde_json::to_value(&*plants)?, serde_json::from_str::<serde_json::Value>(text)?);
/// heap.psync()?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct InHeap<'h, T> {
    heap: HeapRef<'h>,
    value: PhantomData<fn() -> T>,
}

impl<'h, T> InHeap<'h, T> {
    /// The seed in this heap.
    #[must_use]
    pub fn new(heap: HeapRef<'h>) -> Self {
        InHeap { heap, value: PhantomData }
    }
}

impl<'de, 'h, T: DeserializeIn<'h>> DeserializeSeed<'de> for InHeap<'h, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<T, D::Error> {
        T::deserialize_in(deserializer, self.heap)
    }
}

macro_rules! plain {
    ($($ty:ty)*) => { $(
        impl<'h> DeserializeIn<'h> for $ty {
            fn deserialize_in<'de, D: Deserializer<'de>>(
                deserializer: D,
                _: HeapRef<'h>,
            ) -> std::result::Result<Self, D::Error> {
                serde::Deserialize::deserialize(deserializer)
            }
        }
    )* };
}

plain!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64 bool char);

macro_rules! as_std {
    ($($ty:ident: $std:ty;)*) => { $(
        impl Serialize for $ty {
            fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                <$std>::from(*self).serialize(serializer)
            }
        }

        impl<'h> DeserializeIn<'h> for $ty {
            fn deserialize_in<'de, D: Deserializer<'de>>(
                deserializer: D,
                _: HeapRef<'h>,
            ) -> std::result::Result<Self, D::Error> {
                <$std as serde::Deserialize>::deserialize(deserializer).map($ty::from)
            }
        }
    )* };
}

as_std! {
    PDuration: std::time::Duration;
    PIpAddr: std::net::IpAddr;
}

struct Into<'h, C, F> {
    empty: C,
    heap: HeapRef<'h>,
    add: F,
    expecting: &'static str,
}

impl<C, F> Into<'_, C, F> {
    fn expects(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }
}

struct Sequence<'h, T, C, F>(Into<'h, C, F>, PhantomData<fn() -> T>);

impl<'de, 'h, T: DeserializeIn<'h>, C, F: FnMut(&mut C, T) -> Result<()>> Visitor<'de>
    for Sequence<'h, T, C, F>
{
    type Value = C;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expects(f)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> std::result::Result<C, A::Error> {
        let Into { mut empty, heap, mut add, .. } = self.0;
        while let Some(value) = access.next_element_seed(InHeap::<T>::new(heap))? {
            add(&mut empty, value).map_err(A::Error::custom)?;
        }
        Ok(empty)
    }
}

struct Pairs<'h, K, V, C, F>(Into<'h, C, F>, PhantomData<fn() -> (K, V)>);

impl<'de, 'h, K: DeserializeIn<'h>, V: DeserializeIn<'h>, C, F: FnMut(&mut C, K, V) -> Result<()>>
    Visitor<'de> for Pairs<'h, K, V, C, F>
{
    type Value = C;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expects(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> std::result::Result<C, A::Error> {
        let Into { mut empty, heap, mut add, .. } = self.0;
        while let Some(key) = access.next_key_seed(InHeap::<K>::new(heap))? {
            let value = access.next_value_seed(InHeap::<V>::new(heap))?;
            add(&mut empty, key, value).map_err(A::Error::custom)?;
        }
        Ok(empty)
    }
}

macro_rules! sequences {
    ($($container:ident: $($bound:ident)*, $add:expr;)*) => { $(
        impl<'h, T: Persist<'h> + Serialize> Serialize for $container<'h, T> {
            fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serializer.collect_seq(self.iter())
            }
        }

        impl<'h, T: Persist<'h> + DeserializeIn<'h> $(+ $bound)*> DeserializeIn<'h> for $container<'h, T> {
            fn deserialize_in<'de, D: Deserializer<'de>>(
                deserializer: D,
                heap: HeapRef<'h>,
            ) -> std::result::Result<Self, D::Error> {
                let (empty, add) = ($container::new_in(heap), $add);
                let into = Into { empty, heap, add, expecting: "a sequence" };
                deserializer.deserialize_seq(Sequence::<T, _, _>(into, PhantomData))
            }
        }
    )* };
}

sequences! {
    PVec: , |all: &mut PVec<'h, T>, value: T| all.try_push(value);
    PVecDeque: , |all: &mut PVecDeque<'h, T>, value: T| all.try_push_back(value);
    PBinaryHeap: Ord, |all: &mut PBinaryHeap<'h, T>, value: T| all.try_push(value);
    PHashSet: StableHash Eq, |all: &mut PHashSet<'h, T>, value: T| all.try_insert(value).map(drop);
    PBTreeSet: Ord, |all: &mut PBTreeSet<'h, T>, value: T| all.try_insert(value).map(drop);
}

macro_rules! maps {
    ($($container:ident: $($bound:ident)*;)*) => { $(
        impl<'h, K: Persist<'h> + Serialize, V: Persist<'h> + Serialize> Serialize for $container<'h, K, V> {
            fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serializer.collect_map(self.iter())
            }
        }

        impl<'h, K, V> DeserializeIn<'h> for $container<'h, K, V>
        where
            K: Persist<'h> + DeserializeIn<'h> $(+ $bound)*,
            V: Persist<'h> + DeserializeIn<'h>,
        {
            fn deserialize_in<'de, D: Deserializer<'de>>(
                deserializer: D,
                heap: HeapRef<'h>,
            ) -> std::result::Result<Self, D::Error> {
                let add = |all: &mut Self, key: K, value: V| all.try_insert(key, value).map(drop);
                let into = Into { empty: $container::new_in(heap), heap, add, expecting: "a map" };
                deserializer.deserialize_map(Pairs::<K, V, _, _>(into, PhantomData))
            }
        }
    )* };
}

maps! {
    PHashMap: StableHash Eq;
    PBTreeMap: Ord;
}

impl Serialize for PString<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

struct Text<'h>(HeapRef<'h>);

impl<'h> Visitor<'_> for Text<'h> {
    type Value = PString<'h>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> std::result::Result<PString<'h>, E> {
        text.into_persist(self.0).map_err(E::custom)
    }
}

impl<'h> DeserializeIn<'h> for PString<'h> {
    fn deserialize_in<'de, D: Deserializer<'de>>(
        deserializer: D,
        heap: HeapRef<'h>,
    ) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_str(Text(heap))
    }
}

impl<'h, T: Persist<'h> + Serialize> Serialize for PBox<'h, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        T::serialize(self, serializer)
    }
}

impl<'h, T: Persist<'h> + DeserializeIn<'h>> DeserializeIn<'h> for PBox<'h, T> {
    fn deserialize_in<'de, D: Deserializer<'de>>(
        deserializer: D,
        heap: HeapRef<'h>,
    ) -> std::result::Result<Self, D::Error> {
        PBox::try_new_in(T::deserialize_in(deserializer, heap)?, heap).map_err(D::Error::custom)
    }
}

/// As the value itself: shared owners come back separate.
impl<'h, T: Persist<'h> + Serialize> Serialize for PRc<'h, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        T::serialize(self, serializer)
    }
}

impl<'h, T: Persist<'h> + DeserializeIn<'h>> DeserializeIn<'h> for PRc<'h, T> {
    fn deserialize_in<'de, D: Deserializer<'de>>(
        deserializer: D,
        heap: HeapRef<'h>,
    ) -> std::result::Result<Self, D::Error> {
        PRc::try_new_in(T::deserialize_in(deserializer, heap)?, heap).map_err(D::Error::custom)
    }
}

struct Maybe<'h, T>(InHeap<'h, T>);

impl<'de, 'h, T: DeserializeIn<'h>> Visitor<'de> for Maybe<'h, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or none")
    }

    fn visit_none<E: Error>(self) -> std::result::Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> std::result::Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Option<T>, D::Error> {
        self.0.deserialize(deserializer).map(Some)
    }
}

impl<'h, T: DeserializeIn<'h>> DeserializeIn<'h> for Option<T> {
    fn deserialize_in<'de, D: Deserializer<'de>>(
        deserializer: D,
        heap: HeapRef<'h>,
    ) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_option(Maybe(InHeap::new(heap)))
    }
}

impl<T: Serialize> Serialize for POption<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.as_ref().serialize(serializer)
    }
}

impl<'h, T: DeserializeIn<'h>> DeserializeIn<'h> for POption<T> {
    fn deserialize_in<'de, D: Deserializer<'de>>(
        deserializer: D,
        heap: HeapRef<'h>,
    ) -> std::result::Result<Self, D::Error> {
        Ok(Option::<T>::deserialize_in(deserializer, heap)?.into())
    }
}
