use indelible_store::medium::{Fatal, Medium, MediumError, ReserveError};
use indelible_testing::{Choice, Discard, EventKind, Fault, Limits, OpKind, SimConfig, SimMedium, TearUnit};
use std::collections::BTreeSet;

const LEN: u64 = 16 * 1024;

fn medium(tear_unit: TearUnit) -> SimMedium {
    SimMedium::new(LEN, SimConfig { tear_unit, ..SimConfig::default() })
}

fn cuts_now(medium: &SimMedium, offsets: &[u64]) -> BTreeSet<Vec<u8>> {
    let before = medium.events().last().map_or(0, |(seq, _)| seq + 1);
    let limits = Limits { exhaustive: 1 << 16, ..Limits::default() };
    medium
        .power_cut_states(&limits)
        .filter(|image| image.cut().before == before)
        .map(|image| bytes_at(&image.medium(), offsets))
        .collect()
}

fn bytes_at(medium: &SimMedium, offsets: &[u64]) -> Vec<u8> {
    let mut byte = [0];
    let read = |at: &u64| {
        medium.read(*at, &mut byte).unwrap();
        byte[0]
    };
    offsets.iter().map(read).collect()
}

fn set<const N: usize, const M: usize>(states: [[u8; N]; M]) -> BTreeSet<Vec<u8>> {
    states.iter().map(|state| state.to_vec()).collect()
}

#[test]
fn write_is_visible_at_once_and_may_be_lost() {
    let m = medium(TearUnit::Sector);
    m.write(100, &[5]).unwrap();
    assert_eq!(bytes_at(&m.handle(), &[100]), [5]);
    assert_eq!(cuts_now(&m, &[100]), set([[0], [5]]));
}

#[test]
fn barrier_makes_every_earlier_write_durable() {
    let m = medium(TearUnit::Word);
    m.write(0, &[5; 3000]).unwrap();
    m.barrier().unwrap();
    assert_eq!(cuts_now(&m, &[0, 1500, 2999, 3000]), set([[5, 5, 5, 0]]));
    assert_eq!(m.events()[1].1.kind, EventKind::Barrier { before: 1 });
    m.write(0, &[6]).unwrap();
    assert_eq!(cuts_now(&m, &[0, 8]), set([[5, 5], [6, 5]]));
}

#[test]
fn durable_write_covers_its_own_bytes_alone() {
    let m = medium(TearUnit::Line);
    m.write(0, &[1; 64]).unwrap();
    m.write_durable(64, &[2; 64]).unwrap();
    assert_eq!(cuts_now(&m, &[0, 64]), set([[0, 2], [1, 2]]));
}

#[test]
fn durable_write_is_torn_by_a_cut_during_it() {
    let m = medium(TearUnit::Line);
    m.write_durable(0, &[2; 128]).unwrap();
    assert!(matches!(m.events()[0].1.kind, EventKind::WriteDurable));
    let limits = Limits::default();
    let during = m.power_cut_states(&limits).filter(|image| image.cut().before == 1);
    let states: BTreeSet<_> = during.map(|i| bytes_at(&i.medium(), &[0, 64])).collect();
    assert_eq!(states, set([[0, 0], [0, 2], [2, 0], [2, 2]]));
    assert_eq!(cuts_now(&m, &[0, 64]), set([[2, 2]]));
}

#[test]
fn writes_tear_at_the_unit_and_nowhere_else() {
    for unit in [TearUnit::Word, TearUnit::Line, TearUnit::Sector] {
        let (m, size) = (medium(unit), unit.bytes() as u64);
        assert_eq!(m.capabilities().tear_unit as u64, size);
        m.write(size, &vec![9; 2 * size as usize]).unwrap();
        let states = cuts_now(&m, &[size, 2 * size - 1, 2 * size, 3 * size - 1]);
        assert_eq!(states, set([[0, 0, 0, 0], [9, 9, 0, 0], [0, 0, 9, 9], [9, 9, 9, 9]]));
    }
}

#[test]
fn writes_to_one_unit_persist_in_order() {
    let m = medium(TearUnit::Line);
    m.write(0, &[1]).unwrap();
    m.write(1, &[2]).unwrap();
    m.write(0, &[3]).unwrap();
    assert_eq!(cuts_now(&m, &[0, 1]), set([[0, 0], [1, 0], [1, 2], [3, 2]]));
}

