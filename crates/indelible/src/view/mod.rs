//! Views: objects that list a program's objects and their rights (S2.6 to S2.8), and programs that
//! run in one (S2.18).

mod adopt;
mod attached;
mod classes;
mod entry;
mod layout;
mod memory;
mod placed;
mod start;
mod switched;

pub use attached::{AttachedView, SlotMemory, SlotState};
pub use layout::ViewSlot;
pub use start::{Left, Resumed, resume};
pub use switched::{Inside, SwitchedView, Within, leave_contexts};

use crate::error::{Cause, Error, Result, ViewError};
use crate::far::Rights;
use crate::object::{Object, read_whole};
use crate::pool::Pool;
use indelible_store::table::id_name;
use layout::SLOTS;
use placed::Placed;

/// A view, opened for changes: slots, each with the ID of an object of the same pool and the
/// requested rights. It is an ordinary object: a [`psync`](View::psync) makes all changes durable
/// atomically and visible to processes that have the view [attached](AttachedView).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// use indelible::{AttachedView, Rights, View};
///
/// pool.create("counters", 4096)?;
/// let mut view = View::create(&pool, "work", 100)?; // 100 slots
/// view.set(7, "counters", Rights::READ | Rights::WRITE)?;
/// view.psync()?;
/// drop(view);
///
/// let mut work = AttachedView::attach(&pool, "work")?; // attaches no object yet
/// *work.get_mut::<u64>(7)? += 1;                       // this attaches it
/// work.psync()?;
/// # assert_eq!(*work.get::<u64>(7)?, 1);
/// # Ok::<(), indelible::Error>(())
/// ```
#[derive(Debug)]
pub struct View {
    pool: Pool,
    object: Object,
    placed: Option<Placed>,
}

const CHANGE: &str = "change the view";

impl View {
    /// Makes a view with so many empty slots: an object of 64 bytes and 32 per slot. Durable on
    /// return.
    ///
    /// # Errors
    /// As for [`Pool::create`](crate::Pool::create). `BadSize`: more than 65,536 slots.
    pub fn create(pool: &Pool, name: &str, slots: usize) -> Result<View> {
        if slots > SLOTS.most {
            let cause = ViewError::Slot { slot: slots - 1, slots: SLOTS.most };
            return Err(Error::new("create the view", cause).pool(pool.path()).object(name));
        }
        let mut object = pool.create_attached(name, SLOTS.len(slots) as u64)?;
        let header = SLOTS.header(slots);
        object.range_mut(0..header.len()).copy_from_slice(&header);
        if let Err(error) = object.psync() {
            // No caller keeps an object that is no view.
            drop(object);
            let _ = pool.destroy(name);
            return Err(error);
        }
        Ok(View { pool: pool.clone(), object, placed: None })
    }

    /// Opens a view for changes.
    ///
    /// # Errors
    /// As for [`Pool::attach`](crate::Pool::attach). `Unsuitable`: it is no view; `Version`,
    /// `Damaged`.
    pub fn open(pool: &Pool, name: &str) -> Result<View> {
        let object = pool.attach(name)?;
        layout::parse(object.as_slice()).map_err(|cause| object.error("open the view", cause.into()))?;
        Ok(View { pool: pool.clone(), object, placed: None })
    }

    /// The set slots of a view as of its last psync, even if it is open.
    ///
    /// # Errors
    /// As for [`Pool::attach_read`](crate::Pool::attach_read), except `Held`. `Unsuitable`: it is
    /// no view; `Version`, `Damaged`.
    pub fn read(pool: &Pool, name: &str) -> Result<Vec<ViewSlot>> {
        read(pool, name).map_err(|cause| Error::new("read the view", cause).pool(pool.path()).object(name))
    }

    /// The object's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.object.name()
    }

    /// Number of slots.
    #[must_use]
    pub fn slots(&self) -> usize {
        SLOTS.count(self.object.as_slice()).unwrap_or(0)
    }

    /// The set slots.
    ///
    /// # Errors
    /// `Damaged` since it was opened.
    pub fn list(&self) -> Result<Vec<ViewSlot>> {
        layout::parse(self.object.as_slice()).map_err(|cause| self.error(cause))
    }

    /// Puts an object of the pool into a slot, replacing another. Rights are requests, granted or
    /// refused on use.
    ///
    /// # Errors
    /// `NotFound`: there is no such object. `BadSize`: there is no such slot. `AddressTaken`:
    /// another slot has the object or one at the same addresses. `Unsuitable`: rights other than
    /// [`Rights::READ`], alone or with [`Rights::WRITE`].
    pub fn set(&mut self, slot: usize, target: &str, rights: Rights) -> Result<()> {
        self.put(slot, target, rights, false)
    }

    /// As [`set`](View::set), for an object attached with the view: all of these in one step of the
    /// pool.
    pub fn set_at_once(&mut self, slot: usize, target: &str, rights: Rights) -> Result<()> {
        self.put(slot, target, rights, true)
    }

    fn put(&mut self, slot: usize, target: &str, rights: Rights, at_once: bool) -> Result<()> {
        let of = self.pool.stat(target)?;
        if !rights.are_of_pages() {
            return Err(self.error(ViewError::Rights(rights.to_string())));
        }
        self.expect(slot)?;
        let mut placed = match self.placed.take() {
            Some(placed) => placed,
            None => Placed::read(&self.pool, &self.list()?).map_err(|cause| self.error(cause))?,
        };
        let addresses = of.address..of.address + of.reach;
        let other = placed.in_the_way(&self.pool, slot, &of.id, &addresses);
        if let Ok(None) = other {
            placed.put(slot, of.id, addresses);
        }
        self.placed = Some(placed);
        if let Some(other) = other.map_err(|cause| self.error(cause))? {
            return Err(self.error(ViewError::Overlap(other, slot)));
        }
        self.store(slot, &layout::entry(&ViewSlot { slot, target: of.id, rights, at_once }));
        Ok(())
    }

    /// Empties a slot; returns whether it was set.
    ///
    /// # Errors
    /// `BadSize`: there is no such slot.
    pub fn clear(&mut self, slot: usize) -> Result<bool> {
        self.expect(slot)?;
        let was = self.object.as_slice()[SLOTS.place(slot)].iter().any(|byte| *byte != 0);
        self.store(slot, &[0; 32]);
        if let Some(placed) = &mut self.placed {
            placed.clear(slot);
        }
        Ok(was)
    }

    /// Makes the changes durable atomically, and visible to processes with the view.
    ///
    /// # Errors
    /// As for [`Object::psync`](crate::Object::psync).
    pub fn psync(&mut self) -> Result<()> {
        self.object.psync()
    }

    fn expect(&self, slot: usize) -> Result<()> {
        match self.slots() {
            slots if slot < slots => Ok(()),
            slots => Err(self.error(ViewError::Slot { slot, slots })),
        }
    }

    fn store(&mut self, slot: usize, entry: &[u8]) {
        self.object.range_mut(SLOTS.place(slot)).copy_from_slice(entry);
    }

    fn error(&self, cause: impl Into<Cause>) -> Error {
        self.object.error(CHANGE, cause.into())
    }
}

fn read(pool: &Pool, name: &str) -> Result<Vec<ViewSlot>, Cause> {
    // The object may be longer than its view.
    let bytes = read_whole(pool.inner(), name, SLOTS.most_bytes())?;
    Ok(layout::parse(&bytes.ok_or(ViewError::NotAView)?)?)
}

fn name_of(target: &[u8; 16]) -> String {
    id_name(target)
}
