//! Code and models cite each rule of docs/protocol.md, and no others.

use crate::sources::{files, root, sources};
use std::collections::{BTreeMap, BTreeSet};

const MODELS: &str = "crates/models/protocol/";

fn stated(page: &str) -> Vec<&str> {
    page.lines()
        .filter_map(|line| line.strip_prefix("- **")?.split_once("** ").map(|(rule, _)| rule))
        .collect()
}

/// The rules that a source cites: `Rule L1`, `Rules D2 and D3`, `Rules G1 to G10`.
fn cited(text: &str) -> BTreeSet<String> {
    let mut cited = BTreeSet::new();
    for rest in text.split("Rule").skip(1) {
        let Some(rest) = rest.strip_prefix("s ").or(rest.strip_prefix(' ')) else { continue };
        let words = rest.split([' ', ',', ':', '.', ';', ')', '\n']);
        for word in words.take_while(|word| is_rule(word) || ["", "and"].contains(word)) {
            cited.extend(is_rule(word).then(|| word.to_owned()));
        }
    }
    cited
}

fn is_rule(word: &str) -> bool {
    let number = word.strip_prefix(['L', 'D', 'G']).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
}

fn faults(page: &str, code: &BTreeMap<String, String>, models: &BTreeMap<String, String>) -> Vec<String> {
    let stated: BTreeSet<_> = stated(page).into_iter().map(str::to_owned).collect();
    let mut faults = Vec::new();
    for (what, files) in [("code", code), ("a model", models)] {
        let mut seen = BTreeSet::new();
        for (file, text) in files {
            let cited = cited(text);
            faults.extend(
                cited.difference(&stated).map(|rule| format!("{file} cites {rule}, which is no rule")),
            );
            seen.extend(cited);
        }
        faults.extend(stated.difference(&seen).map(|rule| format!("{what} has to cite {rule}")));
    }
    faults
}

#[test]
fn every_rule_of_the_protocol_is_cited_by_code_and_by_a_model() {
    let page = std::fs::read_to_string(root().join("docs/protocol.md")).expect("docs/protocol.md");
    let mut all = sources("crates");
    let models = all.extract_if(.., |file, _| file.starts_with("crates/models/")).collect::<BTreeMap<_, _>>();
    let models = models.into_iter().filter(|(file, _)| file.starts_with(MODELS)).collect();
    all.retain(|file, _| !file.contains("/tests/"));
    let faults = faults(&page, &all, &models);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(stated(&page).len() > 30, "the page has lost its rules");
}

/// Each model is of one letter.
#[test]
fn rules_of_the_protocol_are_numbered_in_order() {
    let page = std::fs::read_to_string(root().join("docs/protocol.md")).expect("docs/protocol.md");
    let mut counts = BTreeMap::<char, usize>::new();
    for rule in stated(&page) {
        let (letter, number) = (rule.chars().next().expect("a letter"), rule[1..].parse().ok());
        let count = counts.entry(letter).or_default();
        *count += 1;
        assert_eq!(number, Some(*count), "{rule} is out of order");
    }
    for (file, text) in files(MODELS, &[".rs"]).iter().filter(|(file, _)| !file.ends_with("main.rs")) {
        let letters: BTreeSet<_> = cited(text).iter().filter_map(|rule| rule.chars().next()).collect();
        assert!(letters.len() <= 1, "{file} cites rules of {letters:?}");
    }
}

#[test]
fn a_rule_that_is_not_cited_would_be_noticed() {
    let page = "text\n- **L1** One.\n- **L2** Two.\n";
    assert_eq!(stated(page), ["L1", "L2"]);
    let of = |text: &str| BTreeMap::from([("a".to_owned(), text.to_owned())]);
    assert_eq!(faults(page, &of("// Rules L1 and L2."), &of("/// Rule L1: so.\n/// Rule L2: so.")), [""; 0]);
    assert_eq!(faults(page, &of("// Rule L1."), &of("Rules L1, L2")), ["code has to cite L2"]);
    assert_eq!(
        faults(page, &of("Rules L1 and L2"), &of("Rule L1. Rule L3")),
        ["a cites L3, which is no rule", "a model has to cite L2"]
    );
}