#[test]
fn every_subset_is_enumerated_once() {
    let m = medium(TearUnit::Word);
    m.write(0, &[1; 8]).unwrap();
    m.write(0, &[2; 8]).unwrap();
    m.write(8, &[1; 32]).unwrap();
    let last = m.power_cut_states(&Limits::default()).filter(|i| i.cut().before == 3);
    let digests: Vec<u64> = last.map(|image| image.digest()).collect();
    assert_eq!(digests.len(), 3 * 16);
    assert_eq!(digests.iter().collect::<BTreeSet<_>>().len(), 3 * 16);
    // Above the limit: none, all, each alone, all but each, random ones.
    let limits = Limits { exhaustive: 47, random: 5, ..Limits::default() };
    let choices: Vec<Choice> =
        m.power_cut_states(&limits).filter(|i| i.cut().before == 3).map(|i| i.cut().choice).collect();
    assert_eq!(choices.len(), 2 + 2 * 3 + 5);
    let expected = [Choice::None, Choice::All, Choice::Only(0), Choice::AllBut(0)];
    assert_eq!(choices[..4], expected);
}

#[test]
fn points_are_thinned_evenly_and_counted() {
    let m = medium(TearUnit::Sector);
    for mark in 0..99 {
        m.mark(mark);
    }
    let mut images = m.power_cut_states(&Limits { points: 10, ..Limits::default() });
    let cuts: Vec<u64> = images.by_ref().map(|image| image.cut().before).collect();
    assert_eq!(cuts, [9, 19, 29, 39, 49, 59, 69, 79, 89, 99]);
    assert_eq!((images.points(), images.points_skipped()), (10, 90));
}

#[test]
fn an_image_can_be_had_again() {
    let m = medium(TearUnit::Word);
    for i in 0..20u8 {
        m.write(u64::from(i) * 50, &[i + 1; 70]).unwrap();
    }
    for image in m.power_cut_states(&Limits { exhaustive: 1, ..Limits::default() }) {
        assert_eq!(m.crash_at(image.cut()).digest(), image.digest());
    }
}

#[test]
fn forgetting_the_log_keeps_what_is_pending() {
    let m = medium(TearUnit::Sector);
    m.write(0, &[1]).unwrap();
    m.forget_log();
    m.mark(1);
    assert_eq!(cuts_now(&m, &[0]), set([[0], [1]]));
    m.settle();
    m.mark(2);
    assert_eq!(cuts_now(&m, &[0]), set([[1]]));
}

#[test]
fn a_failed_barrier_leaves_both_outcomes_for_good() {
    let m = medium(TearUnit::Sector);
    m.write(0, &[1]).unwrap();
    m.fail_at(OpKind::Barrier, 0, Fault::Io);
    assert!(matches!(m.barrier(), Err(Fatal(MediumError::Io(_)))));
    m.barrier().unwrap();
    assert_eq!(cuts_now(&m, &[0]), set([[0], [1]]), "the page is marked clean");
    m.write(0, &[1]).unwrap();
    m.barrier().unwrap();
    assert_eq!(cuts_now(&m, &[0]), set([[1]]), "written again, it is dirty again");
}

/// `errseq_t`: no handle opened after the first report gets the error.
#[test]
fn a_writeback_error_is_told_once_to_each_handle() {
    let m = medium(TearUnit::Line);
    let other = m.handle();
    m.write(0, &[1]).unwrap();
    m.fail_at(OpKind::Barrier, 0, Fault::Io);
    assert!(m.barrier().is_err());
    let late = m.handle();
    assert!(m.barrier().is_ok() && late.barrier().is_ok());
    assert!(other.error_due() && other.barrier().is_err() && other.write_durable(64, &[1]).is_err());
    assert!(!other.error_due() && other.barrier().is_ok() && other.write_durable(64, &[1]).is_ok());
}

#[test]
fn an_error_nobody_was_told_of_is_told_to_a_handle_opened_later() {
    let m = medium(TearUnit::Line);
    m.write(0, &[1]).unwrap();
    m.fail_writeback(true);
    let late = m.handle();
    let Err(Fatal(MediumError::Io(error))) = late.write_durable(64, &[2]) else {
        panic!("told by its write")
    };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert!(late.write_durable(64, &[2]).is_ok() && m.handle().barrier().is_ok());
    assert!(late.check_writeback().is_ok() && late.barrier().is_err() && late.barrier().is_ok());
    assert!(m.check_writeback().is_err() && m.check_writeback().is_ok());
    assert!(m.barrier().is_err() && m.barrier().is_ok());
    assert_eq!(cuts_now(&m, &[0]), set([[0], [1]]));
}

