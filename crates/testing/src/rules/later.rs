use super::{CONFIG, KEY, Verdict, create, open};
use crate::hostile::pool::pools;
use crate::pool::{psync, recover_all, snapshot};
use crate::scenario::formatted;
use crate::sim::{SimConfig, SimMedium};
use indelible_store::error::StoreError;
use indelible_store::format::batch::{self, SKIPPABLE, Section};
use indelible_store::format::entry::{CLASS_PSYNC, Entry, FLAG_ECC, OPTIONAL_FLAGS};
use indelible_store::format::{DATA, LINE, PAGE, TABLE_LANE, TABLE_LANE_LEN, checksum};
use indelible_store::lane::LaneLog;
use indelible_store::medium::{Medium, read_struct};
use indelible_store::store::{RepairOptions, Store};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, IntoBytes};

type Change = fn(&mut Entry);

pub(super) fn an_object_of_a_later_release_is_left_alone() -> Verdict {
    let check_words_without_transactions: Change = |entry| {
        (entry.class, entry.size) = (CLASS_PSYNC, U64::new(2 * PAGE));
        entry.set(FLAG_ECC, true);
    };
    let changes: [(Change, bool); 5] = [
        (|entry| entry.class = 4, false),
        (|entry| entry.retention = 7, false),
        (check_words_without_transactions, false),
        (|entry| entry.flags = U32::new(entry.flags.get() | 0x4000), false),
        (|entry| entry.flags = U32::new(entry.flags.get() | OPTIONAL_FLAGS), true),
    ];
    for (nth, (change, may)) in changes.into_iter().enumerate() {
        let medium = formatted(1 << 20, CONFIG);
        let store = open(&medium, 1);
        ["a", "b"].iter().for_each(|name| create(&store, name, 5000));
        let (offset, seed) = (store.find("a").unwrap().offset, store.superblock().seed.get());
        drop(store);
        let mut log = LaneLog::read(&medium, seed, TABLE_LANE, TABLE_LANE_LEN, 1).unwrap();
        log.next_generation(&medium, seed).unwrap();
        let mut entry: Entry = read_struct(&medium, offset).unwrap();
        change(&mut entry);
        medium.write(offset, entry.sealed(seed).as_bytes()).unwrap();
        let store = open(&medium, 2);
        psync(&mut store.attach_writer("b", KEY).unwrap(), &[(0, &[1])]).unwrap();
        let is_known =
            |result: Result<(), StoreError>| !matches!(result, Err(StoreError::ObjectFeature { .. }));
        let uses = [
            is_known(store.attach_writer("a", KEY).map(drop)),
            is_known(store.attach_reader("a", KEY).map(drop)),
            is_known(store.resize("a", KEY, 9000).map(drop)),
            is_known(store.rename("a", "c", KEY)),
            is_known(store.destroy(if may { "c" } else { "a" }, KEY)),
        ];
        if uses.iter().any(|used| *used != may) {
            return Err(format!("change {nth}: used {uses:?}"));
        }
    }
    Ok(())
}

pub(super) fn a_section_of_a_later_release_refuses_its_lane() -> Verdict {
    let pool = pools().iter().find(|pool| pool.name == "torn").ok_or("no such pool")?;
    for (flags, refused) in [(0, true), (SKIPPABLE, false), (SKIPPABLE | 2, true)] {
        let medium = SimMedium::from_bytes(&pool.image, SimConfig::default());
        let seed = open(&medium, 1).superblock().seed.get();
        change_second_section(&medium, seed, |section| {
            (section.kind, section.flags) = (U16::new(9), U16::new(flags));
        });
        let store = open(&medium, 2);
        let attached = store.attach_writer("right", KEY).map(drop);
        if attached.is_err() != refused {
            return Err(format!("flags {flags}: {attached:?}"));
        }
        drop(store);
        if refused {
            let report = Store::check(std::sync::Arc::new(medium.handle()), &mut |_, _| {});
            if report.is_ok_and(|report| report.findings.is_empty()) {
                return Err(format!("flags {flags}: the check says nothing"));
            }
            let before = medium.to_bytes();
            let how = RepairOptions { drop_damaged: true, ..RepairOptions::default() };
            let repaired = Store::repair(std::sync::Arc::new(medium.handle()), &how, &mut |_, _| {});
            if repaired.is_ok() || medium.to_bytes() != before {
                return Err(format!("flags {flags}: repair gave up what it does not know"));
            }
            continue;
        }
        let store = open(&medium, 3);
        recover_all(&store).map_err(|error| error.to_string())?;
        let found = snapshot(&store).map_err(|error| error.to_string())?;
        for name in ["left", "loading"] {
            let states = &pool.history[name];
            if found[name].2 != states[states.len() - 1] {
                return Err(format!("with a section of another left out, {name} is not as it was"));
            }
        }
    }
    Ok(())
}

fn change_second_section(medium: &SimMedium, seed: u64, change: impl Fn(&mut Section)) {
    let bytes = medium.to_bytes();
    let headers = (DATA..bytes.len() as u64).step_by(LINE as usize).filter_map(|at| {
        let header = batch::Header::read_from_bytes(&bytes[at as usize..(at + LINE) as usize]).ok()?;
        (header.magic.get() == batch::MAGIC
            && header.sections.get() == 2
            && header.sum(seed) == header.head_sum.get())
        .then_some((at, header))
    });
    let (at, mut header) = headers.max_by_key(|(_, header)| header.sequence.get()).unwrap();
    let mut body = bytes[(at + LINE) as usize..(at + header.len.get()) as usize].to_vec();
    let from = header.lines.get() as usize * LINE as usize + size_of::<Section>();
    let section = &mut body[from..from + size_of::<Section>()];
    let mut changed = Section::read_from_bytes(section).unwrap();
    change(&mut changed);
    section.copy_from_slice(changed.as_bytes());
    header.body_sum = U64::new(checksum(seed, &[&body]));
    header.head_sum = U64::new(header.sum(seed));
    medium.write(at, header.as_bytes()).unwrap();
    medium.write(at + LINE, &body).unwrap();
    medium.settle();
}
