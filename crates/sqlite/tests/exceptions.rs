//! SQLite's own tests that fail on the VFS: `exceptions.tsv` has a row for each of their files.

use std::collections::BTreeMap;

const ROWS: &str = include_str!("../exceptions.tsv");
const RECORD: &str = include_str!("../../../docs/decisions/0070-sqlite.md");

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
    let sum = format!("{failed} of them fail");
    assert!(RECORD.contains(&sum), "the record does not say: {sum}");
    let sum = format!("{ended} more files end early");
    assert!(RECORD.contains(&sum), "the record does not say: {sum}");
}