#[test]
fn writes_after_a_failure_are_made_durable_by_another_handle() {
    let m = medium(TearUnit::Line);
    let other = m.handle();
    m.fail_writeback(false);
    m.write(0, &[1]).unwrap();
    assert!(m.barrier().is_err());
    assert_eq!(cuts_now(&m, &[0]), set([[0], [1]]));
    assert!(other.barrier().is_err() && other.barrier().is_ok());
    assert_eq!(cuts_now(&m, &[0]), set([[1]]));
}

#[test]
fn a_failed_durable_write_loses_earlier_writes_of_its_units_and_is_known_to_others() {
    for fault in [Fault::Io, Fault::NoSpace, Fault::Short, Fault::After] {
        for seed in 0..20 {
            let m = medium(TearUnit::Line);
            m.reseed(seed);
            let other = m.handle();
            m.write(0, &[1]).unwrap();
            m.fail_at(OpKind::WriteDurable, 0, fault);
            assert!(m.write_durable(1, &[2; 10]).is_err());
            assert!(m.barrier().is_err() && m.barrier().is_ok());
            assert!(
                cuts_now(&m, &[0]).contains(&vec![0]),
                "{fault:?}: pages that were not written back are lost"
            );
            assert!(other.barrier().is_err());
        }
    }
}

#[test]
fn an_evicted_page_shows_what_is_durable() {
    let mut seen = BTreeSet::new();
    for seed in 0..20 {
        let m = medium(TearUnit::Line);
        m.reseed(seed);
        m.write(0, &[1; 128]).unwrap();
        m.write(4096, &[1; 128]).unwrap();
        m.fail_writeback(false);
        m.write(4096, &[2; 64]).unwrap();
        m.evict();
        let shown = bytes_at(&m, &[0, 64, 4096, 4160]);
        assert_eq!(shown[2..], [2, 1], "a dirty page stays");
        assert!(cuts_now(&m, &[0, 64]) == [shown[..2].to_vec()].into(), "what is shown is durable");
        seen.insert(shown[..2].to_vec());
    }
    assert_eq!(seen, set([[0, 0], [0, 1], [1, 0], [1, 1]]));
}

#[test]
fn a_short_write_is_a_prefix() {
    let mut lengths = BTreeSet::new();
    for seed in 0..50 {
        let m = SimMedium::new(LEN, SimConfig { seed, ..SimConfig::default() });
        m.fail_from(OpKind::Write, 0, Fault::Short);
        assert!(m.write(10, &[1; 100]).is_err());
        let bytes = m.to_bytes();
        let len = bytes[10..].iter().take_while(|b| **b == 1).count();
        assert_eq!(bytes.iter().filter(|b| **b == 1).count(), len);
        lengths.insert(len);
        m.clear_faults();
        m.write(10, &[1; 100]).unwrap();
    }
    assert!(lengths.len() > 10);
}

#[test]
fn zero_is_a_write_and_costs_nothing_where_nothing_is() {
    let m = SimMedium::new(1 << 40, SimConfig::default());
    m.write(1 << 39, &[1; 1024]).unwrap();
    m.barrier().unwrap();
    m.zero(0, 1 << 40).unwrap();
    assert_eq!(bytes_at(&m, &[1 << 39]), [0]);
    let states = cuts_now(&m, &[1 << 39, (1 << 39) + 512]);
    assert_eq!(states, set([[0, 0], [0, 1], [1, 0], [1, 1]]));
    m.barrier().unwrap();
    assert_eq!(cuts_now(&m, &[1 << 39]), set([[0]]));
}

#[test]
fn zeroing_a_stuck_unit_that_reads_as_zero_makes_it_dirty() {
    let m = medium(TearUnit::Sector);
    m.write(0, &[1; 512]).unwrap();
    m.barrier().unwrap();
    m.zero(0, 4096).unwrap();
    m.fail_at(OpKind::Barrier, 0, Fault::Io);
    assert!(m.barrier().is_err());
    m.zero(0, 4096).unwrap();
    m.barrier().unwrap();
    assert_eq!(cuts_now(&m, &[0]), set([[0]]));
}

