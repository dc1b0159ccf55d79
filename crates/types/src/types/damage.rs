//! Each possible fault is found and named by its path; with any fault, the walk ends.

use super::walk::{Memory, Visitor, Walk};
use super::{Description, Path};

const BASE: u64 = 0x10_0000;
const BLOCK: u64 = 256;
const BLOCKS: u64 = 16;

fn at(block: u64) -> u64 {
    BASE + BLOCK * block
}

fn len(block: u64) -> u64 {
    if block == BLOCKS - 1 { 16 } else { BLOCK }
}

type Word = (u64, u64, u64);
type Case<'c> = (&'c str, &'c [Word], &'c str);

#[derive(Default)]
struct Said(Vec<String>);

impl Visitor for Said {
    fn wrong(&mut self, _: u64, what: &str, path: &Path<'_, '_>) {
        self.0.push(format!("{path}: {what}"));
    }
}

fn walked(text: &str, (address, size): (u64, u64), words: &[Word]) -> Vec<String> {
    let of = Description::parse(text).unwrap();
    let mut bytes = vec![0; (BLOCK * BLOCKS) as usize];
    for (block, index, value) in words {
        let from = (BLOCK * block + 8 * index) as usize;
        bytes[from..from + 8].copy_from_slice(&value.to_le_bytes());
    }
    let block = |address: u64| address.checked_sub(BASE).map(|at| at / BLOCK).filter(|block| *block < BLOCKS);
    let live = |address: u64| block(address).filter(|block| at(*block) == address).map(len);
    let around = |address: u64| {
        let block = block(address)?;
        (address < at(block) + len(block)).then_some((at(block), len(block)))
    };
    let memory = Memory { base: BASE, bytes: &bytes };
    let mut walk = Walk::new(memory, &live, Said::default()).following(&around);
    walk.root("r", &of, address, size);
    walk.finish().visitor.0
}

fn wrong(text: &str, words: &[Word]) -> Vec<String> {
    let of = Description::parse(text).unwrap();
    walked(text, (at(0), of.get(of.root()).size), words)
}

#[test]
fn a_root_that_does_not_match_its_block_is_found() {
    let misplaced = ["r: a root is not where it could be"];
    assert_eq!(walked("u64 ", (at(0), 4), &[]), misplaced, "its description has 8 bytes");
    assert_eq!(walked("u64 ", (at(0), 16), &[]), misplaced);
    assert_eq!(walked("u64 ", (at(0) + 4, 8), &[]), misplaced, "misaligned");
    assert_eq!(walked("u64 ", (at(BLOCKS) - 4, 8), &[]), misplaced);
    assert_eq!(walked("u64 ", (8, 8), &[]), misplaced);
    let no_block = "r: the owned address is not that of a block in use";
    assert_eq!(walked("u64 ", (at(0) + 8, 8), &[]), [no_block]);
    assert_eq!(walked("[3] u64 ", (at(15), 24), &[]), ["r: a block is smaller than its value"]);
    assert_eq!(walked("u64 ", (at(0), 8), &[]), [""; 0]);
}

