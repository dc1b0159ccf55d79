//! Sizes of files, forbidden words, sentences of comments.

use crate::sources::files;

#[test]
fn files_stay_short() {
    for (file, text) in files("crates", &[".rs", ".py", ".pyi"]) {
        let lines = text.lines().count();
        let limit = if file.contains("/tests") { 710 } else { 470 };
        assert!(lines <= limit, "{file} has {lines} lines: which noun is missing?");
    }
}

/// Wrappable lines of comments beyond the page width, without example code and tables.
fn wide_comments(text: &str) -> Vec<&str> {
    let mut example = false;
    text.lines()
        .filter(|line| {
            let Some(said) =
                line.trim_start().strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']))
            else {
                example = false;
                return false;
            };
            let said = said.trim_start();
            example ^= said.starts_with("```");
            let wraps = !example && !said.starts_with(['|', '`']) && said.contains(' ');
            wraps && line.chars().count() > 100
        })
        .collect()
}

#[test]
fn comments_are_wrapped_at_100_columns() {
    let mut wrong = Vec::new();
    for (file, text) in files("", &[".rs"]) {
        wrong.extend(wide_comments(&text).iter().map(|line| format!("{file}: {line}")));
    }
    assert!(wrong.is_empty(), "wrap at 100 columns:\n{}", wrong.join("\n"));
    let wide = format!("    /// {}", "word ".repeat(20));
    assert_eq!(wide_comments(&wide), [wide.as_str()]);
    let example = format!("/// ```\n{wide}\n/// ```\n{wide}");
    assert_eq!(wide_comments(&example), [wide.as_str()]);
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

/// Lines of comments or of a page with a sentence that begins with a pronoun in place of a noun.
fn without_subject(text: &str, is_page: bool) -> Vec<&str> {
    const PRONOUNS: [&str; 5] = ["Who ", "What ", "Whoever ", "Whatever ", "Whose "];
    let begins = |line: &&str| {
        let comment = line.trim_start().starts_with(['/', '#', '*']);
        let marks: &[char] = if is_page { &['-', ' '] } else { &['/', '!', '#', '*'] };
        let said = line.trim_start().trim_start_matches(marks).trim_start();
        let inside = said.match_indices(". ").map(|(at, _)| &said[at + 2..]);
        let mut sentences = std::iter::once(said).chain(inside);
        (if is_page { !line.starts_with('#') } else { comment })
            && !said.ends_with(['?', ':'])
            && sentences.any(|said| {
                let asks = said.split(['.', ':']).next().is_some_and(|sentence| sentence.contains('?'));
                PRONOUNS.iter().any(|word| said.starts_with(word)) && !asks
            })
    };
    text.lines().filter(begins).collect()
}

#[test]
fn sentences_of_comments_have_a_subject() {
    let mut wrong = Vec::new();
    for (endings, is_page) in [(&[".rs", ".py", ".c", ".h", ".hpp", ".sh"][..], false), (&[".md"], true)] {
        for (file, text) in files("", endings) {
            wrong.extend(without_subject(&text, is_page).iter().map(|line| format!("{file}: {line}")));
        }
    }
    assert!(wrong.is_empty(), "name the subject:\n{}", wrong.join("\n"));
}

fn named_by_a_pronoun(text: &str) -> Vec<&str> {
    let name = |line: &'_ str| line.trim_start().trim_start_matches("pub ").strip_prefix("fn ").map(str::len);
    let begins = |line: &&str| {
        let at = name(line).map_or(line.len(), |rest| line.len() - rest);
        ["what_", "who_", "whoever_", "whatever_", "where_"].iter().any(|word| line[at..].starts_with(word))
    };
    text.lines().filter(begins).collect()
}

#[test]
fn names_of_functions_have_a_subject() {
    for (file, text) in files("", &[".rs"]) {
        assert_eq!(named_by_a_pronoun(&text), [""; 0], "{file}: name the subject");
    }
    let line = "    fn what_is_lost_is_lost() {";
    assert_eq!(named_by_a_pronoun(line), [line]);
    assert_eq!(named_by_a_pronoun("fn whatsoever() { what_(); }"), [""; 0]);
}

#[test]
fn a_sentence_without_a_subject_would_be_noticed() {
    for line in
        ["    /// What was psynced stays.", "// It waits. Who holds it goes on.", "# Whatever fails is said."]
    {
        assert_eq!(without_subject(line, false), [line]);
    }
    let fine =
        "let what = 1; // What else?\n/// What is it?\n/// The holder waits.\nWhat is text is no comment.";
    assert_eq!(without_subject(fine, false), [""; 0]);
    assert_eq!(without_subject("It fails. Who waits goes on.", true).len(), 1);
}