#[test]
fn discarded_contents_are_undefined() {
    let mut seen = BTreeSet::new();
    for seed in 0..30 {
        let m = SimMedium::new(1 << 40, SimConfig { seed, ..SimConfig::default() });
        m.write(0, &[1; 4096]).unwrap();
        m.discard(0, 1 << 40);
        m.reserve(0, 4096).unwrap();
        seen.insert(bytes_at(&m, &[0, (1 << 40) - 1]));
    }
    assert!(seen.contains(&vec![1, 0]) && seen.contains(&vec![0, 0]) && seen.len() > 5);
    let keep = SimConfig { discard: Discard::Keep, ..SimConfig::default() };
    let m = SimMedium::from_bytes(&[7; 100], keep);
    m.discard(0, 100);
    assert_eq!(m.to_bytes(), [7; 100]);
}

#[test]
fn damage_is_durable_at_once() {
    let m = SimMedium::from_bytes(&[0; 2000], SimConfig::default());
    m.flip(700, 3);
    m.scribble(1000..2000, 9);
    assert_eq!(bytes_at(&m, &[699, 700, 999]), [0, 8, 0]);
    assert!(m.to_bytes()[1000..].iter().collect::<BTreeSet<_>>().len() > 100);
    assert_eq!(m.power_cut(Choice::None).digest(), m.digest());
}

fn beyond<E: Into<ReserveError>>(result: Result<(), E>) -> bool {
    let error = result.map_err(Into::into);
    matches!(error, Err(ReserveError::Fatal(Fatal(MediumError::OutOfBounds { size: 1000, .. }))))
}

#[test]
fn bounds_and_permissions() {
    let m = SimMedium::new(1000, SimConfig { disk: true, ..SimConfig::default() });
    assert!(m.capabilities().shares_commits && !m.read_only() && m.len() == 1000);
    m.write(999, &[1]).unwrap();
    for (offset, len) in [(1000, 1), (0, 1001), (u64::MAX, 1)] {
        let bytes = vec![0; len as usize];
        assert!(beyond(m.write(offset, &bytes)) && beyond(m.write_durable(offset, &bytes)));
        assert!(beyond(m.read(offset, &mut bytes.clone())));
        assert!(beyond(m.zero(offset, len)) && beyond(m.reserve(offset, len)));
        m.discard(offset, len);
    }
    let reader = m.read_only_handle();
    assert!(reader.read_only());
    assert_eq!(bytes_at(&reader, &[999]), [1]);
    assert!(matches!(reader.write(0, &[1]), Err(Fatal(MediumError::ReadOnly))));
    assert!(matches!(reader.write_durable(0, &[1]), Err(Fatal(MediumError::ReadOnly))));
    assert!(matches!(reader.zero(0, 1), Err(Fatal(MediumError::ReadOnly))));
    reader.discard(999, 1);
    assert_eq!(m.events().len(), 1);
}

#[test]
fn a_vanished_file_is_reported() {
    let m = medium(TearUnit::Sector);
    m.verify().unwrap();
    m.fail_from(OpKind::Verify, 1, Fault::Gone("deleted"));
    m.verify().unwrap();
    for _ in 0..2 {
        assert!(matches!(m.verify(), Err(MediumError::Gone { what: "deleted" })));
    }
}

#[test]
fn a_spoiled_sector_is_unreadable_until_it_is_written() {
    let m = medium(TearUnit::Line);
    m.write(0, &[1; 2048]).unwrap();
    m.spoil(600..601);
    let mut byte = [0];
    m.read(511, &mut byte).unwrap();
    m.read(1024, &mut byte).unwrap();
    for at in [512, 1023] {
        assert!(matches!(m.read(at, &mut byte), Err(MediumError::Io(_))));
    }
    assert!(matches!(m.read(0, &mut [0; 2048]), Err(MediumError::Io(_))));
    for (at, len) in [(512, 511), (513, 511), (0, 600), (700, 1)] {
        assert!(m.write(at, &vec![2; len]).is_err() && m.write_durable(at, &vec![2; len]).is_err());
        assert!(m.zero(at, len as u64).is_err());
    }
    assert_eq!(m.handle().to_bytes()[512], 1, "a write that fails changes nothing");
    m.write(512, &[3; 512]).unwrap();
    assert_eq!(bytes_at(&m, &[511, 512, 1023, 1024]), [1, 3, 3, 1]);
}
