//! The page before the object's bytes, which says once more what the name says, how many bytes there are, and the path of the pool that they are of.

use super::identity::Identity;
use crate::sys::PAGE;
use indelible_store::format::checksum;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 16] = *b"indelible shadow";
/// Of this layout, and of the log and the figures that transactions keep in the bytes: another version's are not understood.
pub(super) const VERSION: u64 = 3;
/// First byte of the field that says how many bytes there are.
pub(super) const LENGTH: usize = 6 * 16;
/// First byte of the pool's path: its length, a checksum, and its bytes.
const ORIGIN: usize = 7 * 16;
/// Bytes of a path that there is room for; a longer one is left out.
const LONGEST: usize = PAGE - ORIGIN - 16;

/// Why a file is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It was made by a release that has this version.
    Version(u64),
    Other(&'static str),
}

/// Fields in their order: what each is, and its bytes.
fn fields(identity: &Identity, len: usize) -> [(&'static str, [u8; 16]); 7] {
    [
        ("it is no memory of an object", MAGIC),
        ("another version of this library made it", wide(VERSION)),
        ("it belongs to an object of another pool", identity.pool),
        ("it belongs to another object", identity.object),
        ("it belongs to another attachment of the object", wide(identity.binding)),
        ("it is of another boot, and nobody knows what of it a power cut has left", identity.boot),
        ("it was made for an object of another size", wide(len as u64)),
    ]
}

fn wide(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn word(page: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*page.get(at..)?.first_chunk()?))
}

/// The page of a file that has `len` bytes of an object of the pool at `origin`.
pub(super) fn encode(identity: &Identity, len: usize, origin: &Path) -> Vec<u8> {
    let origin = origin.as_os_str().as_bytes();
    let origin = if origin.len() > LONGEST { &[] } else { origin };
    let mut page: Vec<u8> = fields(identity, len).iter().flat_map(|(_, bytes)| *bytes).collect();
    page.extend((origin.len() as u64).to_le_bytes());
    page.extend(checksum(VERSION, &[origin]).to_le_bytes());
    page.extend(origin);
    page.resize(PAGE, 0);
    page
}

/// The path of the pool that a page states; `None`: it states none that is intact.
pub(super) fn origin(page: &[u8]) -> Option<PathBuf> {
    let (len, sum) = (word(page, ORIGIN)?, word(page, ORIGIN + 8)?);
    let path = page.get(ORIGIN + 16..)?.get(..usize::try_from(len).ok()?)?;
    let known = page.starts_with(&MAGIC) && page.get(16..32)? == wide(VERSION);
    (known && checksum(VERSION, &[path]) == sum).then(|| OsStr::from_bytes(path).into())
}

/// The number of bytes that a page states.
pub(super) fn length(page: &[u8]) -> Option<usize> {
    usize::try_from(word(page, LENGTH)?).ok()
}

/// Why a page is not one that [`encode`] makes, if it is not.
pub(super) fn differs(page: &[u8], identity: &Identity, len: usize) -> Option<Wrong> {
    let pairs = page.chunks_exact(16).zip(fields(identity, len)).enumerate();
    match pairs.into_iter().find(|(_, (found, (_, bytes)))| found != bytes) {
        // The rest of that page, and all that lies behind it, means what that version says.
        Some((1, (found, _))) if found[8..] == [0; 8] => Some(Wrong::Version(word(found, 0)?)),
        Some((_, (_, (why, _)))) => Some(Wrong::Other(why)),
        None => {
            let whole = origin(page).is_some_and(|path| page == encode(identity, len, &path));
            (!whole).then_some(Wrong::Other("its header is damaged"))
        }
    }
}
