//! The format stays: FORMAT.md matches the code, and fixed numbers repeat both.

use indelible_store::format::batch::{self, Run, Section, kind};
use indelible_store::format::entry::{self, Entry, Progress};
use indelible_store::format::lane::{self, Directory};
use indelible_store::format::node::{self, Node, Slot};
use indelible_store::format::root::{self, Applied, Root, TREES, TreeRoot};
use indelible_store::format::seal::{self, BlobSlot, KeySlot, Seal};
use indelible_store::format::superblock::{self, Superblock};
use indelible_store::format::{self, checksum};
use indelible_store::medium::LockKey;
use indelible_store::store::{FormatOptions, Identity, Store};
use indelible_store::table::{CreateOptions, Key, id_key, name_hash};
use indelible_testing::{SimConfig, SimMedium};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use zerocopy::{FromZeros, IntoBytes};

type Field = (&'static str, usize, usize);

/// All fields of a struct; a missing one does not compile.
macro_rules! layout {
    ($type:ident { $($field:ident),* $(,)? }) => {{
        let zero = <$type>::new_zeroed();
        let $type { $($field: _),* } = &zero;
        let fields: Vec<Field> = vec![
            $((stringify!($field), std::mem::offset_of!($type, $field), size_of_val(&zero.$field))),*
        ];
        (fields, size_of::<$type>())
    }};
}

fn structs() -> Vec<(&'static str, Vec<Field>, usize)> {
    type BatchHeader = batch::Header;
    type LaneHeader = lane::Header;
    type SealHeader = seal::Header;
    type SealIdentity = seal::Identity;
    let mut all = Vec::new();
    let mut add = |name, (fields, size)| all.push((name, fields, size));
    add(
        "superblock::Superblock",
        layout!(Superblock {
            magic,
            version,
            features,
            sequence,
            checksum,
            id,
            seed,
            length,
            data,
            window,
            window_len,
            created,
            label_len,
            optional,
            label,
            release,
            reserved,
        }),
    );
    add(
        "root::Root",
        layout!(Root {
            magic,
            boots,
            checksum,
            objects,
            next_binding,
            boot,
            virgin,
            free_pages,
            free_page,
            free_page_count,
            chunk_next,
            chunk_end,
            free_slot,
            length,
            trees,
        }),
    );
    add("root::Applied", layout!(Applied { generation, batches, checksum, reserved }));
    add("root::TreeRoot", layout!(TreeRoot { node, count, height, reserved }));
    add("node::Node", layout!(Node { magic, level, count, checksum, own_offset, reserved, slots }));
    add("node::Slot", layout!(Slot { high, low, value }));
    add(
        "entry::Entry",
        layout!(Entry {
            magic,
            state,
            class,
            retention,
            reserved1,
            checksum,
            id,
            own_offset,
            size,
            pages,
            flags,
            name_len,
            primary,
            address,
            reserved,
            binding,
            lane,
            pid,
            boot,
            created,
            read_key,
            write_key,
            fingerprint,
            ties,
            next_free,
            shadow,
            base,
            overlay,
            reserved3,
            types,
            volatile_boot,
            based,
            users,
            tie_count,
            ties_sum,
            memory,
            memory_boot,
            reserved2,
            name,
        }),
    );
    add("entry::Progress", layout!(Progress { id, published, psyncs, checksum, direct, reserved }));
    add(
        "seal::Header",
        layout!(SealHeader { magic, version, suite, granule, flags, id, size, content, rotations, reserved }),
    );
    add("seal::Identity", layout!(SealIdentity { id, name, other }));
    add("seal::Seal", layout!(Seal { nonce, tag, version, hash }));
    add("seal::BlobSlot", layout!(BlobSlot { kind, owner, len, part, parts, checksum, bytes }));
    add(
        "seal::KeySlot",
        layout!(KeySlot {
            kind,
            reserved,
            memory,
            passes,
            lanes,
            checksum,
            created,
            salt,
            nonce,
            wrapped,
            tag,
            label,
            expires,
            reserved2,
        }),
    );
    add("lane::Directory", layout!(Directory { magic, pid, checksum, offset, len, generation, since, boot }));
    add("lane::Header", layout!(LaneHeader { magic, reserved, checksum, own_offset, generation, reserved2 }));
    add(
        "batch::Header",
        layout!(BatchHeader {
            magic,
            sections,
            head_sum,
            body_sum,
            generation,
            sequence,
            len,
            runs,
            lines,
            durable,
        }),
    );
    add("batch::Section", layout!(Section { kind, flags, runs, entry, binding, published, psyncs, direct }));
    add("batch::Run", layout!(Run { target, lines }));
    all
}

fn constants() -> Vec<(&'static str, String)> {
    let tag = |magic: u32| format!("`{}`", String::from_utf8_lossy(&magic.to_le_bytes()));
    let number = |value: u64| value.to_string();
    vec![
        ("format::PAGE", number(format::PAGE)),
        ("format::LINE", number(format::LINE)),
        ("format::VERSION", number(format::VERSION.into())),
        ("format::LANES", number(format::LANES.into())),
        ("format::LANE_DIRECTORY", number(format::LANE_DIRECTORY)),
        ("format::TABLE_ROOT", number(format::TABLE_ROOT)),
        ("format::APPLIED", number(format::APPLIED)),
        ("format::APPLY_WORDS", number(format::APPLY_WORDS)),
        ("format::TABLE_LANE", number(format::TABLE_LANE)),
        ("format::TABLE_LANE_LEN", number(format::TABLE_LANE_LEN)),
        ("format::DATA", number(format::DATA)),
        ("format::MIN_POOL", number(format::MIN_POOL)),
        ("format::MAX_POOL", number(format::MAX_POOL)),
        ("superblock::SLOTS[0]", number(superblock::SLOTS[0])),
        ("superblock::SLOTS[1]", number(superblock::SLOTS[1])),
        ("superblock::FEATURE_UPGRADING", number(superblock::FEATURE_UPGRADING.into())),
        ("superblock::MAGIC", format!("`{}`", String::from_utf8_lossy(&superblock::MAGIC))),
        ("root::MAGIC", tag(root::MAGIC)),
        ("root::HEIGHT", number(root::HEIGHT.into())),
        ("node::MAGIC", tag(node::MAGIC)),
        ("node::CAPACITY", number(node::CAPACITY as u64)),
        ("entry::MAGIC", tag(entry::MAGIC)),
        ("entry::FREE_MAGIC", tag(entry::FREE_MAGIC)),
        ("entry::SIZE", number(entry::SIZE)),
        ("entry::PROGRESS", number(entry::PROGRESS)),
        ("entry::NAME_MAX", number(entry::NAME_MAX as u64)),
        ("entry::BITMAP_GROUP", number(entry::BITMAP_GROUP)),
        ("entry::NO_LANE", number(entry::NO_LANE.into())),
        ("entry::STATE_D", number(entry::STATE_D.into())),
        ("entry::STATE_R", number(entry::STATE_R.into())),
        ("entry::STATE_W", number(entry::STATE_W.into())),
        ("entry::FLAG_READ_ONLY", number(entry::FLAG_READ_ONLY.into())),
        ("entry::FLAG_SPARSE", number(entry::FLAG_SPARSE.into())),
        ("entry::FLAG_TYPED", number(entry::FLAG_TYPED.into())),
        ("entry::FLAG_HIDDEN", number(entry::FLAG_HIDDEN.into())),
        ("entry::FLAG_BASE", number(entry::FLAG_BASE.into())),
        ("entry::FLAG_OVERLAY", number(entry::FLAG_OVERLAY.into())),
        ("entry::FLAG_FOREIGN", number(entry::FLAG_FOREIGN.into())),
        ("entry::FLAG_DELETED", number(entry::FLAG_DELETED.into())),
        ("entry::FLAG_VOLATILE", number(entry::FLAG_VOLATILE.into())),
        ("entry::FLAG_TIED", number(entry::FLAG_TIED.into())),
        ("entry::FLAG_SEALED", number(entry::FLAG_SEALED.into())),
        ("entry::FLAG_ECC", number(entry::FLAG_ECC.into())),
        ("entry::FLAG_TARGET", number(entry::FLAG_TARGET.into())),
        ("entry::FLAG_POSITION_INDEPENDENT", number(entry::FLAG_POSITION_INDEPENDENT.into())),
        ("entry::FLAG_CONTENT", number(entry::FLAG_CONTENT.into())),
        ("entry::FLAG_READABLE", number(entry::FLAG_READABLE.into())),
        ("entry::CLASS_PSYNC", number(entry::CLASS_PSYNC.into())),
        ("entry::CLASS_TRANSACTIONAL", number(entry::CLASS_TRANSACTIONAL.into())),
        ("entry::CLASS_ON_DEMAND", number(entry::CLASS_ON_DEMAND.into())),
        ("entry::CLASS_SHARED", number(entry::CLASS_SHARED.into())),
        ("entry::TIES_MAX", number(entry::TIES_MAX)),
        ("entry::OPTIONAL_FLAGS", number(entry::OPTIONAL_FLAGS.into())),
        ("seal::MAGIC", tag(seal::MAGIC)),
        ("seal::VERSION", number(seal::VERSION.into())),
        ("seal::SUITE", number(seal::SUITE.into())),
        ("seal::ARITY", number(seal::ARITY)),
        ("seal::KEY_PAGE", number(seal::KEY_PAGE)),
        ("seal::FLAG_ANCHORED", number(seal::FLAG_ANCHORED.into())),
        ("seal::FLAG_SIGNED", number(seal::FLAG_SIGNED.into())),
        ("seal::FLAG_IDENTITY", number(seal::FLAG_IDENTITY.into())),
        ("seal::FLAG_ERASABLE", number(seal::FLAG_ERASABLE.into())),
        ("seal::IDENTITY", number(seal::IDENTITY as u64)),
        ("seal::ROOT", number(seal::ROOT as u64)),
        ("seal::SIGNATURE", number(seal::SIGNATURE as u64)),
        ("seal::SIGNATURE_LEN", number(seal::SIGNATURE_LEN as u64)),
        ("seal::SLOTS", number(seal::SLOTS as u64)),
        ("seal::SLOT_COUNT", number(seal::SLOT_COUNT as u64)),
        ("seal::SLOT_EMPTY", number(seal::SLOT_EMPTY.into())),
        ("seal::SLOT_KEY_FILE", number(seal::SLOT_KEY_FILE.into())),
        ("seal::SLOT_PASSPHRASE", number(seal::SLOT_PASSPHRASE.into())),
        ("seal::SLOT_TPM", number(seal::SLOT_TPM.into())),
        ("seal::SLOT_BLOB", number(seal::SLOT_BLOB.into())),
        ("seal::BLOB", number(seal::BLOB as u64)),
        ("seal::MOST", number(seal::MOST)),
        ("lane::DIRECTORY_MAGIC", tag(lane::DIRECTORY_MAGIC)),
        ("lane::HEADER_MAGIC", tag(lane::HEADER_MAGIC)),
        ("lane::GENERATIONS", number(lane::GENERATIONS)),
        ("lane::HEADERS[0]", number(lane::HEADERS[0])),
        ("lane::HEADERS[1]", number(lane::HEADERS[1])),
        ("lane::BODY", number(lane::BODY)),
        ("batch::MAGIC", tag(batch::MAGIC)),
        ("batch::kind::TABLE", number(kind::TABLE.into())),
        ("batch::kind::PSYNC", number(kind::PSYNC.into())),
        ("batch::kind::INTENT", number(kind::INTENT.into())),
        ("batch::kind::SPILL", number(kind::SPILL.into())),
        ("batch::SKIPPABLE", number(batch::SKIPPABLE.into())),
    ]
}

struct Table {
    heading: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn tables() -> Vec<Table> {
    let text = include_str!("../../../FORMAT.md");
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut all: Vec<Table> = Vec::new();
    let (mut heading, mut inside) = (String::new(), false);
    for line in text.lines() {
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().trim_matches('`').to_owned();
        }
        if !line.starts_with('|') {
            inside = false;
        } else if !inside {
            inside = true;
            all.push(Table { heading: heading.clone(), columns: cells(line), rows: Vec::new() });
        } else if !line.starts_with("|---") {
            all.last_mut().unwrap().rows.push(cells(line));
        }
    }
    all
}

fn name(cell: &str) -> &str {
    cell.trim_matches('`')
}

#[test]
fn the_structs_are_as_format_md_says() {
    let mut described: BTreeMap<String, Table> = tables()
        .into_iter()
        .filter(|table| table.columns == ["Offset", "Size", "Field", "Meaning"])
        .map(|table| (table.heading.clone(), table))
        .collect();
    for (title, fields, size) in structs() {
        let table = described.remove(title).unwrap_or_else(|| panic!("FORMAT.md does not describe {title}"));
        let rows: Vec<(String, usize, usize)> = table
            .rows
            .iter()
            .map(|row| (name(&row[2]).to_owned(), row[0].parse().unwrap(), row[1].parse().unwrap()))
            .collect();
        let fields: Vec<_> =
            fields.iter().map(|(name, offset, size)| ((*name).to_owned(), *offset, *size)).collect();
        assert_eq!(rows, fields, "{title}");
        let mut end = 0;
        for (field, offset, size) in &rows {
            assert_eq!(*offset, end, "{title}: padding before {field}");
            end += size;
        }
        assert_eq!(end, size, "{title}: padding at the end");
        assert!(
            table.rows.iter().all(|row| row.len() == 4 && !row[3].is_empty()),
            "{title}: a field without meaning"
        );
    }
    assert!(described.is_empty(), "FORMAT.md describes what is not there: {:?}", described.keys());
}

#[test]
fn the_constants_are_as_format_md_says() {
    let tables = tables();
    let table = tables.iter().find(|table| table.columns == ["Constant", "Value", "Meaning"]).unwrap();
    let rows: Vec<_> = table.rows.iter().map(|row| (name(&row[0]), row[1].clone())).collect();
    assert_eq!(rows, constants());
}

#[test]
fn the_regions_follow_each_other() {
    let tables = tables();
    let table = tables.iter().find(|table| table.columns[0] == "Region").unwrap();
    let mut end = 0;
    for row in &table.rows {
        assert_eq!(row[1].parse::<u64>().unwrap(), end, "{}", row[0]);
        end += row[2].parse::<u64>().unwrap_or(0);
    }
    assert_eq!(end, format::DATA);
    assert_eq!(
        format::LANE_DIRECTORY + u64::from(format::LANES) * size_of::<Directory>() as u64,
        format::TABLE_ROOT
    );
    assert_eq!(format::TABLE_ROOT + format::PAGE, format::TABLE_LANE);
}

/// Against changes of both code and FORMAT.md.
#[test]
fn the_numbers_of_version_2() {
    let offsets: Vec<(&str, Vec<usize>, usize)> = structs()
        .into_iter()
        .map(|(title, fields, size)| (title, fields.iter().map(|field| field.1).collect(), size))
        .collect();
    let expected: Vec<(&str, Vec<usize>, usize)> = vec![
        (
            "superblock::Superblock",
            vec![0, 8, 12, 16, 24, 32, 48, 56, 64, 72, 80, 88, 96, 100, 104, 232, 248],
            256,
        ),
        ("root::Root", vec![0, 4, 8, 16, 24, 32, 48, 56, 64, 72, 80, 88, 96, 104, 112], 256),
        ("root::Applied", vec![0, 8, 16, 24], 32),
        ("root::TreeRoot", vec![0, 8, 16, 20], 24),
        ("node::Node", vec![0, 4, 6, 8, 16, 24, 64], 4096),
        ("node::Slot", vec![0, 8, 16], 24),
        (
            "entry::Entry",
            vec![
                0, 4, 5, 6, 7, 8, 16, 32, 40, 48, 56, 60, 64, 72, 80, 88, 96, 100, 104, 120, 128, 144, 160,
                176, 184, 192, 200, 208, 216, 224, 232, 248, 256, 264, 272, 280, 288, 304, 384,
            ],
            896,
        ),
        ("entry::Progress", vec![0, 16, 24, 32, 40, 48], 128),
        ("seal::Header", vec![0, 4, 6, 8, 12, 16, 32, 40, 48, 56], 64),
        ("seal::Identity", vec![0, 16, 40], 64),
        ("seal::Seal", vec![0, 24, 40, 48], 64),
        ("seal::BlobSlot", vec![0, 2, 4, 8, 12, 16, 24], 256),
        ("seal::KeySlot", vec![0, 2, 4, 8, 12, 16, 24, 32, 64, 88, 120, 136, 192, 200], 256),
        ("lane::Directory", vec![0, 4, 8, 16, 24, 32, 40, 48], 64),
        ("lane::Header", vec![0, 4, 8, 16, 24, 32], 64),
        ("batch::Header", vec![0, 4, 8, 16, 24, 32, 40, 48, 52, 56], 64),
        ("batch::Section", vec![0, 2, 4, 8, 16, 24, 32, 40], 48),
        ("batch::Run", vec![0, 8], 16),
    ];
    assert_eq!(offsets, expected);
    let numbers = [
        format::PAGE,
        format::LINE,
        format::VERSION.into(),
        format::LANES.into(),
        format::LANE_DIRECTORY,
        format::TABLE_ROOT,
        format::TABLE_LANE,
        format::TABLE_LANE_LEN,
        format::DATA,
        format::MIN_POOL,
    ];
    assert_eq!(numbers, [4096, 64, 2, 128, 8192, 16384, 20480, 262_144, 282_624, 1_048_576]);
    assert_eq!(superblock::MAGIC, *b"INDELIBL");
    let magics = [
        root::MAGIC,
        node::MAGIC,
        entry::MAGIC,
        entry::FREE_MAGIC,
        lane::DIRECTORY_MAGIC,
        lane::HEADER_MAGIC,
        batch::MAGIC,
    ];
    assert_eq!(
        magics.map(u32::to_le_bytes),
        [*b"ROOT", *b"NODE", *b"PMOE", *b"FREE", *b"LANE", *b"LHDR", *b"BTCH"]
    );
    assert_eq!(TREES.map(|tree| tree as usize), [0, 1, 2, 3, 4, 5]);
    assert_eq!((node::CAPACITY, entry::SIZE, entry::PROGRESS, entry::NAME_MAX), (168, 1024, 896, 511));
    assert_eq!((lane::HEADERS, lane::BODY), ([0, 2048], 4096));
}

#[test]
fn the_derived_values_of_version_2() {
    assert_eq!(checksum(0, &[b""]), 0x2d06_8005_38d3_94c2, "the published value of XXH3 for no bytes");
    assert_eq!(checksum(7, &[b"indel", b"ible"]), checksum(7, &[b"indelible"]));
    assert_ne!(checksum(7, &[b"indelible"]), checksum(8, &[b"indelible"]));
    assert_eq!(name_hash(7, "a name"), checksum(7 ^ 0x6e61_6d65, &[b"a name"]));
    let id: [u8; 16] = std::array::from_fn(|at| at as u8);
    assert_eq!(id_key(&id), (0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f));
    let base = 1 << 62;
    assert_eq!(LockKey::Table.byte(), base);
    assert_eq!(LockKey::Lane(127).byte(), base + 128);
    assert_eq!(LockKey::Object(4096).byte(), base + (1 << 33) + 4096);
    assert_eq!(LockKey::Apply(5).byte(), base + (1 << 61) + 5);
    assert_eq!(LockKey::ApplyGate(5).byte(), base + (1 << 61) + (1 << 33) + 5);
    assert_eq!([0, 31, 32, 127].map(format::apply_word), [18432, 20416, 18448, 20464]);
    let words: BTreeSet<u64> = (0..format::LANES).map(format::apply_word).collect();
    assert_eq!(words.len(), format::LANES as usize);
    assert!(words.iter().all(|word| (format::APPLY_WORDS..format::TABLE_LANE).contains(word)));
}

/// Verifiers depend on object and role.
#[test]
fn the_verifiers_of_version_1() {
    let medium = SimMedium::new(1 << 20, SimConfig::default());
    let store = Store::format(Arc::new(medium), Identity::default(), &FormatOptions::default()).unwrap();
    let how =
        CreateOptions { size: 1, read_key: Key(b"one"), write_key: Key(b"two"), ..CreateOptions::default() };
    let entry = store.create("keyed", &how).unwrap().entry;
    let verifier = |role: &str, key: &[u8]| -> Vec<u8> {
        Sha256::new().chain_update(entry.id).chain_update(role).chain_update(key).finalize()[..16].to_vec()
    };
    assert_eq!(entry.read_key.to_vec(), verifier("read", b"one"));
    assert_eq!(entry.write_key.to_vec(), verifier("write", b"two"));
    let entry = store.create("open", &CreateOptions { size: 1, ..CreateOptions::default() }).unwrap().entry;
    assert_eq!((entry.read_key, entry.write_key), ([0; 16], [0; 16]));
}

#[test]
fn seals_cover_every_byte() {
    let each_byte = |bytes: &mut [u8], verify: &dyn Fn(&[u8]) -> bool| {
        assert!(verify(bytes));
        for at in 0..bytes.len() {
            bytes[at] ^= 0x10;
            assert!(!verify(bytes), "byte {at} is not covered");
            bytes[at] ^= 0x10;
        }
    };
    let mut header = lane::Header::new(7, 4096, 3);
    each_byte(header.as_mut_bytes(), &|bytes| {
        zerocopy::FromBytes::read_from_bytes(bytes)
            .is_ok_and(|h: lane::Header| h.generation(7, 4096).is_some())
    });
    let mut line = Progress { id: [3; 16], ..Progress::default() }.sealed(7);
    each_byte(line.as_mut_bytes(), &|bytes| {
        zerocopy::FromBytes::read_from_bytes(bytes)
            .is_ok_and(|line: Progress| line.sealed(7).as_bytes() == bytes)
    });
    let mut node = Node::empty(0, 8192);
    node.insert(0, Slot::new((1, 2), 3));
    node.seal(7);
    each_byte(node.as_mut_bytes(), &|bytes| {
        zerocopy::FromBytes::read_from_bytes(bytes).is_ok_and(|node: Node| node.verify(7, 8192, 0))
    });
}
