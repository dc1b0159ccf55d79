//! Verification of a heap with foreign bytes: every root is a value of its type, and no two values have a block in common (docs/decisions/0024-trust.md).

use super::claims::Claims;
use super::persist::{Bounds, Persist};
use super::roots::{Describing, place};
use crate::error::{Cause, ErrorKind, Result};
use crate::heap::{Heap, HeapError, HeapFinding, Place, ReadHeap, Root, TypeInfo};

/// Names of roots, and the types they are expected to be of.
#[derive(Debug, Default)]
pub struct RootTypes<'n> {
    all: Vec<(&'n str, Describing, Claim)>,
}

/// Claims the block of a root and the blocks it owns; fails if the root itself is wrong.
type Claim = fn(Place, &mut Claims<'_>) -> Result<(), HeapError>;

fn claim_root<'h, T: Persist<'h>>(root: Place, claims: &mut Claims<'_>) -> Result<(), HeapError> {
    let at = place::<T>(root, claims.bounds())?;
    if claims.block(root.address as u64, size_of::<T>().max(1) as u64) {
        claims.values(at, 1);
    }
    Ok(())
}

impl<'n> RootTypes<'n> {
    /// No root yet.
    #[must_use]
    pub fn new() -> Self {
        RootTypes::default()
    }

    /// The root `name`, if there is one, is a `T`.
    #[must_use]
    pub fn root<'h, T: Persist<'h>>(mut self, name: &'n str) -> Self {
        self.all.push((name, Describing::of::<T>(), claim_root::<T>));
        self
    }

    fn names(&self, name: &str) -> bool {
        self.all.iter().any(|(known, ..)| *known == name)
    }

    /// Findings in the data of these roots.
    fn walk(
        &self,
        bounds: Bounds,
        live: &dyn Fn(usize) -> Option<usize>,
        find: impl Fn(&str, &TypeInfo<'_>) -> Result<Root>,
    ) -> Vec<HeapFinding> {
        let mut claims = Claims::new(bounds, live);
        let mut findings = Vec::new();
        let mut walked = Vec::new();
        for (name, how, claim) in &self.all {
            if walked.contains(name) {
                continue;
            }
            walked.push(name);
            let result = match find(name, &how.describe().info()) {
                Ok(root) => claim(Place { address: root.address, size: root.size }, &mut claims)
                    .map_err(|error| error.to_string()),
                Err(error) if error.kind() == ErrorKind::RootMissing => Ok(()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(what) = result {
                findings.push(HeapFinding { offset: 0, what: format!("root {name:?}: {what}") });
            }
        }
        findings.extend(claims.finish());
        findings
    }
}

impl Heap {
    /// As [`check`](Heap::check), and all findings in the data of these roots: bytes that are no value of their type, owned
    /// addresses that are no block in use, blocks with two owners. Looks at every block that they own.
    pub fn check_roots(&mut self, types: &RootTypes<'_>) -> Vec<HeapFinding> {
        let mut findings = self.check();
        // The walk of the data relies on blocks that do not overlap.
        if findings.is_empty() {
            let bounds = Bounds { base: self.base().addr(), len: self.size() };
            let live = |address: usize| self.usable_size(std::ptr::without_provenance(address)).ok();
            findings = types.walk(bounds, &live, |name, ty| self.root(name, ty));
        }
        findings
    }

    /// Whether only typed code stored to the object, or it was verified, so that data may be used by type.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.trusted.allows_new()
    }

    /// Lets data be found by type in an object with foreign bytes: safe code had access to them
    /// ([`Object::range_mut`](crate::Object::range_mut) and its like), a C program stored to it, or its pool
    /// was opened [`untrusted`](crate::PoolOptions::untrusted). Looks at the whole heap, and at every block that these roots own.
    ///
    /// If these are all roots of the heap, the next psync records durably that it was verified; otherwise
    /// these roots may be used by type until it is closed.
    ///
    /// ```
    /// # fn main() -> indelible::Result<()> {
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
    /// # Ok(()) }
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
        let roots = self.roots()?;
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
            let bounds = Bounds { base: self.object().as_ptr().addr(), len: self.object().len() };
            let live = |address: usize| self.usable_size(std::ptr::without_provenance(address)).ok();
            findings = types.walk(bounds, &live, |name, ty| self.root(name, ty));
        }
        findings
    }
}