#[test]
fn every_damage_is_named() {
    let no_value = "r: this is no value of its type";
    let cases: &[Case<'_>] = &[
        ("bool ", &[(0, 0, 2)], no_value),
        ("char ", &[(0, 0, 0xd800)], no_value),
        ("NonZeroU64 ", &[], no_value),
        ("S:8:4 { a@0:4 u32 b@4:4 NonZeroI32 } ", &[(0, 0, 1)], "r.b: this is no value of its type"),
        ("E:1:1 { A=1 B=2 } ", &[], no_value),
        ("POption u64 ", &[(0, 0, 2)], no_value),
        ("PBox u64 ", &[], no_value),
        ("PBox u64 ", &[(0, 0, at(1) + 4)], no_value),
        ("PBox u64 ", &[(0, 0, at(1) + 8)], "r: the owned address is not that of a block in use"),
        ("PBox [32] u64 ", &[(0, 0, at(15))], "r: a block is smaller than its value"),
        ("PMutex u64 ", &[(0, 1, 1)], no_value),
        (
            "S:16:8 { a@0:8 PBox u64 b@8:8 PBox u64 } ",
            &[(0, 0, at(1)), (0, 1, at(1))],
            "r.b: a block has two owners",
        ),
        (
            "L:8:8 { next@0:8 Option PBox =0 } ",
            &[(0, 0, at(1)), (1, 0, at(0))],
            "r.next.next: a block has two owners",
        ),
        ("PRc u64 ", &[], no_value),
        ("PRc u64 ", &[(0, 0, at(1) + 4)], no_value),
        ("PRc u64 ", &[(0, 0, at(1) + 8)], "r: the owned address is not that of a block in use"),
        ("PRc [2] u64 ", &[(0, 0, at(15))], "r: a block is smaller than its value"),
        ("PRc u64 ", &[(0, 0, at(1))], "r: a block has more owners than it counts"),
        ("Option PRc bool ", &[(0, 0, at(1)), (1, 0, 1), (1, 1, 2)], no_value),
        (
            "S:16:8 { a@0:8 PRc u64 b@8:8 PRc u64 } ",
            &[(0, 0, at(1)), (0, 1, at(1)), (1, 0, 1)],
            "r.b: a block has more owners than it counts",
        ),
        (
            "S:16:8 { a@0:8 PRc u64 b@8:8 PRc i64 } ",
            &[(0, 0, at(1)), (0, 1, at(1)), (1, 0, 2)],
            "r.b: the owners of a block have it for values of different types",
        ),
        (
            "S:16:8 { a@0:8 PRc u64 b@8:8 PBox u64 } ",
            &[(0, 0, at(1)), (0, 1, at(1)), (1, 0, 2)],
            "r.b: a block has two owners",
        ),
        (
            "S:16:8 { a@0:8 PBox u64 b@8:8 PRc u64 } ",
            &[(0, 0, at(1)), (0, 1, at(1)), (1, 0, 2)],
            "r.b: a block has two owners",
        ),
        (
            "L:8:8 { next@0:8 Option PRc =0 } ",
            &[(0, 0, at(1)), (1, 0, 1), (1, 1, at(1))],
            "r.next.next: a block has more owners than it counts",
        ),
        ("PVec u64 ", &[(0, 0, at(1)), (0, 1, 4), (0, 2, 5)], no_value),
        ("PVec [1000000] u64 ", &[(0, 0, at(1)), (0, 1, u64::MAX), (0, 2, 1)], no_value),
        ("PVecDeque bool ", &[(0, 0, at(1)), (0, 1, 8), (0, 3, 8)], no_value),
        ("PVecDeque bool ", &[(0, 3, 1)], no_value),
        ("PVecDeque [32] u64 ", &[(0, 0, at(15)), (0, 1, 1)], "r: a block is smaller than its value"),
        (
            "PVecDeque bool ",
            &[(0, 0, at(1)), (0, 1, 8), (0, 2, 3), (0, 3, 6), (1, 0, 0x0101_ff00_0000_0002)],
            "r[2]: this is no value of its type",
        ),
        ("PString ", &[(0, 0, at(1)), (0, 1, 8), (0, 2, 8), (1, 0, u64::MAX)], "r: text that is not UTF-8"),
        ("PHashMap u64 u64 ", &[(0, 0, at(1)), (0, 1, 17)], no_value),
        (
            "PHashSet u8 ",
            &[(0, 0, at(1)), (0, 1, 16), (0, 2, 1), (0, 3, 13), (1, 0, u64::MAX), (1, 1, u64::MAX)],
            "r: a hash table with another number of keys",
        ),
        ("PBTreeMap u64 u64 ", &[(0, 0, at(1)), (0, 1, 17), (0, 2, 1)], no_value),
        ("PBTreeMap u64 u64 ", &[(0, 0, at(1)), (0, 1, 1), (0, 2, 1)], "r: a node of an ordered map"),
        ("*mut A -> 0 u64 ", &[(0, 0, at(1) + 4)], "r: the pointer is not aligned as its target has to be"),
        (
            "*mut A -> 0 [33] u64 ",
            &[(0, 0, at(1))],
            "r: the pointer leads to a block that ends within its target",
        ),
        (
            "relative *mut A -> 0 [2] u64 ",
            &[(0, 0, at(15) + 8 - at(0))],
            "r: the pointer leads to a block that ends within its target",
        ),
        (
            "*mut A -> 0 N:16:8 { value@0:1 bool next@8:8 *mut N } -> 1 =0 ",
            &[(0, 0, at(1)), (1, 1, at(2)), (2, 0, 9), (2, 1, at(1))],
            "r.next.value: this is no value of its type",
        ),
        (
            "*mut A -> 0 S:16:8 { a@0:8 PBox u64 b@8:8 PBox u64 } ",
            &[(0, 0, at(1)), (1, 0, at(2)), (1, 1, at(0))],
            "r.b: a block has two owners",
        ),
    ];
    for (text, words, expected) in cases {
        assert_eq!(wrong(text, words), [*expected], "{text}");
    }
}

