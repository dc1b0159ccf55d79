//! A root's pages: a record, then its texts, under one checksum. Long descriptions take several
//! pages.

use super::error::{Result, damaged};
use super::layout::{NAME_MAX, PAGE, ROOT_MAGIC, RootRecord};
use super::root::Root;
use super::window::Window;
use crate::types::MOST;
use indelible_store::format::checksum;

const RECORD: usize = size_of::<RootRecord>();

mod at {
    use super::RootRecord;
    use std::mem::offset_of;
    pub(super) const NAME_LEN: usize = offset_of!(RootRecord, name_len);
    pub(super) const TYPE_LEN: usize = offset_of!(RootRecord, type_len);
    pub(super) const LAYOUT_LEN: usize = offset_of!(RootRecord, layout_len);
    pub(super) const CHECKSUM: usize = offset_of!(RootRecord, checksum);
    pub(super) const OFFSET: usize = offset_of!(RootRecord, offset);
    pub(super) const SIZE: usize = offset_of!(RootRecord, size);
    pub(super) const FINGERPRINT: usize = offset_of!(RootRecord, fingerprint);
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

fn sum(bytes: &mut [u8], page: u64) -> u64 {
    bytes[at::CHECKSUM..at::CHECKSUM + 8].fill(0);
    checksum(page, &[bytes])
}

fn pages(texts: usize) -> u64 {
    ((RECORD + texts) as u64).div_ceil(PAGE)
}

pub(super) fn pages_of(root: &Root) -> u64 {
    pages(root.name.len() + root.type_name.len() + root.layout.len())
}

pub(super) fn read(window: &Window, page: u64) -> Result<Root> {
    let mut bytes = vec![0; PAGE as usize];
    let offset = page.saturating_mul(PAGE);
    window.read(offset, &mut bytes)?;
    let wrong = || damaged(offset, "the page of a root does not verify");
    let len = |at| usize::from(u16::from_le_bytes(field(&bytes, at)));
    let (name, kind) = (len(at::NAME_LEN), len(at::TYPE_LEN));
    let layout = u32::from_le_bytes(field(&bytes, at::LAYOUT_LEN)) as usize;
    if name > NAME_MAX || kind > NAME_MAX || layout > MOST {
        return wrong();
    }
    let all = pages(name + kind + layout) * PAGE;
    if all > PAGE {
        bytes.resize(all as usize, 0);
        window.read(offset, &mut bytes)?;
    }
    let stored = u64::from_le_bytes(field(&bytes, at::CHECKSUM));
    if sum(&mut bytes, page) != stored || u32::from_le_bytes(field(&bytes, 0)) != ROOT_MAGIC {
        return wrong();
    }
    let text = |from: usize, len: usize| {
        let text = bytes.get(RECORD + from..RECORD + from + len);
        text.and_then(|text| std::str::from_utf8(text).ok()).map(str::to_owned)
    };
    let texts = (text(0, name), text(name, kind), text(name + kind, layout));
    let (Some(name), Some(type_name), Some(layout)) = texts else { return wrong() };
    let start = u64::from_le_bytes(field(&bytes, at::OFFSET));
    let size = u64::from_le_bytes(field(&bytes, at::SIZE));
    if start.checked_add(size).is_none_or(|end| end > window.pages() * PAGE) {
        return damaged(offset, "a root lies beyond the heap");
    }
    Ok(Root {
        name,
        address: window.base().wrapping_add(start as usize),
        size,
        type_name,
        fingerprint: u128::from_le_bytes(field(&bytes, at::FINGERPRINT)),
        layout,
    })
}

pub(super) fn write(window: &Window, page: u64, root: &Root) -> Result<()> {
    let mut bytes = vec![0; (pages_of(root) * PAGE) as usize];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(0, &ROOT_MAGIC.to_le_bytes());
    put(at::NAME_LEN, &(root.name.len() as u16).to_le_bytes());
    put(at::TYPE_LEN, &(root.type_name.len() as u16).to_le_bytes());
    put(at::LAYOUT_LEN, &(root.layout.len() as u32).to_le_bytes());
    put(at::OFFSET, &((root.address - window.base()) as u64).to_le_bytes());
    put(at::SIZE, &root.size.to_le_bytes());
    put(at::FINGERPRINT, &root.fingerprint.to_le_bytes());
    let mut text = RECORD;
    for part in [&root.name, &root.type_name, &root.layout] {
        put(text, part.as_bytes());
        text += part.len();
    }
    let sum = sum(&mut bytes, page);
    bytes[at::CHECKSUM..at::CHECKSUM + 8].copy_from_slice(&sum.to_le_bytes());
    window.write(page * PAGE, &bytes)
}
