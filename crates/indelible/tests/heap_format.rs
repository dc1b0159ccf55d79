//! The bytes of a heap, pinned against accidental change: FORMAT.md follows the code.

use indelible::heap::layout::{self, *};
use indelible_testing::page::tables;

type Field = (&'static str, usize, usize);

macro_rules! fields {
    ($type:ident { $($field:ident: $ty:ty),* $(,)? }) => {{
        fn _all(value: &$type) {
            let $type { $($field: _),* } = value;
        }
        let fields: Vec<Field> =
            vec![$((stringify!($field), std::mem::offset_of!($type, $field), size_of::<$ty>())),*];
        (concat!("heap::", stringify!($type)), fields, size_of::<$type>())
    }};
}

fn structs() -> Vec<(&'static str, Vec<Field>, usize)> {
    vec![
        fields!(Header {
            magic: u64,
            version: u32,
            features: u32,
            pages: u64,
            frontier: u64,
            directory: u64,
            capacity: u64,
            cursor: u64,
            roots: u64,
            recent: [u32; CLASSES],
            far: u64,
            reserved: [u64; 83],
            chunks: [u64; INLINE_CHUNKS],
            slots: [RootSlot; INLINE_ROOTS],
        }),
        fields!(RootSlot { hash: u64, page: u64 }),
        fields!(RootIndex { magic: u32, reserved: u32, next: u64, slots: [RootSlot; PAGE_ROOTS] }),
        fields!(FarTable {
            magic: u32,
            reserved: u32,
            count: u64,
            names: u64,
            taken: u64,
            reserved2: [u64; 252],
            middles: [u64; 256],
        }),
        fields!(FarMiddle { leaves: [u64; 512] }),
        fields!(FarLeaf { entries: [FarSlot; 128] }),
        fields!(FarSlot {
            id: [u64; 2],
            name: u64,
            name_len: u32,
            resolver_len: u8,
            rights: u8,
            kind: u8,
            private: u8,
        }),
        fields!(Chunk {
            magic: u32,
            touched: u32,
            number: u64,
            reserved: [u64; 6],
            used: [u64; 8],
            entries: [u32; 512],
        }),
        fields!(SpanHeader {
            magic: u32,
            class: u32,
            page: u64,
            pages: u32,
            count: u32,
            data: u32,
            allocation: u32,
            reserved: [u64; 4],
        }),
        fields!(RootRecord {
            magic: u32,
            name_len: u16,
            type_len: u16,
            layout_len: u32,
            reserved: u32,
            checksum: u64,
            offset: u64,
            size: u64,
            fingerprint: [u64; 2],
            reserved2: u64,
        }),
    ]
}

#[test]
fn the_structs_are_as_format_md_says() {
    let mut described = tables(include_str!("../../../FORMAT.md"), "Byte");
    for (title, fields, size) in structs() {
        let rows = described.remove(title).unwrap_or_else(|| panic!("FORMAT.md does not describe {title}"));
        let rows: Vec<(&str, usize, usize)> =
            rows.iter().map(|row| (&*row[2], row[0].parse().unwrap(), row[1].parse().unwrap())).collect();
        assert_eq!(rows, fields, "{title}");
        let end = rows.iter().fold(0, |end, (field, offset, size)| {
            assert_eq!(*offset, end, "{title}: padding before {field}");
            end + size
        });
        assert_eq!(end, size, "{title}: padding at the end");
    }
    assert!(described.is_empty(), "FORMAT.md describes what is not there: {:?}", described.keys());
}

#[test]
fn the_constants_are_as_format_md_says() {
    let tag = |magic: u32| String::from_utf8(magic.to_le_bytes().to_vec()).unwrap();
    let constants = vec![
        ("PAGE", PAGE.to_string()),
        ("CHUNK_PAGES", CHUNK_PAGES.to_string()),
        ("MAGIC", String::from_utf8(layout::MAGIC.to_le_bytes().to_vec()).unwrap()),
        ("VERSION", VERSION.to_string()),
        ("CHUNK_MAGIC", tag(CHUNK_MAGIC)),
        ("SPAN_MAGIC", tag(SPAN_MAGIC)),
        ("ROOT_MAGIC", tag(ROOT_MAGIC)),
        ("INDEX_MAGIC", tag(INDEX_MAGIC)),
        ("MIN_PAGES", MIN_PAGES.to_string()),
        ("MAX_PAGES", MAX_PAGES.to_string()),
        ("INLINE_CHUNKS", INLINE_CHUNKS.to_string()),
        ("INLINE_ROOTS", INLINE_ROOTS.to_string()),
        ("PAGE_ROOTS", PAGE_ROOTS.to_string()),
        ("CLASSES", CLASSES.to_string()),
        ("SPAN_BLOCKS", SPAN_BLOCKS.to_string()),
        ("NAME_MAX", NAME_MAX.to_string()),
        ("LAYOUT_MAX", LAYOUT_MAX.to_string()),
        ("LONG_ROOTS", LONG_ROOTS.to_string()),
        ("FAR", FAR.to_string()),
        ("FAR_PRIVATE", FAR_PRIVATE.to_string()),
        ("FAR_MAGIC", tag(FAR_MAGIC)),
        ("FAR_MIDDLES", FAR_MIDDLES.to_string()),
        ("FAR_LEAVES", FAR_LEAVES.to_string()),
        ("FAR_ENTRIES", FAR_ENTRIES.to_string()),
        ("FAR_NAME_MAX", FAR_NAME_MAX.to_string()),
    ];
    let tables = tables(include_str!("../../../FORMAT.md"), "Heap constant");
    let rows: Vec<(&str, String)> = tables.values().flatten().map(|row| (&*row[0], row[1].clone())).collect();
    assert_eq!(rows, constants);
}

/// Pins the numbers against changes of both the code and FORMAT.md.
#[test]
fn the_numbers_of_version_1() {
    let offsets: Vec<(Vec<usize>, usize)> = structs()
        .into_iter()
        .map(|(_, fields, size)| (fields.into_iter().map(|field| field.1).collect(), size))
        .collect();
    let expected = vec![
        (vec![0, 8, 12, 16, 24, 32, 40, 48, 56, 64, 352, 360, 1024, 2048], 4096),
        (vec![0, 8], 16),
        (vec![0, 4, 8, 16], 4096),
        (vec![0, 4, 8, 16, 24, 32, 2048], 4096),
        (vec![0], 4096),
        (vec![0], 4096),
        (vec![0, 16, 24, 28, 29, 30, 31], 32),
        (vec![0, 4, 8, 16, 64, 128], 2176),
        (vec![0, 4, 8, 16, 20, 24, 28, 32], 64),
        (vec![0, 4, 6, 8, 12, 16, 24, 32, 40, 56], 64),
    ];
    assert_eq!(offsets, expected);
    assert_eq!((PAGE, CHUNK_PAGES, MIN_PAGES, MAX_PAGES, CLASSES), (4096, 512, 3, 1 << 32, 72));
    assert_eq!((SPAN_BLOCKS, allocation::FREE, allocation::USED, allocation::FREED), (1024, 0, 1, 2));
    assert_eq!((layout::MAGIC.to_le_bytes(), VERSION), (*b"PMO-HEAP", 1));
}

#[test]
fn entries_are_packed_as_format_md_says() {
    let span = Entry { kind: Kind::Span, class: 71, pages: 65 };
    assert_eq!(span.pack(), 4 | 71 << 8 | 65 << 16);
    for kind in [Kind::Header, Kind::Meta, Kind::Run, Kind::Span, Kind::Tail] {
        let entry = Entry { kind, ..span };
        assert_eq!(Entry::unpack(entry.pack()), Some(entry));
    }
    assert_eq!((Entry::unpack(0), Entry::unpack(6)), (None, None));
    let uses = [
        (Use::Free, 0),
        (Use::Pages { header: 511, largest: 510 }, 1 | 511 << 8 | 510 << 24),
        (Use::Large { pages: 1 << 32, meta: false }, 2 | 1 << 56),
        (Use::Large { pages: 600, meta: true }, 2 | 1 << 8 | 600 << 24),
        (Use::Body, 3),
    ];
    for (what, bits) in uses {
        assert_eq!((what.pack(), Use::unpack(bits)), (bits, Some(what)));
    }
    assert_eq!((Use::unpack(4), Use::unpack(1 << 8), Use::unpack(3 | 1 << 8)), (None, None, None));
}
