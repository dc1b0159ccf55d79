//! The kernel's core dump of a process with a sealed object contains neither plaintext nor keys
//! (S3.5, S3.6).

use crate::support::{Ground, World};
use indelible::{CreateOptions, Pool, SealKey, SignKey, Tracking};
use indelible_store::format::PAGE;
use indelible_store::format::seal::Shape;
use rustix::process::{Resource, getrlimit, setrlimit};
use sha2::{Digest, Sha256, Sha512};
use std::collections::HashSet;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

const SIZES: [usize; 2] = [300_000, 2 << 20];
const SIGABRT: i32 = 6;

fn planted(at: usize) -> u8 {
    let word = (at as u64 / 8 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word ^ word >> 29).to_le_bytes()[at % 8]
}

fn key_of(path: &Path) -> SealKey {
    let key = SealKey::from_file(path.with_extension("key")).unwrap();
    key.signed_by(&SignKey::from_file(path.with_extension("sign")).unwrap()).unwrap()
}

/// The process that dies. With `CORE_ALL` its dump includes excluded memory.
#[test]
#[ignore = "run by another test as a process of its own"]
fn die_with_a_sealed_object() {
    let Some(path) = std::env::var_os("CORE_POOL") else { return };
    let limit = getrlimit(Resource::Core);
    setrlimit(Resource::Core, rustix::process::Rlimit { current: limit.maximum, ..limit }).unwrap();
    let pool = Pool::open(Path::new(&path)).unwrap();
    let key = key_of(Path::new(&path));
    let mut object = pool.attach_sealed("a", b"", &key).unwrap();
    for at in 0..object.len() / 2 {
        object.as_mut_slice()[at] = planted(at);
    }
    object.psync().unwrap();
    for at in [5000, 9000, 70_000] {
        object.range_mut(at..at + 3).fill(7);
    }
    object.psync().unwrap();
    object.range_mut(100..200).fill(9);
    object.revert().unwrap();
    object.detach().unwrap();
    let mut object = pool.attach_sealed("a", b"", &key).unwrap();
    object.range_mut(20_000..20_003).fill(7);
    object.psync().unwrap();
    let touched = object.as_slice().iter().step_by(4096).fold(0, |all, byte| all ^ byte);
    println!("touched: {touched}");
    if std::env::var_os("CORE_ALL").is_some() {
        for line in std::fs::read_to_string("/proc/self/maps").unwrap().lines() {
            let (range, _) = line.split_once(' ').unwrap();
            let (start, end) = range.split_once('-').unwrap();
            let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).unwrap());
            // SAFETY: it changes neither contents nor access of the mapping there.
            unsafe { libc::madvise(std::ptr::without_provenance_mut(start), end - start, libc::MADV_DODUMP) };
        }
    }
    std::process::abort();
}

/// `None`: the kernel gives the dump to another program, or drops it.
fn core_of(world: &World, all: bool) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "core_dumps::die_with_a_sealed_object", "--nocapture", "--ignored"]);
    command.env("CORE_POOL", world.path()).current_dir(folder.path());
    if all {
        command.env("CORE_ALL", "1");
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.signal(), Some(SIGABRT), "{output:?}");
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
    files.first().filter(|_| output.status.core_dumped()).map(|file| std::fs::read(file).unwrap())
}

fn rounds(state: &mut [u32; 16]) {
    let mut quarter = |a: usize, b: usize, c: usize, d: usize| {
        for (add, to, turn, by) in [(b, a, d, 16), (d, c, b, 12), (b, a, d, 8), (d, c, b, 7)] {
            state[to] = state[to].wrapping_add(state[add]);
            state[turn] = (state[turn] ^ state[to]).rotate_left(by);
        }
    };
    for _ in 0..10 {
        for column in 0..4 {
            quarter(column, 4 + column, 8 + column, 12 + column);
        }
        for column in 0..4 {
            quarter(column, 4 + (column + 1) % 4, 8 + (column + 2) % 4, 12 + (column + 3) % 4);
        }
    }
}

