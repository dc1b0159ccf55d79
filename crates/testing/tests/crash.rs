use indelible_store::medium::Medium;
use indelible_testing::for_each_crash;
use indelible_testing::{CrashFailure, CrashReport, Limits, SimConfig, SimMedium, TearUnit};

const RECORD: u64 = 64;
const DATA: u64 = 4096;
const SIZE: usize = 256;

#[derive(Clone, Copy, PartialEq)]
enum Broken {
    Nothing,
    BarrierBeforeCommit,
    BarrierAfterCommit,
    /// Recovery ignores the record's second word.
    Check,
}

fn commit(m: &SimMedium, value: u8, broken: Broken) {
    let at = DATA * (1 + u64::from(value) % 2);
    m.write(at, &[value; SIZE]).unwrap();
    if broken != Broken::BarrierBeforeCommit {
        m.barrier().unwrap();
    }
    let mut record = [0; 16];
    record[0] = value;
    record[8] = !value;
    m.write(RECORD, &record).unwrap();
    if broken != Broken::BarrierAfterCommit {
        m.barrier().unwrap();
    }
}

fn recover(m: &SimMedium, broken: Broken) -> Option<[u8; SIZE]> {
    let mut record = [0; 16];
    m.read(RECORD, &mut record).unwrap();
    if broken != Broken::Check && record[0] != !record[8] {
        return None;
    }
    let mut data = [0; SIZE];
    m.read(DATA * (1 + u64::from(record[0]) % 2), &mut data).unwrap();
    Some(data)
}

fn run(broken: Broken, tear_unit: TearUnit) -> Result<CrashReport, CrashFailure> {
    let m = SimMedium::new(1 << 30, SimConfig { tear_unit, ..SimConfig::default() });
    commit(&m, 1, Broken::Nothing);
    let record = |m: &SimMedium| {
        for value in 2..5u8 {
            commit(m, value, broken);
            m.mark(u64::from(value));
        }
    };
    for_each_crash(
        &m,
        record,
        |image| {
            let acknowledged = image.last_mark().map_or(1, |mark| mark as u8);
            let Some(data) = recover(&image.medium(), broken) else {
                return Err("no valid record".to_string());
            };
            if data.iter().any(|b| *b != data[0]) {
                return Err(format!("torn: {data:?}"));
            }
            match data[0] {
                value if value == acknowledged || value == acknowledged + 1 => Ok(()),
                value => Err(format!("{value} although {acknowledged} was acknowledged")),
            }
        },
        &Limits::default(),
    )
}

#[test]
fn a_correct_protocol_passes() {
    let report = run(Broken::Nothing, TearUnit::Sector).unwrap();
    assert_eq!((report.points, report.points_skipped), (16, 0));
    assert_eq!(report.distinct, 1 + 3 * 3);
    assert!(report.images > report.distinct);
}

#[test]
fn a_record_that_tears_is_caught() {
    let failure = run(Broken::Nothing, TearUnit::Word).unwrap_err();
    assert_eq!(failure.cause, "no valid record");
    run(Broken::Check, TearUnit::Word).expect("a word alone does not tear");
}

#[test]
fn a_missing_barrier_is_caught() {
    for broken in [Broken::BarrierBeforeCommit, Broken::BarrierAfterCommit] {
        for unit in [TearUnit::Line, TearUnit::Sector] {
            let failure = run(broken, unit).unwrap_err();
            assert!(failure.to_string().contains("Cut { before: "), "{failure}");
            assert!(!failure.tail.is_empty());
        }
    }
}

#[test]
fn equal_images_are_judged_once_per_promise() {
    let m = SimMedium::new(4096, SimConfig::default());
    let record = |m: &SimMedium| {
        m.write(0, &[1]).unwrap();
        m.barrier().unwrap();
        m.barrier().unwrap();
        m.mark(1);
    };
    let mut judged = Vec::new();
    let judge = |image: &indelible_testing::CrashImage| {
        judged.push((image.medium().to_bytes()[0], image.last_mark()));
        Ok::<(), String>(())
    };
    let report = for_each_crash(&m, record, judge, &Limits::default()).unwrap();
    assert_eq!(judged, [(0, None), (1, None), (1, Some(1))]);
    assert_eq!((report.events, report.points, report.images), (4, 5, 6));
}

#[test]
fn crashes_nest() {
    let m = SimMedium::new(4096, SimConfig::default());
    let mut inner = 0;
    let record = |m: &SimMedium| m.write(0, &[1; 1024]).unwrap();
    let judge = |image: &indelible_testing::CrashImage| {
        let repair = |m: &SimMedium| m.write_durable(0, &[2; 1024]).unwrap();
        let accept = |_: &indelible_testing::CrashImage| Ok::<(), String>(());
        let report = for_each_crash(&image.medium(), repair, accept, &Limits::default())?;
        inner += report.distinct;
        Ok::<(), CrashFailure>(())
    };
    let report = for_each_crash(&m, record, judge, &Limits::default()).unwrap();
    assert_eq!((report.distinct, inner), (4, 16));
}

/// Thousands of separate images of 16 MiB would not fit into memory.
#[test]
fn images_share_what_they_have_in_common() {
    let m = SimMedium::new(64 << 30, SimConfig::default());
    for at in 0..64u64 {
        m.write(at << 30, &vec![at as u8 + 1; 256 << 10]).unwrap();
    }
    m.settle();
    let record = |m: &SimMedium| {
        for i in 0..100u64 {
            m.write((i % 64) << 30, &[i as u8; 3000]).unwrap();
            if i % 10 == 9 {
                m.barrier().unwrap();
            }
        }
    };
    let mut kept = Vec::new();
    let keep = |image: &indelible_testing::CrashImage| {
        kept.push(image.clone());
        Ok::<(), String>(())
    };
    let report = for_each_crash(&m, record, keep, &Limits::default()).unwrap();
    assert!(report.distinct > 2000, "{report:?}");
}
