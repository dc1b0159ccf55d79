use super::{CONFIG, KEY, LIMITS, Verdict, crash_on, create, open};
use crate::for_each_crash;
use crate::independent::Independent;
use crate::pool::{psync, psync_many};
use crate::scenario::formatted;
use crate::sealed::{self, page_at, shape};
use crate::sim::{SimConfig, SimMedium};
use indelible_store::error::{Result, SealError, StoreError};
use indelible_store::format::PAGE;
use indelible_store::format::seal::Seal;
use indelible_store::store::Store;
use indelible_store::table::Located;
use std::collections::HashMap;
use std::sync::Arc;
use zerocopy::FromBytes;

const PAGES: u64 = 66;
const SIZE: u64 = PAGES * PAGE - 100;
const PLANTED: &[u8] = b"planted plaintext, 31 bytes long";
const WRITTEN: [u64; 3] = [0, 1, 65];

fn text(error: StoreError) -> String {
    error.to_string()
}

struct Made {
    object: Located,
    older: Vec<u8>,
    newer: Vec<u8>,
}

fn made() -> Result<Made> {
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 1);
    sealed::create(&store, "a", SIZE)?;
    let psynced = |value: u8| -> Result<Vec<u8>> {
        let mut writer = sealed::writer(&store, "a")?;
        let line = [value; 64];
        let edits: Vec<_> = WRITTEN.iter().map(|page| (page * PAGE + 640, &line[..])).collect();
        psync(&mut writer, &edits)?;
        writer.detach()?;
        Ok(medium.to_bytes())
    };
    let (older, newer) = (psynced(1)?, psynced(2)?);
    Ok(Made { object: store.find("a")?, older, newer })
}

fn held(bytes: &[u8]) -> Result<Vec<u8>> {
    let store = open(&SimMedium::from_bytes(bytes, CONFIG), 7);
    let object = store.find("a")?;
    sealed::contents(&store, &object)
}

fn is_broken(bytes: &[u8], what: &str) -> Verdict {
    match held(bytes) {
        Err(StoreError::Seal(SealError::Broken { .. })) => Ok(()),
        Err(error) => Err(format!("{what}: {error}")),
        Ok(_) => Err(format!("{what}: it is accepted")),
    }
}

pub(super) fn sealed_psyncs_are_whole_after_a_power_cut() -> Verdict {
    for disk in [true, false] {
        crash_on(
            SimConfig { disk, ..CONFIG },
            |store| assert!(sealed::create(store, "a", 9000).is_ok()),
            |run| {
                let mut state = run.last();
                let mut a = run.quiet(|store| sealed::writer(store, "a"))?;
                for (at, value) in [(70_usize, 3), (4200, 4), (8500, 5), (70, 6)] {
                    let (_, _, bytes) = state.get_mut("a").expect("it was created");
                    bytes[at..at + 8].fill(value);
                    run.step_to(state.clone(), |_| psync(&mut a, &[(at as u64, &[value; 8])]))?;
                }
                run.quiet(|_| a.detach())
            },
        )?;
    }
    Ok(())
}

pub(super) fn sealed_and_plain_objects_change_as_one_step() -> Verdict {
    crash_on(
        CONFIG,
        |store| {
            create(store, "b", 5000);
            sealed::create(store, "a", 5000).unwrap();
        },
        |run| {
            let mut state = run.last();
            let [mut a, mut b] = [
                run.quiet(|store| sealed::writer(store, "a"))?,
                run.quiet(|store| store.attach_writer("b", KEY))?,
            ];
            for value in [1, 2] {
                state.values_mut().for_each(|(_, _, bytes)| bytes[4500..4510].fill(value));
                run.step_to(state.clone(), |_| {
                    psync_many(&mut [(&mut a, &[(4500, &[value; 10])]), (&mut b, &[(4500, &[value; 10])])])
                })?;
            }
            run.quiet(|_| a.detach().and_then(|()| b.detach()))?;
            run.step(|store| sealed::create(store, "c", 100).map(drop))
        },
    )
}

