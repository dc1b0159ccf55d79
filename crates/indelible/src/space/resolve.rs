//! The object that an entry names (S2.11).

use super::attached::Attached;
use super::{FOLLOW, Space};
use crate::error::{FarError, Result};
use crate::far::FarTarget;
use crate::heap::built_in;
use crate::pool::Pool;

/// Finds objects by names: in a folder of names, a database, an environment.
///
/// A closure suffices. It may return another name, of any resolver, which is resolved in turn, up
/// to eight times.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// use indelible::{FarTarget, Pool, Space};
///
/// let mut space = Space::new();
/// space.add(&pool);
/// space.add_resolver("role", |_: &[Pool], name: &str| {
///     let object = if name == "primary" { "data-2" } else { return Ok(None) };
///     Ok(Some(FarTarget::Name { resolver: "name".into(), name: object.into() }))
/// });
/// # Ok::<(), indelible::Error>(())
/// ```
pub trait Resolver: Send + Sync {
    /// The object of that name; `None`: absent.
    ///
    /// # Errors
    /// Any failure to find out.
    fn resolve(&self, pools: &[Pool], name: &str) -> Result<Option<FarTarget>>;
}

impl<F: Fn(&[Pool], &str) -> Result<Option<FarTarget>> + Send + Sync> Resolver for F {
    fn resolve(&self, pools: &[Pool], name: &str) -> Result<Option<FarTarget>> {
        self(pools, name)
    }
}

const MOST: usize = 8;

impl Space {
    /// Resolves entries with this resolver's name, replacing a built-in or earlier one. Built in
    /// are:
    ///
    /// - `name`: the object of that name in the first pool that has one
    /// - `pool`: `POOL:NAME`, the object `NAME` in the first pool with the label or the path `POOL`
    /// - `latest`: the most recently created object whose name begins with that text, the last by
    ///   name among equals; snapshots do not count
    pub fn add_resolver(&mut self, name: &str, resolver: impl Resolver + 'static) {
        self.resolvers.insert(name.to_owned(), Box::new(resolver));
        self.forget();
    }

    pub(super) fn resolve(&self, home: &Attached, first: &FarTarget) -> Result<[u8; 16]> {
        if let FarTarget::Object(id) = first {
            return Ok(*id);
        }
        let mut target = first.clone();
        for _ in 0..=MOST {
            let (resolver, name) = match target.id() {
                Ok(id) => return Ok(id),
                Err(names) => names,
            };
            let found = match self.resolvers.get(resolver) {
                Some(resolver) => resolver.resolve(&self.pools, name)?,
                None => match built_in(&self.pools, resolver, name)? {
                    Some(found) => found,
                    None => {
                        let why = format!("the space has no resolver {resolver:?}");
                        return Err(home.error(FOLLOW, FarError::Name { target: target.to_string(), why }));
                    }
                },
            };
            target = found.ok_or_else(|| {
                let why = "there is no such object".to_owned();
                home.error(FOLLOW, FarError::Name { target: target.to_string(), why })
            })?;
        }
        Err(home.error(FOLLOW, FarError::Cycle { first: first.to_string(), most: MOST }))
    }
}
