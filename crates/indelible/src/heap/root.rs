use super::error::{HeapError, Result};
use crate::types::{Description, own};

/// A root's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeInfo<'a> {
    /// Its name, up to 255 bytes.
    pub name: &'a str,
    /// 128 bits that differ if names, types, offsets or sizes do.
    pub fingerprint: u128,
    /// Its layout's description (FORMAT.md, section 10), by which programs without the type walk
    /// its values; or a text for people. Up to 1 MiB.
    pub layout: &'a str,
}

/// A root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its name.
    pub name: String,
    /// Address of the data.
    pub address: usize,
    /// Bytes of the data.
    pub size: u64,
    /// Name of its type.
    pub type_name: String,
    /// The type's fingerprint.
    pub fingerprint: u128,
    /// The type's layout; [`lines`](Root::lines) is for people.
    pub layout: String,
}

impl<'a> TypeInfo<'a> {
    /// A type by its description, with its fingerprint.
    #[doc(hidden)]
    #[must_use]
    pub fn described(name: &'a str, description: &'a str) -> TypeInfo<'a> {
        TypeInfo { name, fingerprint: crate::types::fingerprint(description), layout: description }
    }

    /// The layout for people.
    #[must_use]
    pub fn lines(&self) -> String {
        lines(self.layout)
    }

    /// Whether both types have the same values, also behind described pointers.
    #[doc(hidden)]
    #[must_use]
    pub fn is_that_of(&self, other: &TypeInfo<'_>) -> bool {
        (self.fingerprint, self.name) == (other.fingerprint, other.name)
            && target_difference(self.layout, other.layout).is_none()
    }
}

fn target_difference(heap: &str, program: &str) -> Option<String> {
    let has_targets = |layout: &str| own(layout).len() < layout.len();
    if heap == program || !has_targets(heap) || !has_targets(program) {
        return None;
    }
    let (heap, program) = (Description::parse(heap).ok()?, Description::parse(program).ok()?);
    heap.target_difference(&program)
}

impl Root {
    /// Its type.
    #[doc(hidden)]
    #[must_use]
    pub fn info(&self) -> TypeInfo<'_> {
        TypeInfo { name: &self.type_name, fingerprint: self.fingerprint, layout: &self.layout }
    }

    /// The layout for people.
    #[must_use]
    pub fn lines(&self) -> String {
        lines(&self.layout)
    }

    pub(crate) fn description(&self) -> Option<Description> {
        self.read_description().ok()
    }

    pub(super) fn read_description(&self) -> Result<Description, String> {
        let of = Description::parse(&self.layout).map_err(|error| error.to_string())?;
        match crate::types::fingerprints(&self.layout).contains(&self.fingerprint) {
            true => Ok(of),
            false => Err(format!("the description is not that of fingerprint {:032x}", self.fingerprint)),
        }
    }

    pub(crate) fn is(&self, ty: &TypeInfo<'_>) -> bool {
        self.info().is_that_of(ty)
    }

    pub(super) fn expect(self, wanted: &TypeInfo<'_>) -> Result<Root> {
        match self.is(wanted) {
            true => Ok(self),
            false => Err(HeapError::RootType { difference: self.difference(wanted), name: self.name }),
        }
    }

    pub(crate) fn difference(&self, wanted: &TypeInfo<'_>) -> String {
        let same = self.type_name == wanted.name && own(&self.layout) == own(wanted.layout);
        let target = target_difference(&self.layout, wanted.layout).filter(|_| same);
        let what = match (Description::parse(&self.layout), Description::parse(wanted.layout)) {
            _ if target.is_some() => target
                .map(|first| format!(" behind a pointer; first (here the heap, there the program), {first}")),
            _ if same => {
                Some("; the same of another version, which hashed keys of bytes in another way".to_owned())
            }
            (Ok(heap), Ok(program)) => heap
                .difference(&program)
                .map(|first| format!("; first (here the heap, there the program), {first}")),
            _ => None,
        };
        format!(
            "{}{}: in the heap is\n{} (fingerprint {:032x})\n{}\nand the program has\n{} (fingerprint {:032x})\n{}\n",
            if self.type_name == wanted.name { "another layout" } else { "another type" },
            what.unwrap_or_default(),
            self.type_name,
            self.fingerprint,
            self.lines(),
            wanted.name,
            wanted.fingerprint,
            wanted.lines(),
        )
    }
}

fn lines(layout: &str) -> String {
    match Description::parse(layout) {
        Ok(of) => of.lines(),
        Err(_) => layout.to_owned(),
    }
}
