//! Shipping: each tick puts the changes since the last as segments, of which the last completes a
//! moment.

use crate::authority::{Authority, Claim, seconds};
use crate::encode::Builder;
use crate::error::{ReplicateError, Result};
use crate::feed::Feed;
use crate::format::{Hash, Header, MAGIC, StillBody, VERSION, flag};
use crate::names::Position;
use crate::source::Source;
use indelible::Pool;
use indelible_store::store::Attributes;
use zerocopy::FromZeros;

/// Bytes of a segment after which another begins.
const SEGMENT: u64 = 16 << 20;

/// A shipped moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// The segment that completes it.
    pub position: Position,
    /// Segments of this tick.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of objects in them, unpacked.
    pub changed: u64,
    /// It begins from nothing.
    pub full: bool,
}

/// A run's first moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// The whole pool: no run has shipped before.
    First,
    /// The changes since this moment, and these objects whole: the pool has no snapshot of them
    /// that the moment states.
    Continues {
        /// The moment.
        from: Position,
        /// Names.
        anew: Vec<String>,
    },
    /// The whole pool, for this cause.
    Whole(String),
}

/// Ships a pool, as the owner of an epoch.
pub struct Shipper<'a> {
    pool: Pool,
    key: Vec<u8>,
    authority: &'a mut dyn Authority,
    chain: Chain,
    /// `None`: the next moment begins from nothing.
    source: Option<Source>,
    beginning: Beginning,
    ended: bool,
}

/// The end of the chain of segments.
struct Chain {
    at: Position,
    parent: ([u8; 16], Hash),
    depth: u32,
    created: u64,
}

impl<'a> Shipper<'a> {
    /// Takes the next epoch of a prefix. The first [`tick`](Shipper::tick) ships the changes since
    /// the store's newest moment if the pool has the snapshots that this moment states; else the
    /// whole pool. `key` opens objects that have one.
    pub fn begin(pool: &Pool, key: &[u8], authority: &'a mut dyn Authority, claim: &Claim) -> Result<Self> {
        let at = authority.claim(claim)?;
        let chain = Chain { at, parent: ([0; 16], [0; 32]), depth: 0, created: 0 };
        let (pool, key, beginning) = (pool.clone(), key.to_vec(), Beginning::First);
        let mut shipper = Shipper { pool, key, authority, chain, source: None, beginning, ended: false };
        if at.epoch > 1 {
            shipper.beginning = match shipper.resume() {
                // The store may have the proof: the snapshots stay.
                Err(error @ (ReplicateError::Unreachable { .. } | ReplicateError::Refused { .. })) => {
                    shipper.pause();
                    return Err(error);
                }
                Err(error) => Beginning::Whole(error.to_string()),
                Ok(beginning) => beginning,
            };
        }
        Ok(shipper)
    }

    /// Goes on from the newest moment, if it can be proved.
    fn resume(&mut self) -> Result<Beginning> {
        let (pool, key, store_id) = (&self.pool, &self.key[..], self.authority.store_id());
        if !Source::has_left(pool, key, &store_id)? {
            return Ok(Beginning::Whole("the pool has no snapshots of an earlier run".into()));
        }
        let Some(replica) = self.authority.replica()? else {
            return Ok(Beginning::Whole("the store has no moment of this pool".into()));
        };
        let (from, parent, depth, created) = (replica.at, replica.parent, replica.depth, replica.created);
        let Some((source, anew)) = Source::resume(pool, key, &store_id, replica)? else {
            return Ok(Beginning::Whole(format!("the pool has none of the snapshots that {from} states")));
        };
        self.source = Some(source);
        (self.chain.parent, self.chain.depth, self.chain.created) = (parent, depth, created);
        Ok(Beginning::Continues { from, anew })
    }

    /// The first moment: whole, or changes since another.
    #[must_use]
    pub fn beginning(&self) -> &Beginning {
        &self.beginning
    }

    /// Ships the changes since the last tick; `None`: there are none. Changes of one `psync_all`
    /// are in one moment.
    ///
    /// # Errors
    /// Those of the pool: the next tick ships the whole pool. Those of [`Authority::publish`]: the
    /// shipper has ended, and leaves its snapshots to the next run.
    pub fn tick(&mut self) -> Result<Option<Shipped>> {
        if self.ended {
            let (name, epoch) = (self.chain.at.name(), self.chain.at.epoch);
            return Err(ReplicateError::Fenced { name, epoch });
        }
        if let Err(error) = self.authority.renew() {
            self.ended = true;
            self.source.take().into_iter().for_each(Source::leave);
            return Err(error);
        }
        let full = self.source.is_none();
        let mut source = match self.source.take() {
            Some(source) => source,
            None => Source::new(&self.pool, &self.key, &self.authority.store_id())?,
        };
        let mut feeder = Feeder {
            pool: &self.pool,
            authority: &mut *self.authority,
            chain: &mut self.chain,
            builder: Builder::default(),
            object: None,
            begins: full,
            failed: false,
            shipped: Shipped { position: Position::default(), segments: 0, bytes: 0, changed: 0, full },
        };
        let done = source
            .tick(&mut feeder)
            .and_then(|any| (any || full).then(|| feeder.flush(true).map(|()| feeder.shipped)).transpose());
        self.ended |= feeder.failed;
        if done.is_ok() {
            source.settle();
        }
        // The next owner may go on from the snapshots.
        if self.ended {
            source.leave();
            return done;
        }
        // With the snapshots of an earlier run there is no room for others.
        let is_full = matches!(done, Err(ReplicateError::NoRoom { .. }));
        if is_full && matches!(self.beginning, Beginning::Continues { .. }) {
            self.beginning = Beginning::Whole("there is no room for more snapshots".into());
            drop(source);
            return self.tick();
        }
        // Nothing was fed.
        if matches!(done, Ok(_) | Err(ReplicateError::Restless)) && !(full && done.is_err()) {
            self.source = Some(source);
        }
        done
    }

