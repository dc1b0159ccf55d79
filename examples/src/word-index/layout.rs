//! Persistent data, linked by native pointers.
//!
//! ```text
//! Root ── words ─▶ buckets ─▶ Word ─next─▶ Word …          File ◀─ buckets ◀─ files ── Root
//!   └── initials ─▶ [Word ─alike─▶ Word …]  │                │
//!                                           └─▶ Posting ─next─▶ Posting …
//!                                               (word, file, count; those of a file side by side)
//! ```

use indelible::Plain;

pub(crate) const MAGIC: [u8; 8] = *b"WORDS\0\r\n";
pub(crate) const VERSION: u64 = 1;

/// At the object's beginning.
#[derive(Clone, Copy, Plain)]
#[repr(C)]
pub(crate) struct Root {
    pub(crate) magic: [u8; 8],
    pub(crate) version: u64,
    pub(crate) step: u64,
    /// The next allocation's address.
    pub(crate) free: *mut u8,
    pub(crate) garbage: u64,
    pub(crate) words: Table<Word>,
    pub(crate) files: Table<File>,
    /// [`INITIALS`] lists of words, by first two letters.
    pub(crate) initials: *mut *mut Word,
    pub(crate) postings: u64,
    pub(crate) tokens: u64,
    pub(crate) bytes: u64,
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
pub(crate) struct Table<T> {
    pub(crate) buckets: *mut *mut T,
    /// A power of two.
    pub(crate) bucket_count: u64,
    pub(crate) len: u64,
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
pub(crate) struct Word {
    pub(crate) next: *mut Word,
    /// The next word with the same first two letters.
    pub(crate) alike: *mut Word,
    pub(crate) hash: u64,
    pub(crate) text: *mut u8,
    pub(crate) len: u64,
    pub(crate) postings: *mut Posting,
    /// Postings.
    pub(crate) files: u64,
    pub(crate) count: u64,
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
pub(crate) struct Posting {
    pub(crate) next: *mut Posting,
    pub(crate) word: *mut Word,
    pub(crate) file: *mut File,
    pub(crate) count: u64,
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
pub(crate) struct File {
    pub(crate) next: *mut File,
    pub(crate) hash: u64,
    pub(crate) path: *mut u8,
    pub(crate) path_len: u64,
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified: i64,
    pub(crate) postings: *mut Posting,
    /// Postings.
    pub(crate) distinct: u64,
    pub(crate) tokens: u64,
    pub(crate) bytes: u64,
}

pub(crate) trait Node {
    fn hash(&self) -> u64;
    fn next(&self) -> *mut Self;
    fn next_mut(&mut self) -> &mut *mut Self;
}

macro_rules! node {
    ($ty:ty, $words:literal) => {
        const _: () = assert!(size_of::<$ty>() == $words * 8);

        impl Node for $ty {
            fn hash(&self) -> u64 {
                self.hash
            }
            fn next(&self) -> *mut Self {
                self.next
            }
            fn next_mut(&mut self) -> &mut *mut Self {
                &mut self.next
            }
        }
    };
}

// All fields have eight bytes: no padding, as `arena` requires.
const _: () =
    assert!(size_of::<usize>() == 8 && size_of::<Root>() == 15 * 8 && size_of::<Posting>() == 4 * 8);
node!(Word, 8);
node!(File, 10);

impl<T: Node> Table<T> {
    pub(crate) fn bucket(&self, hash: u64) -> *mut *mut T {
        self.buckets.wrapping_add((hash & self.bucket_count.wrapping_sub(1)) as usize)
    }
}

const LETTERS: usize = 37;
/// Letters, digits and everything else, twice.
pub(crate) const INITIALS: usize = LETTERS * LETTERS;

fn letter(byte: Option<&u8>) -> usize {
    match byte {
        Some(byte @ b'a'..=b'z') => usize::from(byte - b'a') + 1,
        Some(byte @ b'0'..=b'9') => usize::from(byte - b'0') + 27,
        _ => 0,
    }
}

/// A word's list; for a prefix of one byte, its possible lists.
pub(crate) fn initials(text: &[u8]) -> std::ops::Range<usize> {
    let first = letter(text.first()) * LETTERS;
    match text {
        [] => 0..INITIALS,
        [_] => first..first + LETTERS,
        _ => first + letter(text.get(1))..first + letter(text.get(1)) + 1,
    }
}
