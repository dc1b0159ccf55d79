//! Transactional objects for blocks that a compiler made: the library that runs these names lines by the objects' own addresses.

use super::transactions::{enter, find};
use crate::error::{Cause, Error, Result};
use crate::pool::Pool;
use crate::transaction::{Attached, BlockLine, Users, shortage_of, tell_of};
use std::sync::Arc;

/// An object for blocks.
#[derive(Clone, Copy, Debug)]
pub struct ForBlocks {
    /// Its own address, where nobody may touch anything.
    pub address: usize,
    /// The place at which blocks find it.
    pub view: usize,
    /// In bytes.
    pub len: usize,
}

/// A line that a block changed, as it is after the commit.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Line {
    /// A multiple of 64 in an object, by its own address.
    pub address: usize,
    /// Its bytes.
    pub bytes: [u8; 64],
}

/// Attaches an object of the class `transactional` for blocks.
///
/// # Errors
/// As for [`Pool::attach_transactional`]; `Held`: functions have objects of the pool.
pub fn attach(pool: &Pool, name: &str, key: &[u8]) -> Result<ForBlocks> {
    let attached = enter(pool, name, key, Users::Blocks)?;
    let (address, len) = (attached.own(), attached.size());
    let view = attached.place(address, len).unwrap_or(address);
    Ok(ForBlocks { address, view, len })
}

fn at(address: usize) -> Result<Arc<Attached>> {
    let missing = || Error::new("commit a block on", Cause::NotAttached(address));
    find(address).filter(|object| object.is_for(Users::Blocks)).ok_or_else(missing)
}

/// Bytes that the log is short of for a commit that changes lines at these addresses: 0 if it has room.
///
/// # Errors
/// `NotAttached`.
pub fn shortage(addresses: &[usize]) -> Result<u64> {
    let objects = addresses.iter().map(|address| at(*address)).collect::<Result<Vec<_>>>()?;
    let offset = |(object, address): (&Arc<Attached>, &usize)| (address - object.own()) as u64;
    let offsets: Vec<_> = objects.iter().zip(addresses).map(offset).collect();
    let lines: Vec<_> = objects.iter().map(|object| &**object).zip(offsets).collect();
    Ok(shortage_of(&lines))
}

/// Gives the log room for a commit of so many bytes on the object that has this address.
///
/// # Errors
/// `NotAttached`, `NoRoom`, `Busy`.
pub fn make_room(address: usize, bytes: u64) -> Result<()> {
    at(address)?.make_room(bytes)
}

/// Tells of a commit that changes these lines, while nobody else can change them. It is durable when [`wait`] has returned.
///
/// # Errors
/// `NotAttached`, `DifferentPools`, `Poisoned`: it is not told.
pub fn tell(lines: &[Line]) -> Result<()> {
    let objects = lines.iter().map(|line| at(line.address)).collect::<Result<Vec<_>>>()?;
    let told = objects.iter().zip(lines).map(|(object, line)| BlockLine {
        object,
        offset: (line.address - object.own()) as u64,
        bytes: line.bytes,
    });
    tell_of(&told.collect::<Vec<_>>())
}

/// Returns when all commits are durable that were told of the pool that has an object at this address.
///
/// # Errors
/// `NotAttached`; `Poisoned` and so on: what was told may be lost.
pub fn wait(address: usize) -> Result<()> {
    at(address)?.psync()
}
