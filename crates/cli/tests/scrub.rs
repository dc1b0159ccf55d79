//! Objects whose words have check words, and `pmo scrub`.

use crate::common::Rig;
use indelible::{Class, CreateOptions, Pool, TxCell};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

const WORDS: usize = 1024;

/// Word n of `a` has the value n.
fn rig() -> Rig {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "8K", "--ecc"]).fine();
    let pool = Pool::open(&rig.pool).unwrap();
    let a = pool.attach_transactional::<[TxCell<u64>; WORDS]>("a").unwrap();
    a.transaction(|tx| (0..WORDS).try_for_each(|nth| tx.write(&a.root()[nth], nth as u64))).unwrap();
    rig
}

fn damage(rig: &Rig, nth: usize, bits: [u64; 2]) {
    let stat = rig.pmo(["stat"], ["a", "--json"]).fine().json();
    let file = OpenOptions::new().read(true).write(true).open(&rig.pool).unwrap();
    for (half, bits) in bits.into_iter().enumerate() {
        let (mut bytes, at) = ([0; 8], stat["offset"].as_u64().unwrap() + (16 * nth + 8 * half) as u64);
        file.read_exact_at(&mut bytes, at).unwrap();
        file.write_all_at(&(u64::from_le_bytes(bytes) ^ bits).to_le_bytes(), at).unwrap();
    }
}

const LOST: [u64; 2] = [0xffff_0000_ffff_0f0f, 0x1234_5678_9abc_def0];

#[test]
fn s1_14_damaged_words_are_repaired_and_lost_ones_named() {
    let rig = rig();
    rig.pmo(["create"], ["plain", "4K"]).fine();
    let run = rig.pmo(["scrub"], [""; 0]).fine();
    assert_eq!(run.out, "object \"a\": 1024 words, 0 repaired, none lost\n");
    damage(&rig, 3, [0b111, 0]);
    damage(&rig, 700, [1 << 63, 0b11111]);
    damage(&rig, 9, LOST);
    let run = rig.pmo(["scrub"], ["a"]);
    assert_eq!((run.code, run.err.as_str()), (Some(3), ""), "{run:?}");
    let expected =
        "lost: the word at offset 0x48 of object \"a\"\nobject \"a\": 1024 words, 2 repaired, 1 LOST\n";
    assert_eq!(run.out, expected);
    let run = rig.pmo(["scrub"], ["--json"]);
    assert_eq!(run.code, Some(3));
    let json = run.json();
    assert_eq!(json.as_array().unwrap().len(), 1, "objects without check words are left out");
    assert_eq!(
        (&json[0]["object"], &json[0]["words"], &json[0]["repaired"]),
        (&"a".into(), &1024.into(), &0.into())
    );
    assert_eq!((&json[0]["lost"], &json[0]["skipped"]), (&[72].to_vec().into(), &serde_json::Value::Null));
    rig.pmo(["cat"], ["a"]).fails(3, "offset 0x48");
    rig.pmo(["scrub"], ["plain"]).fails(2, "no check words");
    rig.pmo(["scrub"], ["absent"]).fails(5, "no such object");
    let held = rig.hold("plain", false);
    rig.pmo(["scrub"], ["plain"]).fails(2, "no check words");
    held.release();
}

#[test]
fn objects_that_are_attached_are_left_out_and_said_to_be() {
    let rig = rig();
    let held = rig.hold("a", false);
    let run = rig.pmo(["scrub"], [""; 0]).fine();
    assert!(run.out.starts_with("object \"a\": not scrubbed: "), "{run:?}");
    rig.pmo(["scrub"], ["a"]).fails(4, "as reader");
    held.release();
}

#[test]
fn objects_with_check_words_are_shown_as_what_programs_see() {
    let rig = rig();
    let stat = rig.pmo(["stat"], ["a", "--json"]).fine().json();
    let class = Class::Transactional.name();
    assert_eq!((&stat["size"], &stat["ecc"], &stat["class"]), (&8192.into(), &true.into(), &class.into()));
    assert_eq!(stat["extent"], 16384);
    assert!(rig.pmo(["stat"], ["a"]).fine().out.contains("check words"));
    damage(&rig, 1000, [0, 0b101]);
    let bytes: Vec<u8> = (0..WORDS as u64).flat_map(u64::to_le_bytes).collect();
    let run =
        std::process::Command::new(env!("CARGO_BIN_EXE_pmo")).arg("cat").arg(&rig.pool).arg("a").output();
    assert_eq!(run.unwrap().stdout, bytes);
    rig.pmo(["resize"], ["a", "12K"]).fine();
    assert_eq!(rig.pmo(["stat"], ["a", "--json"]).fine().json()["size"], 12288);
    rig.pmo(["snapshot"], ["a", "--as", "then"]).fine();
    rig.pmo(["diff"], ["then", "a"]).fine();
    rig.pmo(["set"], ["a", "--class", "psync"]).fails(2, "check words");
    rig.pmo(["create"], ["b", "4K", "--ecc", "--class", "psync"]).fails(2, "check words");
    rig.pmo(["create"], ["b", "4K", "--ecc", "--sparse"]).fails(2, "it is sparse");
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(0));
    let pool = Pool::open(&rig.pool).unwrap();
    pool.create_with("h", &CreateOptions::new(64 << 10).ecc(true)).unwrap();
    let heap = pool.transactional_heap("h", 0).unwrap();
    heap.root_or_default::<TxCell<u64>>("hits").unwrap();
    drop((heap, pool));
    let roots = rig.pmo(["heap", "roots"], ["h"]).fine().out;
    assert!(roots.starts_with("hits: "), "{roots}");
    rig.pmo(["heap", "check"], ["h"]).fine();
}
