//! Security contexts: objects that list a program's rights to objects (S2.15, S2.16).
//!
//! A context limits the rights requested where an object is attached for a
//! [view](crate::AttachedView) or reached by a pointer in a [space](crate::Space). It stops a
//! program's mistakes, not deliberate access (SAFETY.md).

mod grants;
mod layout;

pub(crate) use grants::Grants;
pub use layout::{Rule, RuleKind, Rules};

use crate::error::{Cause, Error, Result, SecurityError};
use crate::far::Rights;
use crate::object::{Object, read_whole};
use crate::pool::Pool;
use indelible_store::table::{id_name, parse_id};
use layout::ENTRIES;
use std::collections::{BTreeMap, BTreeSet};

/// A security context, opened for changes: rights to objects, by ID.
///
/// It has default rights, none at first, and entries: *capabilities* state the rights to one
/// object, *masks* limit them, and *delegations* include another context's rights, as for groups
/// and their members. To an object it gives
///
/// ```text
/// ((capability, or else default)  or  (each delegated context's rights and the delegation's))  and  mask
/// ```
///
/// A program with several contexts has the union of their rights.
///
/// It is an ordinary object: a [`psync`](SecurityContext::psync) makes all changes durable
/// atomically. Programs see changes when they attach more objects, and adopt all by
/// [`AttachedView::adopt`](crate::AttachedView::adopt).
///
/// ```
/// # fn main() -> indelible::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// use indelible::{AttachedView, ErrorKind, Rights, SecurityContext, View};
///
/// let both = Rights::READ | Rights::WRITE;
/// pool.create("prices", 4096)?;
/// pool.create("orders", 4096)?;
/// let mut view = View::create(&pool, "shop", 2)?;
/// view.set(0, "prices", both)?;
/// view.set(1, "orders", both)?;
/// view.psync()?;
///
/// let mut clerk = SecurityContext::create(&pool, "clerk", 31)?; // room for 31 entries
/// clerk.set_default(Rights::READ)?;
/// clerk.allow("orders", both)?;
/// clerk.psync()?;
///
/// let mut shop = AttachedView::attach_in(&pool, "shop", &["clerk"])?;
/// *shop.get_mut::<u64>(1)? += 1;
/// assert_eq!(*shop.get::<u64>(0)?, 0);
/// assert_eq!(shop.get_mut::<u64>(0).unwrap_err().kind(), ErrorKind::Denied);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SecurityContext {
    pool: Pool,
    object: Object,
    places: Option<Places>,
}

#[derive(Debug)]
struct Places {
    numbers: BTreeMap<(RuleKind, [u8; 16]), usize>,
    free: BTreeSet<usize>,
}

impl Places {
    fn of(entries: &[Option<Rule>]) -> Places {
        let numbered = || entries.iter().enumerate();
        let used = numbered().filter_map(|(number, rule)| Some((rule.as_ref()?, number)));
        let numbers = used.map(|(rule, number)| ((rule.kind, rule.target), number)).collect();
        let free = numbered().filter(|(_, rule)| rule.is_none()).map(|(number, _)| number).collect();
        Places { numbers, free }
    }
}

const CHANGE: &str = "change the security context";

impl SecurityContext {
    /// Makes a security context that gives nothing, with room for so many entries: an object of 64
    /// bytes and 128 per entry. Durable on return.
    ///
    /// # Errors
    /// As for [`Pool::create`](crate::Pool::create). `BadSize`: more than 65,536 entries.
    pub fn create(pool: &Pool, name: &str, entries: usize) -> Result<SecurityContext> {
        if entries > ENTRIES.most {
            let cause = SecurityError::TooLarge { entries, most: ENTRIES.most };
            return Err(Error::new("create the security context", cause).pool(pool.path()).object(name));
        }
        let mut object = pool.create_attached(name, ENTRIES.len(entries) as u64)?;
        let header = ENTRIES.header(entries);
        object.range_mut(0..header.len()).copy_from_slice(&header);
        if let Err(error) = object.psync() {
            drop(object);
            let _ = pool.destroy(name);
            return Err(error);
        }
        Ok(SecurityContext { pool: pool.clone(), object, places: None })
    }

    /// Opens a security context for changes.
    ///
    /// # Errors
    /// As for [`Pool::attach`](crate::Pool::attach). `Unsuitable`: it is no security context;
    /// `Version`, `Damaged`.
    pub fn open(pool: &Pool, name: &str) -> Result<SecurityContext> {
        let object = pool.attach(name)?;
        let parsed = layout::parse(object.as_slice());
        parsed.map_err(|cause| object.error("open the security context", cause.into()))?;
        Ok(SecurityContext { pool: pool.clone(), object, places: None })
    }

    /// The rules of a security context as of its last psync, even if it is open.
    ///
    /// # Errors
    /// As for [`Pool::attach_read`](crate::Pool::attach_read), except `Held`. `Unsuitable`: it is
    /// no security context; `Version`, `Damaged`.
    pub fn read(pool: &Pool, name: &str) -> Result<Rules> {
        let read = read(pool, name);
        read.map_err(|cause| Error::new("read the security context", cause).pool(pool.path()).object(name))
    }

    /// The rights of a program with these security contexts to an object; `None`: none at all.
    ///
    /// # Errors
    /// `NotFound`: there is no such object. As for
    /// [`AttachedView::attach_in`](crate::AttachedView::attach_in).
    pub fn rights<S: AsRef<str>>(pool: &Pool, contexts: &[S], object: &str) -> Result<Option<Rights>> {
        let id = pool.stat(object)?.id;
        let grants = Grants::of(pool, contexts);
        let grants =
            grants.map_err(|cause| Error::new("read the security contexts", cause).pool(pool.path()))?;
        Ok(grants.to(&id).some())
    }

