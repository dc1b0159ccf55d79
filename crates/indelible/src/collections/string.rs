//! Text: a [`PVec`] of bytes, checked for UTF-8 when used as `str`; comparing and hashing use
//! bytes.

use super::into_persist::IntoPersist;
use super::layout::Layout;
use super::persist::{Bounds, Persist};
use super::place::{HeapRef, damaged, expect};
use super::vec::PVec;
use crate::error::Result;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// Growing text, as std's `String`.
#[derive(Default)]
#[repr(transparent)]
pub struct PString<'h> {
    bytes: PVec<'h, u8>,
}

impl<'h> PString<'h> {
    /// Empty, without memory: see [`PVec::new`].
    #[must_use]
    pub const fn new() -> Self {
        PString { bytes: PVec::new() }
    }

    /// Empty, allocating in `heap`.
    #[must_use]
    pub fn new_in(heap: HeapRef<'h>) -> Self {
        PString { bytes: PVec::new_in(heap) }
    }

    /// A copy of `text`.
    ///
    /// # Panics
    /// If the heap is full.
    #[must_use]
    pub fn from_in(text: &str, heap: HeapRef<'h>) -> Self {
        expect(text.into_persist(heap))
    }

    /// Its heap, if any.
    #[must_use]
    pub fn heap(&self) -> HeapRef<'h> {
        self.bytes.heap()
    }

    /// Bytes of UTF-8.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Room in bytes.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// The bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// The text.
    ///
    /// # Panics
    /// If the object is damaged and the bytes are not UTF-8.
    #[inline]
    #[must_use]
    pub fn as_str(&self) -> &str {
        match std::str::from_utf8(self.as_bytes()) {
            Ok(text) => text,
            Err(_) => damaged(self.as_bytes().as_ptr().addr(), "text that is not UTF-8"),
        }
    }

    /// Appends text.
    ///
    /// # Panics
    /// If the heap is full.
    pub fn push_str(&mut self, text: &str) {
        expect(self.try_push_str(text));
    }

    /// As [`push_str`](PString::push_str).
    ///
    /// # Errors
    /// `HeapFull`.
    pub fn try_push_str(&mut self, text: &str) -> Result<()> {
        self.bytes.try_append(text.as_bytes())
    }

    /// Appends a character.
    ///
    /// # Panics
    /// If the heap is full.
    pub fn push(&mut self, character: char) {
        self.push_str(character.encode_utf8(&mut [0; 4]));
    }

    /// Removes the last character.
    pub fn pop(&mut self) -> Option<char> {
        let last = self.as_str().chars().next_back()?;
        self.bytes.truncate(self.len() - last.len_utf8());
        Some(last)
    }

    /// Keeps the first `len` bytes.
    ///
    /// # Panics
    /// If a character does not end there.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            assert!(self.as_str().is_char_boundary(len), "{len} is inside a character");
            self.bytes.truncate(len);
        }
    }

    /// Drops the text; keeps the room.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Makes room for `more` bytes.
    ///
    /// # Panics
    /// If the heap is full.
    pub fn reserve(&mut self, more: usize) {
        self.bytes.reserve(more);
    }

    /// Frees unused room.
    pub fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
    }
}

impl Deref for PString<'_> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for PString<'_> {
    fn as_ref(&self) -> &str {
        self
    }
}

impl fmt::Write for PString<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.try_push_str(text).map_err(|_| fmt::Error)
    }
}

impl<'t> Extend<&'t str> for PString<'_> {
    fn extend<I: IntoIterator<Item = &'t str>>(&mut self, texts: I) {
        texts.into_iter().for_each(|text| self.push_str(text));
    }
}

impl Extend<char> for PString<'_> {
    fn extend<I: IntoIterator<Item = char>>(&mut self, characters: I) {
        characters.into_iter().for_each(|character| self.push(character));
    }
}

impl Clone for PString<'_> {
    fn clone(&self) -> Self {
        PString { bytes: self.bytes.clone() }
    }
}

impl fmt::Debug for PString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for PString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl PartialEq for PString<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for PString<'_> {}

macro_rules! equal {
    ($($ty:ty),*) => {
        $(
            impl PartialEq<$ty> for PString<'_> {
                fn eq(&self, other: &$ty) -> bool {
                    self.as_bytes() == other.as_bytes()
                }
            }

            impl PartialEq<PString<'_>> for $ty {
                fn eq(&self, other: &PString<'_>) -> bool {
                    self.as_bytes() == other.as_bytes()
                }
            }
        )*
    };
}

equal!(str, &str, String);

impl PartialOrd for PString<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PString<'_> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for PString<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl<'h> IntoPersist<'h, PString<'h>> for &str {
    fn into_persist(self, heap: HeapRef<'h>) -> Result<PString<'h>> {
        let mut text = PString::new_in(heap);
        text.try_push_str(self)?;
        Ok(text)
    }
}

impl<'h> IntoPersist<'h, PString<'h>> for String {
    fn into_persist(self, heap: HeapRef<'h>) -> Result<PString<'h>> {
        self.as_str().into_persist(heap)
    }
}

impl<'h> IntoPersist<'h, PString<'h>> for &String {
    fn into_persist(self, heap: HeapRef<'h>) -> Result<PString<'h>> {
        self.as_str().into_persist(heap)
    }
}

#[allow(unsafe_code)]
// SAFETY: that of its bytes, which need not be UTF-8.
unsafe impl<'h> Persist<'h> for PString<'h> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: transparent.
        unsafe { PVec::<u8>::check(at.cast(), bounds) }
    }

    fn describe(layout: &mut Layout) {
        layout.word("PString");
    }

    fn type_name(out: &mut String) {
        out.push_str("PString");
    }
}