pub(super) fn a_changed_bit_is_an_error() -> Verdict {
    let Made { object, newer, .. } = made().map_err(text)?;
    let shape = shape(&object);
    let nodes = [shape.page(0, 0), shape.page(0, 1), shape.page(1, 0)];
    let written = WRITTEN.map(|page| (page, shape.content_page(page)));
    for (page, at) in written.into_iter().chain(nodes.map(|page| (page, page))) {
        for (byte, bit) in [(0, 0), (640, 7), (4095, 3), (63, 1)] {
            let mut bytes = newer.clone();
            bytes[page_at(&object, at)][byte] ^= 1 << bit;
            let found = held(&bytes);
            match found {
                Err(StoreError::Seal(SealError::Broken { page: named, .. })) if named == page => {}
                _ => return Err(format!("page {page}, byte {byte}: {:?}", found.map(drop))),
            }
        }
    }
    Ok(())
}

pub(super) fn pages_of_two_places_or_times_are_no_object() -> Verdict {
    let Made { object, older, newer } = made().map_err(text)?;
    let shape = shape(&object);
    let all: Vec<u64> = WRITTEN
        .map(|page| shape.content_page(page))
        .into_iter()
        .chain([shape.key_page(), shape.page(0, 0), shape.page(0, 1), shape.page(1, 0)])
        .collect();
    let states = [held(&older).map_err(text)?, held(&newer).map_err(text)?];
    for mixture in 1..(1_u32 << all.len()) - 1 {
        let mut bytes = newer.clone();
        for (_, page) in all.iter().enumerate().filter(|(nth, _)| mixture >> nth & 1 == 1) {
            bytes[page_at(&object, *page)].copy_from_slice(&older[page_at(&object, *page)]);
        }
        is_broken(&bytes, &format!("mixture {mixture:#b} of {all:?}"))?;
    }
    for (nth, one) in all.iter().enumerate() {
        for other in &all[nth + 1..] {
            let mut bytes = newer.clone();
            bytes[page_at(&object, *one)].copy_from_slice(&newer[page_at(&object, *other)]);
            bytes[page_at(&object, *other)].copy_from_slice(&newer[page_at(&object, *one)]);
            is_broken(&bytes, &format!("pages {one} and {other} are exchanged"))?;
        }
    }
    if states[0] == states[1] {
        return Err("the two states are one".into());
    }
    Ok(())
}

pub(super) fn a_node_of_zeros_is_an_error() -> Verdict {
    let Made { object, newer, .. } = made().map_err(text)?;
    let shape = shape(&object);
    for node in [shape.page(0, 0), shape.page(0, 1), shape.page(1, 0)] {
        let mut bytes = newer.clone();
        bytes[page_at(&object, node)].fill(0);
        is_broken(&bytes, &format!("node at page {node}"))?;
    }
    Ok(())
}

pub(super) fn a_subtree_that_is_taken_away_is_an_error() -> Verdict {
    let Made { object, newer, .. } = made().map_err(text)?;
    let shape = shape(&object);
    for index in [0, 1] {
        let mut bytes = newer.clone();
        bytes[page_at(&object, shape.page(0, index))].fill(0);
        bytes[page_at(&object, shape.page(1, 0))][64 * index as usize..][..64].fill(0);
        is_broken(&bytes, &format!("leaf {index}"))?;
    }
    let mut bytes = newer.clone();
    for node in [shape.page(0, 0), shape.page(0, 1), shape.page(1, 0)] {
        bytes[page_at(&object, node)].fill(0);
    }
    is_broken(&bytes, "all nodes")
}