#[derive(Default)]
struct Owners(Vec<(u64, u64, u64)>, Vec<u64>);

impl Visitor for Owners {
    fn shared(&mut self, address: u64, counted: u64, found: u64) {
        self.0.push((address, counted, found));
    }

    fn plain(&mut self, address: u64, _: u64, _: &Path<'_, '_>) {
        self.1.push(address);
    }

    fn wrong(&mut self, _: u64, what: &str, path: &Path<'_, '_>) {
        panic!("{path}: {what}");
    }
}

#[test]
fn owners_of_one_type_are_counted_across_roots() {
    let one = "S:16:8 { a@0:8 PRc X:8:8 { n@0:8 PRc [2] u64 } b@8:8 PRc [2] u64 } ";
    let two = "T:16:8 { a@0:8 Option PRc X:8:8 { n@0:8 PRc [2] u64 } b@8:8 PRc =1 } ";
    let (one, two) = (Description::parse(one).unwrap(), Description::parse(two).unwrap());
    let mut bytes = vec![0; (BLOCK * BLOCKS) as usize];
    let words =
        [(0, 0, at(2)), (0, 1, at(3)), (1, 0, at(2)), (1, 1, at(2)), (2, 0, 4), (2, 1, at(3)), (3, 0, 2)];
    for (block, index, value) in words {
        let from = (BLOCK * block + 8 * index) as usize;
        bytes[from..from + 8].copy_from_slice(&value.to_le_bytes());
    }
    let live = |address: u64| address.is_multiple_of(BLOCK).then_some(BLOCK);
    let memory = Memory { base: BASE, bytes: &bytes };
    for releasing in [false, true] {
        let walk = Walk::new(memory, &live, Owners::default());
        let mut walk = if releasing { walk.releasing() } else { walk };
        walk.root("one", &one, at(0), 16);
        walk.root("two", &two, at(1), 16);
        let Owners(mut shared, plain) = walk.finish().visitor;
        shared.sort_unstable();
        // If its owner is not visited, the block holds another owner's values.
        let inner = if releasing { 1 } else { 2 };
        assert_eq!(shared, [(at(2), 4, 3), (at(3), 2, inner)]);
        assert_eq!(plain.contains(&(at(3) + 8)), !releasing);
    }
}

#[test]
fn an_owner_that_is_met_twice_counts_once() {
    let text =
        "S:16:8 { a@0:8 *mut A b@8:8 *mut B } -> 0 A:8:8 { own@0:8 PBox B:8:8 { it@0:8 PRc u64 } } -> 1 =2 ";
    let words = [(0, 0, at(1)), (0, 1, at(2)), (1, 0, at(2)), (2, 0, at(3)), (3, 0, 1)];
    assert_eq!(wrong(text, &words), [""; 0]);
}

#[test]
fn rings_and_any_number_of_values_without_bytes_come_to_an_end() {
    let ring = "N:8:8 { next@0:8 *mut N } -> 0 =0 ";
    assert_eq!(wrong(ring, &[(0, 0, at(1)), (1, 0, at(2)), (2, 0, at(1))]), [""; 0]);
    assert_eq!(wrong(ring, &[(0, 0, at(0))]), [""; 0]);
    let many = "[18446744073709551615] X:0:1 < > ";
    assert_eq!(wrong(many, &[]), [""; 0]);
    assert_eq!(wrong(&format!("*mut A -> 0 {many}"), &[(0, 0, at(1))]), [""; 0]);
    // Each word of a block leads to as many words behind it.
    let words: Vec<_> = (0..32).map(|index| (1, index, at(1) + 8 * (index % 16))).collect();
    let all = "*mut A -> 0 N:128:8 { all@0:128 [16] *mut N } -> 1 =0 ";
    let from: Vec<_> = words.iter().copied().chain([(0, 0, at(1))]).collect();
    assert_eq!(wrong(all, &from), [""; 0]);
}
