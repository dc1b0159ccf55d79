//! The way of changes from a pool to segments.

use crate::error::Result;
use crate::format::StillBody;
use indelible_store::store::Attributes;

/// Receives a moment's changes.
pub(crate) trait Feed {
    fn gone(&mut self, id: &[u8; 16]) -> Result<()>;
    /// Runs of this object follow; psyncs that the replica has.
    fn object(&mut self, attributes: &Attributes, before: u64) -> Result<()>;
    /// The object's bytes equal this snapshot now.
    fn still(&mut self, still: &StillBody) -> Result<()>;
    fn run(&mut self, offset: u64, bytes: &[u8]) -> Result<()>;
}