    /// The object's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.object.name()
    }

    /// Entries at most.
    #[must_use]
    pub fn room(&self) -> usize {
        ENTRIES.count(self.object.as_slice()).unwrap_or(0)
    }

    /// Its contents.
    ///
    /// # Errors
    /// `Damaged` since it was opened.
    pub fn rules(&self) -> Result<Rules> {
        layout::parse(self.object.as_slice()).map_err(|cause| self.error(cause))
    }

    /// Sets the rights to all objects without a capability; `None`: none at all.
    ///
    /// # Errors
    /// `Unsuitable`: rights other than [`Rights::READ`], alone or with [`Rights::WRITE`].
    pub fn set_default(&mut self, rights: impl Into<Option<Rights>>) -> Result<()> {
        let (at, byte) = layout::default_rights(self.expect_possible(rights.into())?);
        self.object.range_mut(at..at + 1)[0] = byte;
        Ok(())
    }

    /// Sets a capability, the rights to one object; `None`: none at all, whatever the default.
    ///
    /// # Errors
    /// `NotFound`: there is no such object; one of another pool is named by its ID, as `id:` and 32
    /// hexadecimal digits. `Unsuitable`: rights other than [`Rights::READ`], alone or with
    /// [`Rights::WRITE`]. `BadSize`: there is no room for another entry.
    pub fn allow(&mut self, object: &str, rights: impl Into<Option<Rights>>) -> Result<()> {
        let target = self.target(object)?;
        self.put(RuleKind::Capability, target, rights.into())
    }

    /// Sets a mask: limits the context's rights to an object, including delegated ones.
    ///
    /// # Errors
    /// As for [`allow`](SecurityContext::allow).
    pub fn mask(&mut self, object: &str, rights: impl Into<Option<Rights>>) -> Result<()> {
        let target = self.target(object)?;
        self.put(RuleKind::Mask, target, rights.into())
    }

    /// Sets a delegation: another security context's rights count here, limited to these.
    ///
    /// # Errors
    /// As for [`allow`](SecurityContext::allow). `Unsuitable`: the other one is no security
    /// context, or is delegated from this one.
    pub fn delegate(&mut self, context: &str, rights: impl Into<Option<Rights>>) -> Result<()> {
        let target = self.pool.stat(context)?.id;
        // Delegated by ID, which later lookups use.
        let from = Grants::of(&self.pool, &[name_of(&target)]).map_err(|cause| self.error(cause))?;
        if from.has_read(&self.object.id()?) {
            return Err(self.error(SecurityError::Circle));
        }
        self.put(RuleKind::Delegation, target, rights.into())
    }

    /// Removes all entries about an object, which may be gone (as `id:` and its ID in 32
    /// hexadecimal digits); returns their number.
    ///
    /// # Errors
    /// `NotFound`: there is no such object.
    pub fn clear(&mut self, target: &str) -> Result<usize> {
        let target = self.target(target)?;
        self.places()?;
        let Some(places) = &mut self.places else { return Ok(0) };
        let numbers = RuleKind::ALL.into_iter().filter_map(|kind| places.numbers.remove(&(kind, target)));
        let numbers: Vec<usize> = numbers.collect();
        places.free.extend(&numbers);
        numbers.iter().for_each(|number| self.object.range_mut(ENTRIES.place(*number)).fill(0));
        Ok(numbers.len())
    }

    /// Makes the changes durable atomically.
    ///
    /// # Errors
    /// As for [`Object::psync`](crate::Object::psync).
    pub fn psync(&mut self) -> Result<()> {
        self.object.psync()
    }

    /// ID of an object, which may be gone if named by ID.
    fn target(&self, name: &str) -> Result<[u8; 16]> {
        match parse_id(name) {
            Some(id) => Ok(id),
            None => Ok(self.pool.stat(name)?.id),
        }
    }

    fn put(&mut self, kind: RuleKind, target: [u8; 16], rights: Option<Rights>) -> Result<()> {
        let rule = Rule { kind, target, rights: self.expect_possible(rights)? };
        let room = self.room();
        let places = self.places()?;
        let number = match places.numbers.get(&(kind, target)) {
            Some(number) => Some(*number),
            None => places.free.pop_first().inspect(|number| {
                places.numbers.insert((kind, target), *number);
            }),
        };
        let number = number.ok_or_else(|| self.error(SecurityError::Full(room)))?;
        self.object.range_mut(ENTRIES.place(number)).copy_from_slice(&layout::entry(&rule));
        Ok(())
    }

    fn places(&mut self) -> Result<&mut Places> {
        let places = match self.places.take() {
            Some(places) => places,
            None => Places::of(&layout::slots(self.object.as_slice()).map_err(|cause| self.error(cause))?),
        };
        Ok(self.places.insert(places))
    }

    fn expect_possible(&self, rights: Option<Rights>) -> Result<Option<Rights>> {
        match rights.filter(|rights| !rights.are_of_pages()) {
            Some(other) => Err(self.error(SecurityError::Rights(other.to_string()))),
            None => Ok(rights),
        }
    }

    fn error(&self, cause: impl Into<Cause>) -> Error {
        self.object.error(CHANGE, cause.into())
    }
}

fn read(pool: &Pool, name: &str) -> Result<Rules, Cause> {
    // The object may be longer than its context.
    let bytes = read_whole(pool.inner(), name, ENTRIES.most_bytes())?;
    Ok(layout::parse(&bytes.ok_or(SecurityError::NotAContext)?)?)
}

fn name_of(id: &[u8; 16]) -> String {
    id_name(id)
}