    /// ID of the store.
    #[must_use]
    pub fn store_id(&self) -> String {
        self.authority.store_id()
    }

    /// IDs of the objects, and their psyncs that the store has.
    #[must_use]
    pub fn psyncs(&self) -> Vec<([u8; 16], u64)> {
        self.source.iter().flat_map(Source::psyncs).collect()
    }

    /// The newest shipped place.
    #[must_use]
    pub fn position(&self) -> Position {
        self.chain.at
    }

    /// Whether no later tick ships.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Gives the epoch up, so that another owner need not wait, and removes the snapshots from the
    /// pool: the next run ships it whole.
    pub fn end(self) {
        self.authority.release();
    }

    /// As [`end`](Shipper::end), but leaves the snapshots: the next run ships what changed.
    pub fn pause(mut self) {
        self.authority.release();
        self.source.take().into_iter().for_each(Source::leave);
    }
}

struct Feeder<'f> {
    pool: &'f Pool,
    authority: &'f mut dyn Authority,
    chain: &'f mut Chain,
    builder: Builder,
    /// The present object: attributes, psyncs before, its record.
    object: Option<(Attributes, u64, Option<u32>)>,
    begins: bool,
    failed: bool,
    shipped: Shipped,
}

impl Feeder<'_> {
    fn flush(&mut self, moment: bool) -> Result<()> {
        let put = self.put(moment);
        self.failed |= put.is_err();
        put
    }

    fn put(&mut self, moment: bool) -> Result<()> {
        let (superblock, chain) = (self.pool.store().superblock(), &mut *self.chain);
        let mut header = Header::new_zeroed();
        (header.magic, header.version) = (MAGIC, VERSION.into());
        getrandom::fill(&mut header.id)
            .map_err(|error| ReplicateError::damaged("the system", format!("no random numbers: {error}")))?;
        header.pool = superblock.id;
        header.pool_len = self.pool.store().info()?.length.into();
        (header.window, header.window_len) = (superblock.window, superblock.window_len);
        chain.created = seconds().max(chain.created);
        header.created = chain.created.into();
        (header.parent, header.parent_hash) = chain.parent;
        let depth = if self.begins { 0 } else { chain.depth + 1 };
        let at = chain.at.next();
        (header.depth, header.epoch, header.seq) = (depth.into(), at.epoch.into(), at.seq.into());
        let full = if self.begins { flag::FULL } else { 0 };
        let flags = full | if moment { flag::MOMENT } else { 0 };
        let (bytes, whole) = std::mem::take(&mut self.builder).finish(header, flags);
        self.authority.publish(at, &bytes)?;
        (chain.at, chain.parent, chain.depth) = (at, (header.id, whole), depth);
        self.begins = false;
        if let Some((_, _, record)) = &mut self.object {
            *record = None;
        }
        self.shipped.position = at;
        self.shipped.segments += 1;
        self.shipped.bytes += bytes.len() as u64;
        self.authority.renew()
    }
}

impl Feed for Feeder<'_> {
    fn gone(&mut self, id: &[u8; 16]) -> Result<()> {
        self.builder.gone(id);
        Ok(())
    }

    fn object(&mut self, attributes: &Attributes, before: u64) -> Result<()> {
        let record = self.builder.object(attributes);
        self.object = Some((attributes.clone(), before, Some(record)));
        if self.builder.len() >= SEGMENT { self.flush(false) } else { Ok(()) }
    }

    fn still(&mut self, still: &StillBody) -> Result<()> {
        let Some((attributes, _, record)) = &mut self.object else { return Ok(()) };
        let object = *record.get_or_insert_with(|| self.builder.object(attributes));
        self.builder.still(object, still);
        Ok(())
    }

    fn run(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if self.builder.len() >= SEGMENT {
            self.flush(false)?;
        }
        let Some((attributes, before, record)) = &mut self.object else { return Ok(()) };
        let object = *record.get_or_insert_with(|| self.builder.object(attributes));
        self.builder.run(object, (*before, attributes.psyncs), offset, bytes);
        self.shipped.changed += bytes.len() as u64;
        Ok(())
    }
}
