//! Sizes of files, words that do not belong here, sentences of comments.

use crate::sources::files;

#[test]
fn files_stay_short() {
    for (file, text) in files("crates", &[".rs", ".py", ".pyi"]) {
        let lines = text.lines().count();
        let limit = if file.contains("/tests") { 700 } else { 450 };
        assert!(lines <= limit, "{file} has {lines} lines: which noun is missing?");
    }
}

#[test]
fn the_project_speaks_only_of_itself() {
    let registry = ["crates", ".io"].concat();
    let forge = ["github", ".com"].concat();
    let words =
        [["Co-", "Authored"].concat(), ["sub", "agent"].concat(), registry, forge, ["/work", "/"].concat()];
    for (file, text) in files("", &[".rs", ".py", ".pyi", ".md", ".toml", ".sh"]) {
        for word in &words {
            let found = text.lines().any(|line| line.contains(word.as_str()));
            assert!(!found, "{file} mentions {word}");
        }
    }
}

/// Lines of comments that begin a sentence with a pronoun where its subject, a noun, should be.
fn without_subject(text: &str) -> Vec<&str> {
    let begins = |line: &&str| {
        let said = line.trim_start().trim_start_matches(['/', '!', '#', '*']).trim_start();
        let is_comment = line.trim_start().starts_with(['/', '#', '*']);
        let first = said.split_whitespace().next().unwrap_or_default();
        is_comment
            && ["Who", "What", "Where", "Whoever", "Whatever"].contains(&first)
            && !said.ends_with(['?', ':'])
    };
    text.lines().filter(begins).collect()
}

#[test]
fn sentences_of_comments_have_a_subject() {
    for (file, text) in files("", &[".rs", ".py", ".c", ".h", ".hpp", ".sh"]) {
        assert_eq!(without_subject(&text), [""; 0], "{file}: name the subject");
    }
}

#[test]
fn a_sentence_without_a_subject_would_be_noticed() {
    for line in
        ["    /// What was psynced stays.", "// Who holds it waits.", "# Where it lies does not matter."]
    {
        assert_eq!(without_subject(line), [line]);
    }
    assert_eq!(
        without_subject("let what = 1; // What else?\n/// What is it?\n/// The holder waits."),
        [""; 0]
    );
}