pub(super) fn nonces(bytes: &[u8], seals: &mut HashMap<[u8; 24], Seal>) -> Verdict {
    for line in bytes.as_chunks::<64>().0 {
        let Ok(seal) = Seal::read_from_bytes(line) else { continue };
        // A seal has a small version, zeros behind it, a random tag.
        let zeros = seal.tag.iter().filter(|byte| **byte == 0).count();
        if !(1..1000).contains(&seal.version.get()) || seal.hash != [0; 16] || zeros > 4 {
            continue;
        }
        match seals.insert(seal.nonce, seal) {
            Some(other) if other != seal => return Err(format!("nonce {:x?} was used twice", seal.nonce)),
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn written_over(store: &Arc<Store>, name: &str, value: u8) -> Result<()> {
    let mut writer = sealed::writer(store, name)?;
    let size = writer.object().entry.size.get() as usize;
    psync(&mut writer, &[(0, &vec![value; size])])?;
    writer.detach()
}

pub(super) fn no_nonce_comes_twice_after_a_power_cut() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    sealed::create(&open(&medium, 1), "a", 9000).map_err(text)?;
    medium.settle();
    let mut seals = HashMap::new();
    let record = |medium: &SimMedium| {
        let mut writer = sealed::writer(&open(medium, 2), "a").unwrap();
        for value in 1..4 {
            psync(&mut writer, &[(70, &[value; 8])]).unwrap();
        }
    };
    let mut value = 100;
    let judge = |image: &crate::CrashImage| -> Verdict {
        let medium = image.medium();
        nonces(&medium.to_bytes(), &mut seals)?;
        value += 1;
        let mut writer = sealed::writer(&open(&medium, 3), "a").map_err(text)?;
        psync(&mut writer, &[(70, &u64::to_le_bytes(value))]).map_err(text)?;
        nonces(&medium.to_bytes(), &mut seals)
    };
    for_each_crash(&medium, record, judge, &LIMITS).map_err(|failure| failure.to_string())?;
    if seals.len() < 50 { Err(format!("{} seals were seen", seals.len())) } else { Ok(()) }
}

pub(super) fn equal_pages_have_unequal_ciphertext() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 1);
    let object = sealed::create(&store, "a", 9000).map_err(text)?;
    let mut seen = Vec::new();
    for value in [1, 2, 1, 2] {
        let mut writer = sealed::writer(&store, "a").map_err(text)?;
        psync(&mut writer, &[(0, &[value; 9000])]).map_err(text)?;
        writer.detach().map_err(text)?;
        let bytes = medium.to_bytes();
        // With one nonce, ciphertexts would differ as plaintexts do.
        seen.push(bytes[page_at(&object, shape(&object).content_page(0))].to_vec());
    }
    for (nth, one) in seen.iter().enumerate() {
        for other in &seen[nth + 1..] {
            let same =
                one.iter().zip(other).filter(|(one, other)| *one ^ *other == 0 || *one ^ *other == 3).count();
            if same > 400 {
                return Err(format!("{same} bytes of two ciphertexts tell what they are"));
            }
        }
    }
    Ok(())
}

pub(super) fn plaintext_is_nowhere_in_the_pool() -> Verdict {
    for disk in [true, false] {
        let medium = formatted(2 << 20, SimConfig { disk, ..CONFIG });
        let store = open(&medium, 1);
        sealed::create(&store, "a", SIZE).map_err(text)?;
        let mut writer = sealed::writer(&store, "a").map_err(text)?;
        let planted = PLANTED.repeat(300);
        for (at, len) in [(0, 32), (4090, 32), (100, 9600), (5000, 64)] {
            psync(&mut writer, &[(at, &planted[..len])]).map_err(text)?;
            for bytes in [medium.to_bytes(), medium.power_cut(crate::Choice::All).medium().to_bytes()] {
                if let Some(found) = bytes.windows(16).position(|window| window == &PLANTED[..16]) {
                    return Err(format!("plaintext at {found}"));
                }
            }
        }
        writer.checkpoint().map_err(text)?;
        writer.detach().map_err(text)?;
        if medium.to_bytes().windows(16).any(|window| window == &PLANTED[..16]) {
            return Err("plaintext in its place".into());
        }
    }
    Ok(())
}

pub(super) fn pages_are_sealed_as_the_format_says() -> Verdict {
    let Made { object, newer, .. } = made().map_err(text)?;
    let (shape, page) = (shape(&object), |page| &newer[page_at(&object, page)]);
    let reader = Independent::open(page(shape.key_page()))?;
    for written in WRITTEN {
        let leaf = page(shape.page(0, written / 64));
        let mut bytes = page(shape.content_page(written)).to_vec();
        let seal = &leaf[written as usize % 64 * 64..][..64];
        reader.verify(b"granule\0", (0, written), seal, &[], &mut bytes)?;
        if bytes[640..704] != [2; 64] || bytes[..640].iter().any(|byte| *byte != 0) {
            return Err(format!("page {written} holds something else"));
        }
    }
    Ok(())
}

pub(super) fn nodes_are_sealed_as_the_format_says() -> Verdict {
    let Made { object, newer, .. } = made().map_err(text)?;
    let (shape, page) = (shape(&object), |page| &newer[page_at(&object, page)]);
    let key_page = page(shape.key_page());
    let reader = Independent::open(key_page)?;
    let top = page(shape.page(1, 0));
    let of_root = [&key_page[..64], &key_page[192..256], top].concat();
    reader.verify(b"node\0\0\0\0", (1, 0), &key_page[64..128], &of_root, &mut [])?;
    for index in [0, 1] {
        let seal = &top[64 * index as usize..][..64];
        reader.verify(b"node\0\0\0\0", (0, index), seal, page(shape.page(0, index)), &mut [])?;
    }
    Ok(())
}
