//! SQLite's own tests on the VFS: `exceptions.tsv` has a row for each file with failures,
//! `passed.tsv` for each without one in the second run.

use std::collections::BTreeMap;

const ROWS: &str = include_str!("../exceptions.tsv");
const RECORD: &str = include_str!("../../../docs/decisions/0070-sqlite.md");

#[track_caller]
fn says(sum: &str) {
    assert!(RECORD.replace('\n', " ").contains(sum), "the record does not say: {sum}");
}

#[test]
fn each_exception_has_a_known_reason_and_the_record_has_their_sum() {
    let mut reasons = BTreeMap::new();
    let (mut last, mut failed, mut ended) = ("", 0, 0);
    for line in ROWS.lines().filter(|line| !line.is_empty()) {
        if let Some(reason) = line.strip_prefix("# reason ") {
            let (word, _) = reason.split_once(": ").unwrap();
            assert_eq!(reasons.insert(word, 0), None, "{line}");
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let cells: Vec<&str> = line.split('\t').collect();
        let [file, cases, failures, why] = cells[..] else { panic!("{line}: not four cells") };
        assert!(last < file, "{line}: out of order");
        last = file;
        for word in why.split(' ') {
            *reasons.get_mut(word).unwrap_or_else(|| panic!("{line}: unknown reason")) += 1;
        }
        if failures == "-" {
            ended += 1;
            continue;
        }
        let (cases, failures): (u64, u64) = (cases.parse().unwrap(), failures.parse().unwrap());
        assert!(0 < failures && failures <= cases, "{line}");
        failed += failures;
    }
    assert!(reasons.values().all(|files| *files > 0), "{reasons:?}");
    says(&format!("{failed} of them fail"));
    says(&format!("{ended} more files end early"));
}

const PASSED: &str = include_str!("../passed.tsv");

#[test]
fn each_file_without_a_failure_has_its_count_and_the_record_their_sum() {
    let rows = |text: &'static str| text.lines().filter(|line| !line.starts_with('#'));
    let failing: Vec<&str> = rows(ROWS).filter_map(|line| line.split('\t').next()).collect();
    let (mut last, mut files, mut cases) = ("", 0, 0);
    for line in rows(PASSED) {
        let (file, count) = line.split_once('\t').unwrap();
        assert!(last < file && !failing.contains(&file), "{line}: out of order, or an exception");
        last = file;
        let count: u64 = count.parse().unwrap();
        assert!(count > 0, "{line}");
        files += 1;
        cases += count;
    }
    says(&format!("{files} files with {cases} cases"));
}
