//! The page before the object's bytes, which says once more what the name says, and how many bytes there are.

use super::identity::Identity;
use crate::sys::PAGE;

const MAGIC: [u8; 16] = *b"indelible shadow";
/// Of this layout, and of what transactions keep in the bytes: another version's are not understood.
const VERSION: u64 = 1;

/// Fields in their order: what each is, and its bytes.
fn fields(identity: &Identity, len: usize) -> [(&'static str, [u8; 16]); 7] {
    let wide = |number: u64| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        bytes
    };
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

/// The page of a file that has `len` bytes of an object.
pub(super) fn encode(identity: &Identity, len: usize) -> Vec<u8> {
    let mut page: Vec<u8> = fields(identity, len).iter().flat_map(|(_, bytes)| *bytes).collect();
    page.resize(PAGE, 0);
    page
}

/// Why a page is not the one that [`encode`] makes, if it is not.
pub(super) fn differs(page: &[u8], identity: &Identity, len: usize) -> Option<&'static str> {
    let found = page.chunks_exact(16).zip(fields(identity, len)).find(|(found, (_, bytes))| found != bytes);
    match found {
        Some((_, (why, _))) => Some(why),
        None => (page != encode(identity, len)).then_some("its header is damaged"),
    }
}
