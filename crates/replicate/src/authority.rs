//! Ownership: which process may ship to a prefix, and where each epoch ends.
//!
//! Invariants:
//! 1. `epoch/<n>` is put if absent: an epoch has one owner.
//! 2. Segments of an epoch have the numbers 1, 2, …, each put if absent after the one before was.
//! 3. An epoch ends by a boundary record, put if absent under the name of the next segment. From
//!    then on its owner can put nothing that counts: that name is taken, and later ones are never
//!    tried before it.
//! 4. `epoch/<n + 1>` is put after the end of epoch `n`, and says where that is.
//!
//! So two owners never both ship. No clock decides. The lease only keeps an owner that
//! lives from being ended by one that comes: the other waits until the count in `lease` stood still
//! for the lease's length by its own clock.

use crate::bucket::{Bucket, Trouble};
use crate::clock::Clock;
use crate::decode::{Change, Segment};
use crate::error::{ReplicateError, Result};
use crate::format::{hash, hex};
use crate::history::{History, numbers};
use crate::names::{self, Position};
use crate::patient::{Patient, Waits};
use crate::records::{Boundary, EpochRecord, Lease, decode, encode, is_boundary};
use crate::replica::Replica;
use indelible::Pool;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Beats in a lease: one may be late, and one lost.
const BEATS: u32 = 3;

/// A claimant, and how it claims.
#[derive(Clone, Debug)]
pub struct Claim {
    /// ID of the pool.
    pub pool: [u8; 16],
    /// The claimant, for people: machine and process.
    pub owner: String,
    /// Ends an owner that lives, without waiting for its lease.
    pub take_over: bool,
    /// The pool was restored from this prefix, and takes the place of the first: its ID may be
    /// another if it has an object of the store's pool.
    pub promote: bool,
    /// IDs of the pool's objects.
    pub objects: BTreeSet<[u8; 16]>,
}

impl Claim {
    /// A claim for a pool by `owner`, that waits for the end of a lease.
    ///
    /// # Errors
    /// Those of the pool's list.
    pub fn of(pool: &Pool, owner: &str) -> Result<Claim> {
        let objects = pool.list().map(|stat| Ok(stat?.id)).collect::<Result<_>>()?;
        Ok(Claim { pool: pool.id(), owner: owner.to_owned(), take_over: false, promote: false, objects })
    }
}

/// Decides which process ships. An implementation over another service keeps the invariants of
/// this module.
pub trait Authority: Send {
    /// The last epoch and its last segment; `None`: no process has shipped.
    fn newest(&mut self) -> Result<Option<Position>>;

    /// Takes the next epoch, after the end of the last; returns its place before the first segment.
    ///
    /// # Errors
    /// `Owned`: an owner lives, or another claimant was first. `OtherPool`, `Unrelated`; the store's.
    fn claim(&mut self, claim: &Claim) -> Result<Position>;

    /// ID of the store, the same for each claimant; empty before the claim.
    fn store_id(&self) -> String;

    /// Says that the owner lives, if that is due.
    ///
    /// # Errors
    /// `Fenced`; `Missing`: the record of its epoch is gone, so that nothing shipped could be
    /// restored.
    fn renew(&mut self) -> Result<()>;

    /// Reads the newest moment before the claimed epoch; `None`: there is none of this pool.
    ///
    /// # Errors
    /// `Missing`, `Damaged`, `Foreign`, `TooLong`: no run may go on from it. The store's.
    fn replica(&mut self) -> Result<Option<Replica>>;

    /// Ends an epoch; returns its last segment.
    fn fence(&mut self, epoch: u64) -> Result<Position>;

    /// Puts the segment at the next place; it counts once this returns. Waits for a store that does
    /// not answer.
    ///
    /// # Errors
    /// `Fenced`, `Foreign`; `Refused`; `Stopped`: it may be there.
    fn publish(&mut self, at: Position, segment: &[u8]) -> Result<()>;

    /// Gives the epoch up, so that the next claimant does not wait.
    fn release(&mut self);
}

/// Ownership by put-if-absent of the store itself.
pub struct StoreAuthority<'a> {
    bucket: &'a dyn Bucket,
    clock: &'a dyn Clock,
    lease: Duration,
    held: Option<Held>,
}

struct Held {
    /// Of the record that began the first epoch.
    store: String,
    pool: [u8; 16],
    epoch: u64,
    owner: String,
    beat: u64,
    /// By the clock.
    renewed: Duration,
    shipped: u64,
}

