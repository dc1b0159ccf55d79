//! The page before the object's bytes: the name's parts, the number of bytes, and the [`Origin`].

use super::identity::Identity;
use super::origin::Origin;
use crate::sys::PAGE;
use indelible_store::format::checksum;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

const MAGIC: [u8; 16] = *b"indelible shadow";
/// Version of this layout, of the log and of the figures; others are refused.
pub(super) const VERSION: u64 = 4;
pub(super) const LENGTH: usize = 6 * 16;
/// Offset of the origin: device, inode, length of the path, a checksum of these and the path, the
/// path.
const ORIGIN: usize = 7 * 16;
const ORIGIN_PATH: usize = ORIGIN + 32;
const LONGEST: usize = PAGE - ORIGIN_PATH;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    Version(u64),
    Other(&'static str),
}

fn fields(identity: &Identity, len: usize) -> [(&'static str, [u8; 16]); 7] {
    [
        ("it is no memory of an object", MAGIC),
        ("another version of this library made it", wide(VERSION)),
        ("it belongs to an object of another pool", identity.pool),
        ("it belongs to another object", identity.object),
        ("it belongs to another attachment of the object", wide(identity.binding)),
        ("it is of another boot, so a power cut may have left any part of it", identity.boot),
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

fn origin_words((device, inode): (u64, u64), path: &[u8]) -> [[u8; 8]; 4] {
    let words = [device, inode, path.len() as u64].map(u64::to_le_bytes);
    [words[0], words[1], words[2], checksum(VERSION, &[words.as_flattened(), path]).to_le_bytes()]
}

pub(super) fn encode(identity: &Identity, len: usize, origin: &Origin) -> Vec<u8> {
    let path = origin.path.as_os_str().as_bytes();
    let path = if path.len() > LONGEST { &[] } else { path };
    let mut page: Vec<u8> = fields(identity, len).iter().flat_map(|(_, bytes)| *bytes).collect();
    page.extend(origin_words(origin.file.unwrap_or_default(), path).as_flattened());
    page.extend(path);
    page.resize(PAGE, 0);
    page
}

pub(super) fn origin(page: &[u8]) -> Option<Origin> {
    let file = (word(page, ORIGIN)?, word(page, ORIGIN + 8)?);
    let path = page.get(ORIGIN_PATH..)?.get(..usize::try_from(word(page, ORIGIN + 16)?).ok()?)?;
    let known = page.starts_with(&MAGIC) && page.get(16..32)? == wide(VERSION);
    let intact = page.get(ORIGIN..ORIGIN_PATH)? == origin_words(file, path).as_flattened();
    let file = (file != (0, 0)).then_some(file);
    (known && intact).then(|| Origin { file, path: OsStr::from_bytes(path).into() })
}

pub(super) fn length(page: &[u8]) -> Option<usize> {
    usize::try_from(word(page, LENGTH)?).ok()
}

pub(super) fn differs(page: &[u8], identity: &Identity, len: usize) -> Option<Wrong> {
    let pairs = page.chunks_exact(16).zip(fields(identity, len)).enumerate();
    match pairs.into_iter().find(|(_, (found, (_, bytes)))| found != bytes) {
        // That version defines the rest of the page, and everything behind it.
        Some((1, (found, _))) if found[8..] == [0; 8] => Some(Wrong::Version(word(found, 0)?)),
        Some((_, (_, (why, _)))) => Some(Wrong::Other(why)),
        None => {
            let whole = origin(page).is_some_and(|origin| page == encode(identity, len, &origin));
            (!whole).then_some(Wrong::Other("its header is damaged"))
        }
    }
}