fn state(key: &[u32; 8], last: [u32; 4]) -> [u32; 16] {
    let mut state = [0; 16];
    state[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
    state[4..12].copy_from_slice(key);
    state[12..].copy_from_slice(&last);
    state
}

struct Sealed {
    nonce: [u32; 6],
    stream: [u32; 4],
}

impl Sealed {
    fn read(world: &World, size: usize) -> Sealed {
        let pool = world.open();
        pool.attach_sealed("a", b"", &key_of(&world.path())).unwrap().detach().unwrap();
        let start = pool.store().find("a").unwrap().entry.primary_offset();
        let shape = Shape::of((size as u64).div_ceil(PAGE)).unwrap();
        let file = std::fs::File::open(world.path()).unwrap();
        let (mut page, mut seal) = ([0; 16], [0; 64]);
        file.read_exact_at(&mut page, start + shape.content_page(0) * PAGE).unwrap();
        file.read_exact_at(&mut seal, start + shape.page(0, 0) * PAGE).unwrap();
        let nonce = words(&seal[..24]);
        let known: Vec<u8> = page.iter().enumerate().map(|(at, byte)| byte ^ planted(at)).collect();
        Sealed { nonce, stream: words(&known) }
    }

    fn opens(&self, key: &[u32; 8]) -> bool {
        let mut derived = state(key, [self.nonce[0], self.nonce[1], self.nonce[2], self.nonce[3]]);
        rounds(&mut derived);
        let mut of_page = [0; 8];
        of_page[..4].copy_from_slice(&derived[..4]);
        of_page[4..].copy_from_slice(&derived[12..]);
        self.streams(key) || self.streams(&of_page)
    }

    fn streams(&self, key: &[u32; 8]) -> bool {
        let first = state(key, [1, 0, self.nonce[4], self.nonce[5]]);
        let mut block = first;
        rounds(&mut block);
        (0..4).all(|at| block[at].wrapping_add(first[at]) == self.stream[at])
    }

    /// Positions of keys. Random words are neither zero nor equal.
    fn found(&self, dump: &[u8]) -> Vec<usize> {
        let mut found = Vec::new();
        for (at, bytes) in dump.windows(32).enumerate().step_by(4) {
            let key: [u32; 8] = words(bytes);
            let random = key.iter().all(|word| word >> 16 != 0 && word & 0xffff != 0);
            if random && key[0] != key[1] && key[1] != key[2] && self.opens(&key) {
                found.push(at);
            }
        }
        found
    }
}

fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    std::array::from_fn(|at| u32::from_le_bytes(bytes[4 * at..4 * at + 4].try_into().unwrap()))
}

fn notes(dump: &[u8]) -> std::ops::Range<usize> {
    let number = |at: usize, len: usize| {
        dump[at..at + len].iter().rev().fold(0, |all, byte| all << 8 | usize::from(*byte))
    };
    let headers = (0..number(56, 2)).map(|nth| number(32, 8) + nth * number(54, 2));
    let note = headers.into_iter().find(|at| number(*at, 4) == 4).expect("a core dump has notes");
    number(note + 8, 8)..number(note + 8, 8) + number(note + 32, 8)
}

fn occurs(dump: &[u8], bytes: &[u8]) -> usize {
    let first = bytes[0];
    let places = dump.windows(bytes.len()).filter(|window| window[0] == first && *window == bytes);
    places.count()
}

#[test]
fn a_core_dump_has_neither_plaintext_nor_keys() {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    if pattern.starts_with(['|', '/']) || getrlimit(Resource::Core).maximum == Some(0) {
        indelible_testing::not_tested(format_args!(
            "core dumps: the pattern of their names is {}",
            pattern.trim()
        ));
        return;
    }
    for size in SIZES {
        if !is_silent(size) {
            indelible_testing::not_tested(format_args!("core dumps: the kernel writes none here"));
            return;
        }
    }
}

fn is_silent(size: usize) -> bool {
    let world = World::new(Ground::File, Tracking::Auto, false);
    let secret: Vec<u8> = (0..64).map(|at| planted((1 << 30) + at)).collect();
    std::fs::write(world.path().with_extension("key"), &secret).unwrap();
    let signing: Vec<u8> = (0..64).map(|at| planted((1 << 31) + at)).collect();
    std::fs::write(world.path().with_extension("sign"), &signing).unwrap();
    let seed = Sha256::new().chain_update(b"indelible sign key 1").chain_update(&signing).finalize();
    // The half that is not the signing scalar, which is kept in another form.
    let expanded = Sha512::digest(seed);
    let pool = world.format();
    pool.create_with("a", &CreateOptions::new(size as u64).sealed(&key_of(&world.path()), "")).unwrap();
    drop(pool);
    for all in [true, false] {
        let Some(dump) = core_of(&world, all) else { return false };
        let sealed = Sealed::read(&world, size);
        let contents: Vec<u8> = (0..size / 2).map(planted).collect();
        let contents: HashSet<&[u8]> = contents.chunks_exact(8).collect();
        let words = dump.chunks_exact(8).enumerate().filter(|(_, word)| contents.contains(word));
        // Thread registers in the notes may hold the last copied bytes, as SAFETY.md states.
        let registers = notes(&dump);
        let (held, places): (Vec<usize>, Vec<usize>) =
            words.map(|(nth, _)| 8 * nth).partition(|at| registers.contains(at));
        assert!(held.len() <= 64, "{} words in registers", held.len());
        let plaintext = places.len();
        let secrets = occurs(&dump, &secret[..16]) + occurs(&dump, &secret[16..32]);
        let signing = occurs(&dump, &signing[..16]) + occurs(&dump, &expanded[32..48]);
        let seeds = occurs(&dump, &seed[..16]);
        let keys = sealed.found(&dump);
        println!(
            "{} bytes, plaintext {plaintext}, key files {secrets}, keys at {keys:x?}, sign keys {seeds} {signing}",
            dump.len()
        );
        if all {
            // The control: all of it is in memory, and found if dumped.
            assert!(plaintext > size / 20 && secrets >= 2 && !keys.is_empty() && seeds >= 1);
        } else {
            assert_eq!((plaintext, secrets, keys.len()), (0, 0, 0), "places {places:x?}, {keys:x?}");
            assert_eq!((seeds, signing), (0, 0), "sign keys");
        }
    }
    for name in ["key", "sign"] {
        std::fs::remove_file(world.path().with_extension(name)).unwrap();
    }
    true
}