impl<'a> StoreAuthority<'a> {
    /// An authority whose leases have this length, of a second at least.
    #[must_use]
    pub fn new(bucket: &'a dyn Bucket, clock: &'a dyn Clock, lease: Duration) -> Self {
        StoreAuthority { bucket, clock, lease: lease.max(Duration::from_secs(1)), held: None }
    }

    fn store(&self) -> Patient<'a> {
        Patient { bucket: self.bucket, clock: self.clock }
    }

    /// Waits until the owner's count stands still.
    fn outlast(&self, record: &EpochRecord) -> Result<()> {
        let name = names::lease(record.epoch);
        let look = || -> Result<Option<Lease>> {
            self.store().find(&name)?.map(|bytes| decode(&bytes, &name)).transpose()
        };
        let before = look()?;
        if before.as_ref().is_some_and(|lease| lease.released) {
            return Ok(());
        }
        // An owner without a lease has just begun.
        let length = before.as_ref().map_or(self.lease, |lease| Duration::from_secs(lease.seconds));
        let waited = self.clock.wait(length.saturating_add(length / BEATS));
        if waited && look()? == before {
            return Ok(());
        }
        let (owner, seconds) = (record.owner.clone(), length.as_secs());
        Err(ReplicateError::Owned { owner, epoch: record.epoch, seconds })
    }

    fn beat(&mut self, released: bool) {
        let Some(held) = &mut self.held else { return };
        held.beat += 1;
        let lease = Lease {
            epoch: held.epoch,
            beat: held.beat,
            seconds: self.lease.as_secs(),
            released,
            shipped: held.shipped,
        };
        // The store may be away: then another may end the epoch, which `publish` finds.
        let _ = self.bucket.put(&names::lease(held.epoch), &encode(&lease));
        held.renewed = self.clock.now();
    }
}

