//! Hostile bytes in a heap: errors, never a panic, a hang, or an access outside the object.

use crate::support::{Ground, World, name_root};
use indelible::{Heap, Object, Pool, Tracking, TypeInfo};
use indelible_testing::Seeded;

const TYPE: TypeInfo = TypeInfo { name: "T", fingerprint: 1, layout: "u8 at 0" };
const SIZE: u64 = 5 << 20;

fn sample(world: &World) -> Pool {
    let pool = world.format();
    pool.create("heap", SIZE).unwrap();
    let mut heap = Heap::format(pool.attach("heap").unwrap()).unwrap();
    let blocks: Vec<_> = (0..60).map(|number| heap.malloc(number * 37).unwrap()).collect();
    for block in blocks.iter().step_by(3) {
        // SAFETY: ours.
        unsafe { heap.free(block.as_ptr()).unwrap() };
    }
    heap.malloc(70_000).unwrap();
    heap.malloc(2_200_000).unwrap();
    name_root(&heap, "root", blocks[1].as_ptr(), 1, &TYPE).unwrap();
    heap.psync().unwrap();
    pool
}

fn use_it(object: Object) {
    let range = object.as_ptr().addr()..object.as_ptr().addr() + object.len();
    let Ok(mut heap) = Heap::open(object) else { return };
    let findings = heap.check();
    let mut blocks = Vec::new();
    for block in heap.blocks().take(10_000) {
        let Ok(block) = block else { continue };
        assert!(range.contains(&block.address) && block.address + block.size <= range.end);
        blocks.push(block.address);
    }
    let _ = heap.stats();
    let _ = heap.roots();
    let _ = heap.root("root", &TYPE);
    for size in [16, 48, 100, 700, 5_000, 50_000, 600_000, 2_500_000] {
        for _ in 0..3 {
            if let Ok(block) = heap.malloc(size) {
                let address = block.addr().get();
                assert!(range.contains(&address) && address + size <= range.end, "{findings:?}");
            }
        }
    }
    for address in blocks.into_iter().step_by(2).chain(range.step_by(70_000)) {
        // SAFETY: these blocks are not used.
        let _ = unsafe { heap.free(address as *mut u8) };
    }
    let _ = name_root(&heap, "more", heap.base(), 1, &TYPE);
    let _ = heap.remove_root("root");
    let _ = heap.check();
}

fn metadata(pool: &Pool) -> Vec<usize> {
    let object = pool.attach_read("heap").unwrap();
    let pages = object.as_slice().chunks_exact(4096).enumerate();
    let known = [b"PMO-", b"CHNK", b"SPAN", b"ROOT", b"RIDX"];
    let own = |page: &[u8]| known.iter().any(|magic| page.starts_with(*magic));
    pages.filter(|(_, page)| own(page)).map(|(number, _)| number).collect()
}

#[test]
fn every_byte_of_the_metadata_may_be_wrong() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = sample(&world);
    let pages = metadata(&pool);
    assert!(pages.len() > 20, "only {} pages of metadata", pages.len());
    let mut random = Seeded::new(3);
    let mut flipped = 0;
    for page in pages {
        let bytes = pool.attach_read("heap").unwrap().as_slice()[page * 4096..][..4096].to_vec();
        let used =
            |at: usize| at < 192 || bytes[at.saturating_sub(4)..(at + 4).min(4096)].iter().any(|b| *b != 0);
        let offsets: Vec<usize> = (0..4096)
            .filter(|at| if used(*at) { at % 2 == 0 || *at < 192 } else { random.usize(..64) == 0 })
            .collect();
        for at in offsets {
            let mut object = pool.attach("heap").unwrap();
            let byte = &mut object.as_mut_slice()[page * 4096 + at];
            *byte ^= if random.bool() { 0xff } else { 1 << random.usize(..8) };
            use_it(object);
            flipped += 1;
        }
    }
    assert!(flipped > 3_000, "only {flipped} bytes");
}

#[test]
fn noise_in_the_metadata_is_survived() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = sample(&world);
    let pages = metadata(&pool);
    let mut random = Seeded::new(4);
    for _ in 0..3_000 {
        let mut object = pool.attach("heap").unwrap();
        for _ in 0..random.usize(1..12) {
            let at = pages[random.usize(..pages.len())] * 4096 + random.usize(..512) * 8;
            let value = match random.usize(..4) {
                0 => random.u64(..),
                1 => u64::MAX,
                2 => random.u64(..2_000),
                _ => random.u64(..) & random.u64(..) & random.u64(..) & random.u64(..),
            };
            object.as_mut_slice()[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        use_it(object);
    }
}

#[test]
fn damage_of_each_kind_is_found() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = sample(&world);
    let pages = metadata(&pool);
    let magic = |page: usize| pool.attach_read("heap").unwrap().as_slice()[page * 4096..][..4].to_vec();
    let span = *pages.iter().find(|page| magic(**page) == b"SPAN").unwrap() * 4096;
    let root = *pages.iter().find(|page| magic(**page) == b"ROOT").unwrap() * 4096;
    let chunk = 4096;
    let damages: [(usize, u8, &str); 8] = [
        (24, 200, "frontier"),
        (1024 + 3, 9, "longest free run"),
        (chunk, 0xff, "header of a chunk"),
        (chunk + 64 + 50, 1, "neither free nor part"),
        (chunk + 64, 1, "called free"),
        (span + 4, 1, "contradicts its chunk"),
        (span + 64 + 7, 0x80, ""),
        (root + 70, 1, "does not verify"),
    ];
    for (at, bits, what) in damages {
        let mut object = pool.attach("heap").unwrap();
        object.as_mut_slice()[at] ^= bits;
        let text = match Heap::open(object) {
            Ok(mut heap) => heap.check().iter().map(|finding| finding.what.clone() + "\n").collect(),
            Err(error) => error.to_string(),
        };
        assert!(text.contains(what), "byte {at}: {text:?} does not say {what:?}");
    }
}
