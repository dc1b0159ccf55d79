//! Verifies a heap with foreign bytes: every root is a value of its type, and no two values share a
//! block (docs/decisions/0024-trust.md).

use super::persist::Persist;
use super::roots::{Described, Describing};
use crate::error::{Cause, ErrorKind, Result};
use crate::heap::{Heap, HeapError, HeapFinding, ReadHeap, Root, TypeInfo};
use crate::types::walk::{Memory, Visitor, Walk};
use crate::types::{Description, Path};

/// Expected types of roots, by name.
#[derive(Debug, Default)]
pub struct RootTypes<'n> {
    all: Vec<(&'n str, Expected<'n>)>,
}

#[derive(Clone, Copy, Debug)]
enum Expected<'n> {
    Typed(Describing),
    Described(TypeInfo<'n>),
}

impl Expected<'_> {
    fn describe(self) -> Described {
        match self {
            Expected::Typed(how) => how.describe(),
            Expected::Described(ty) => Described::new(ty.name, ty.layout),
        }
    }
}

struct Findings {
    base: u64,
    all: Vec<HeapFinding>,
}

impl Visitor for Findings {
    fn wrong(&mut self, address: u64, what: &str, path: &Path<'_, '_>) {
        let offset = address.wrapping_sub(self.base);
        self.all.push(HeapFinding { offset, what: format!("{path}: {what}") });
    }
}

impl<'n> RootTypes<'n> {
    /// No root yet.
    #[must_use]
    pub fn new() -> Self {
        RootTypes::default()
    }

    /// Expects the root `name`, if present, to be a `T`.
    #[must_use]
    pub fn root<'h, T: Persist<'h>>(mut self, name: &'n str) -> Self {
        self.all.push((name, Expected::Typed(Describing::of::<T>())));
        self
    }

    /// Expects the root `name`, if present, to be of a described type ([`Heap::record`]).
    #[must_use]
    pub fn described_root(mut self, name: &'n str, ty: TypeInfo<'n>) -> Self {
        self.all.push((name, Expected::Described(ty)));
        self
    }

    pub(crate) fn described(&self) -> impl Iterator<Item = (&'n str, Described)> {
        self.all.iter().map(|(name, how)| (*name, how.describe()))
    }

    fn names(&self, name: &str) -> bool {
        self.all.iter().any(|(known, _)| *known == name)
    }

    fn walk(
        &self,
        memory: Memory<'_>,
        live: &dyn Fn(u64) -> Option<u64>,
        find: impl Fn(&str, &TypeInfo<'_>) -> Result<Root>,
    ) -> Vec<HeapFinding> {
        let mut found = Findings { base: memory.base, all: Vec::new() };
        let mut roots: Vec<(&str, Root, Description)> = Vec::new();
        for (index, (name, how)) in self.all.iter().enumerate() {
            if self.all[..index].iter().any(|(before, _)| before == name) {
                continue;
            }
            let described = how.describe();
            let what = match (find(name, &described.info()), described.read()) {
                (Ok(root), Ok(of)) => {
                    roots.push((name, root, of));
                    continue;
                }
                (Err(error), _) if error.kind() == ErrorKind::RootMissing => continue,
                (Err(error), _) => error.to_string(),
                (_, Err(error)) => error.to_string(),
            };
            found.all.push(HeapFinding { offset: 0, what: format!("root {name:?}: {what}") });
        }
        let mut walk = Walk::new(memory, live, found);
        for (name, root, of) in &roots {
            walk.root(name, of, root.address as u64, root.size);
        }
        walk.finish().visitor.all
    }
}

impl Heap {
    /// As [`check`](Heap::check), with all findings in these roots' data and blocks: invalid
    /// values, owned addresses of no block in use, blocks with two owners.
    pub fn check_roots(&mut self, types: &RootTypes<'_>) -> Vec<HeapFinding> {
        let mut findings = self.check();
        // The walk relies on disjoint blocks.
        if findings.is_empty() {
            let memory = Memory::of(self.attached().as_slice());
            let live = |address: u64| {
                self.usable_size(std::ptr::without_provenance(address as usize)).ok().map(|len| len as u64)
            };
            findings = types.walk(memory, &live, |name, ty| self.find_root(name, ty));
        }
        findings
    }

    /// Whether typed code alone stored to the object, or it was verified.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.trusted.allows_new()
    }

    /// Lets data be found by type in an object with foreign bytes: safe code had access to them
    /// ([`Object::range_mut`](crate::Object::range_mut) and its like), a C program stored to it, or
    /// its pool was opened [`untrusted`](crate::PoolOptions::untrusted). Examines the whole heap;
    /// if these are all roots, the next psync records the verification durably.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// use indelible::collections::{PVec, RootTypes};
    /// use indelible::{ErrorKind, Heap};
    ///
    /// let mut heap = Heap::format(pool.create_attached("o", 1 << 20)?)?;
    /// heap.root_or_default::<PVec<u64>>("list")?.push(7);
    /// let mut object = heap.into_object();
    /// object.as_mut_slice()[900_000] = 1; // who knows what that was
    ///
    /// let mut heap = Heap::open(object)?;
    /// assert_eq!(heap.root_mut::<PVec<u64>>("list").unwrap_err().kind(), ErrorKind::Untrusted);
    /// heap.verify(&RootTypes::new().root::<PVec<u64>>("list"))?;
    /// assert_eq!(heap.root_mut::<PVec<u64>>("list")?[0], 7);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Damaged`, with the first finding of [`check_roots`](Heap::check_roots): nothing changed.
    pub fn verify(&mut self, types: &RootTypes<'_>) -> Result<()> {
        if let [first, others @ ..] = self.check_roots(types).as_slice() {
            let HeapFinding { offset, what } = first.clone();
            let found = HeapError::Findings { offset, what, more: others.len() };
            return Err(self.attached().error("verify the heap of", Cause::Heap(found)));
        }
        let roots = self.all_roots()?;
        if roots.iter().all(|root| types.names(&root.name)) {
            self.attached_mut().adopt();
            self.trusted.all();
        } else {
            self.trusted.these(roots.iter().map(|root| root.name.as_str()).filter(|name| types.names(name)));
        }
        Ok(())
    }
}

impl ReadHeap {
    /// As [`Heap::check_roots`].
    #[must_use]
    pub fn check_roots(&self, types: &RootTypes<'_>) -> Vec<HeapFinding> {
        let mut findings = self.check();
        if findings.is_empty() {
            let memory = Memory::of(self.object().as_slice());
            let live = |address: u64| {
                self.usable_size(std::ptr::without_provenance(address as usize)).ok().map(|len| len as u64)
            };
            findings = types.walk(memory, &live, |name, ty| self.root(name, ty));
        }
        findings
    }
}