impl Authority for StoreAuthority<'_> {
    fn newest(&mut self) -> Result<Option<Position>> {
        let history = History::read(self.store())?;
        let Some(last) = history.last() else { return Ok(None) };
        Ok(Some(history.end(self.store(), last.epoch)?.0))
    }

    fn claim(&mut self, claim: &Claim) -> Result<Position> {
        let store = self.store();
        let history = History::read(store)?;
        let mut after = Position::default();
        let own = hex(&claim.pool);
        if let Some(last) = history.last() {
            if last.pool != own && !claim.promote {
                return Err(ReplicateError::OtherPool { found: last.pool.clone(), own });
            }
            if last.pool != own && !is_related(store, &history, &claim.objects)? {
                return Err(ReplicateError::Unrelated { found: last.pool.clone(), own });
            }
            if !claim.take_over {
                self.outlast(last)?;
            }
            after = self.fence(last.epoch)?;
        }
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce)
            .map_err(|error| ReplicateError::damaged("the system", format!("no random numbers: {error}")))?;
        let record = EpochRecord {
            epoch: after.epoch + 1,
            after_epoch: after.epoch,
            after_seq: after.seq,
            pool: own,
            owner: claim.owner.clone(),
            nonce: hex(&nonce),
            created: seconds(),
        };
        let name = names::epoch(record.epoch);
        if let Some(found) = store.put_new(&name, &encode(&record))? {
            let other: EpochRecord = decode(&found, &name)?;
            let (owner, epoch, seconds) = (other.owner, other.epoch, self.lease.as_secs());
            return Err(ReplicateError::Owned { owner, epoch, seconds });
        }
        let store = store_id(history.all().first().unwrap_or(&record));
        let (epoch, owner) = (record.epoch, record.owner);
        let (pool, renewed) = (claim.pool, self.clock.now());
        self.held = Some(Held { store, pool, epoch, owner, beat: 0, renewed, shipped: 0 });
        self.beat(false);
        Ok(Position { epoch, seq: 0 })
    }

    fn store_id(&self) -> String {
        self.held.as_ref().map(|held| held.store.clone()).unwrap_or_default()
    }

    fn renew(&mut self) -> Result<()> {
        let Some(held) = &self.held else { return Ok(()) };
        if self.clock.now().saturating_sub(held.renewed) < self.lease / BEATS {
            return Ok(());
        }
        let (epoch, next) = (held.epoch, names::epoch(held.epoch + 1));
        if self.bucket.get(&next).is_ok() {
            return Err(ReplicateError::Fenced { name: next, epoch });
        }
        let name = names::epoch(epoch);
        if matches!(self.bucket.get(&name), Err(Trouble::Missing)) {
            return Err(ReplicateError::Missing { name, needs: "this run".into() });
        }
        self.beat(false);
        Ok(())
    }

    fn replica(&mut self) -> Result<Option<Replica>> {
        let Some(held) = &self.held else { return Ok(None) };
        let store = self.store();
        let replica = Replica::read(store, &History::read(store)?, held.epoch, &held.pool)?;
        if let (Some(held), Some(replica)) = (&mut self.held, &replica) {
            held.shipped = replica.created;
        }
        Ok(replica)
    }

    fn fence(&mut self, epoch: u64) -> Result<Position> {
        let store = self.store();
        let owner = self.held.as_ref().map_or_else(|| "a claimant".to_owned(), |held| held.owner.clone());
        // The name listed last may be a boundary.
        let mut last = (numbers(store, epoch)?.len() as u64).saturating_sub(1);
        loop {
            let at = Position { epoch, seq: last + 1 };
            let boundary = Boundary { epoch, seq: at.seq, ended_by: owner.clone() };
            match store.put_new(&at.name(), &encode(&boundary))? {
                Some(found) if !is_boundary(&found) => last += 1,
                Some(found) => {
                    let found: Boundary = decode(&found, &at.name())?;
                    expect_here(&found, at)?;
                    return Ok(Position { epoch, seq: last });
                }
                None => return Ok(Position { epoch, seq: last }),
            }
        }
    }

    fn publish(&mut self, at: Position, segment: &[u8]) -> Result<()> {
        let (name, mut waits) = (at.name(), Waits::default());
        loop {
            let why = match self.bucket.put_new(&name, segment) {
                Ok(()) => break,
                Err(Trouble::Taken | Trouble::Missing) => match self.bucket.get(&name) {
                    Ok(found) if found == segment => break,
                    Ok(found) if is_boundary(&found) => {
                        return Err(ReplicateError::Fenced { name, epoch: at.epoch });
                    }
                    Ok(_) => {
                        let before = Position { seq: at.seq.saturating_sub(1), ..at }.name();
                        let why = "another process put it".to_owned();
                        return Err(ReplicateError::Foreign { name, before, why });
                    }
                    Err(Trouble::Refused(why)) => {
                        return Err(ReplicateError::Refused { what: "get", name, why });
                    }
                    Err(Trouble::Unclear(why)) => why,
                    Err(Trouble::Missing | Trouble::Taken) => "it was put, and is gone".into(),
                },
                Err(Trouble::Refused(why)) => {
                    return Err(ReplicateError::Refused { what: "put", name, why });
                }
                Err(Trouble::Unclear(why)) => why,
            };
            if !waits.wait(self.clock) {
                return Err(ReplicateError::Stopped { name, why });
            }
        }
        if let Some(held) = &mut self.held {
            held.shipped = seconds();
        }
        Ok(())
    }

    fn release(&mut self) {
        self.beat(true);
        self.held = None;
    }
}

/// Whether one of the objects was shipped to the newest epoch that has any, or none was to any.
fn is_related(store: Patient<'_>, history: &History, objects: &BTreeSet<[u8; 16]>) -> Result<bool> {
    for epoch in history.all().iter().rev() {
        let mut any = false;
        for seq in (1..=history.end(store, epoch.epoch)?.0.seq).rev() {
            let name = Position { epoch: epoch.epoch, seq }.name();
            for change in Segment::read(&store.get(&name, "the promotion")?, &name)?.changes {
                let Change::Object(attributes) = change else { continue };
                if objects.contains(&attributes.id) {
                    return Ok(true);
                }
                any = true;
            }
        }
        if any {
            return Ok(false);
        }
    }
    Ok(true)
}

/// 16 hexadecimal digits: no two stores have one first record.
pub(crate) fn store_id(first: &EpochRecord) -> String {
    hex(&hash(&[first.nonce.as_bytes()])[..8])
}

fn expect_here(found: &Boundary, at: Position) -> Result<()> {
    if (found.epoch, found.seq) == (at.epoch, at.seq) {
        return Ok(());
    }
    let why = format!("it ends epoch {} at {}", found.epoch, found.seq);
    Err(ReplicateError::damaged(&at.name(), why))
}

pub(crate) fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
