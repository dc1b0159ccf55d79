//! `cargo xtask book`: the pages of the project as one book, by mdBook.
//!
//! `docs/book/SUMMARY.md` lists the pages. They are copied with the images that they show; a link
//! to a file that is no page of the book becomes plain text.

use crate::command::{Result, cargo, target};
use crate::files::{self, copy, read, write};
use crate::plan::Outcome;
use crate::programs::project;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The list of pages, with links from its own folder.
const SUMMARY: &str = "docs/book/SUMMARY.md";
const SETTINGS: &str = "[book]\ntitle = \"Indelible\"\nlanguage = \"en\"\nsrc = \"src\"\n\n[output.html]\n\
                        preferred-dark-theme = \"navy\"\nadditional-css = [\"wide.css\"]\n\n\
                        [output.html.fold]\nenable = true\n";
/// Programs have lines of 100 columns.
const WIDE: &str = ":root { --content-max-width: 960px; }\n";

pub(crate) fn run() -> Result<Outcome> {
    let project = project()?;
    let folder = target().join("book");
    let _ = fs::remove_dir_all(&folder);
    let source = files::folder(&folder, "src")?;
    let summary = read(&project.join(SUMMARY))?;
    let pages: BTreeSet<PathBuf> =
        links(&summary).iter().map(|link| beside(SUMMARY.as_ref(), link)).collect();
    for page in &pages {
        let text = read(&project.join(page))?;
        for image in links(&text).iter().map(|link| beside(page, link)).filter(|file| is_image(file)) {
            copy(&project.join(&image), &source.join(image))?;
        }
        let inside = |link: &str| {
            let file = beside(page, link);
            link.contains("://") || link.starts_with('#') || pages.contains(&file) || is_image(&file)
        };
        files::folder(&source, &page.parent().unwrap_or(page).to_string_lossy())?;
        write(&source.join(page), &linked(&text, inside))?;
    }
    let of_root = summary.replace("](../../", "](").replace("](../", "](docs/");
    write(&source.join("SUMMARY.md"), &of_root)?;
    write(&folder.join("book.toml"), SETTINGS)?;
    write(&folder.join("wide.css"), WIDE)?;
    let Some(program) = program() else {
        return Ok(Outcome::NotTested("mdBook is not there, and could not be installed".into()));
    };
    let built = Command::new(program).arg("build").arg(&folder).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("mdBook failed".into());
    }
    println!("{}", folder.join("book/index.html").display());
    Ok(Outcome::Passed)
}

/// mdBook: the one on the path, or one that is installed in the target folder, once.
fn program() -> Option<PathBuf> {
    let works =
        |path: &Path| Command::new(path).arg("--version").output().is_ok_and(|done| done.status.success());
    let root = target().join("tools");
    let own = root.join("bin/mdbook");
    if let Some(found) = [PathBuf::from("mdbook"), own.clone()].into_iter().find(|path| works(path)) {
        return Some(found);
    }
    let mut install = cargo(&["install", "mdbook", "--no-default-features", "--root"]);
    // In a target folder of its own: the project's has other features of the same libraries.
    install.arg(&root).env("CARGO_TARGET_DIR", root.join("build"));
    install.status().is_ok_and(|status| status.success()).then_some(own)
}

fn is_image(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "svg" || ending == "png")
}

fn beside(page: &Path, link: &str) -> PathBuf {
    let link = link.split('#').next().unwrap_or_default();
    let mut file = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => _ = file.pop(),
            part => file.push(part),
        }
    }
    file
}

fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    linked(text, |link| {
        found.push(link.to_owned());
        true
    });
    found
}

/// The page, with only the labels of links that `keep` refuses by their targets.
fn linked(text: &str, mut keep: impl FnMut(&str) -> bool) -> String {
    let (mut out, mut rest, mut example) = (String::new(), text, false);
    while !rest.is_empty() {
        // A label may go on in the next line: the part up to the next example is one text.
        let fence = rest.find("```").unwrap_or(rest.len());
        let (part, behind) = rest.split_at(fence);
        if example {
            out.push_str(part)
        } else {
            out.push_str(&of_prose(part, &mut keep))
        }
        let fence = behind.len().min(3);
        out.push_str(&behind[..fence]);
        (rest, example) = (&behind[fence..], !example);
    }
    out
}

fn of_prose(text: &str, keep: &mut impl FnMut(&str) -> bool) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(middle) = rest.find("](") {
        let (begin, target) = (rest[..middle].rfind('['), &rest[middle + 2..]);
        let (Some(begin), Some(end)) = (begin, target.find(')')) else {
            out.push_str(&rest[..middle + 2]);
            rest = target;
            continue;
        };
        let (label, link) = (&rest[begin + 1..middle], &target[..end]);
        if keep(link) {
            out.push_str(&rest[..middle + 3 + end]);
        } else {
            out.push_str(&rest[..begin]);
            out.push_str(label);
        }
        rest = &target[end + 1..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages_of_the_book_and_others_become_text() {
        let page =
            "See [the code](../src/a.rs),\n[a\npage](b.md#here) and ![a plot](c.svg).\n```\n[x](y)\n```\n";
        assert_eq!(links(page), ["../src/a.rs", "b.md#here", "c.svg"]);
        let kept = linked(page, |link| !link.ends_with(".rs"));
        assert_eq!(kept, page.replace("[the code](../src/a.rs)", "the code"));
        assert_eq!(beside("docs/d/p.md".as_ref(), "../../FORMAT.md#x"), Path::new("FORMAT.md"));
        assert_eq!(linked("none ](here", |_| false), "none ](here");
    }

    fn pages(folder: &str) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![project().unwrap().join(folder)]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                let name = entry.file_name().unwrap().to_string_lossy().into_owned();
                if entry.is_dir() && !name.starts_with(['.', '_']) && name != "target" && name != "venv" {
                    folders.push(entry);
                } else if name.ends_with(".md") {
                    found.push(entry.strip_prefix(project().unwrap()).unwrap().to_owned());
                }
            }
        }
        found
    }

    fn anchors(text: &str) -> Vec<String> {
        let headings = text.lines().filter(|line| line.starts_with('#'));
        let anchor = |line: &str| {
            let words =
                linked(line.trim_start_matches('#').trim(), |_| false).to_lowercase().replace(' ', "-");
            words.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
        };
        headings.map(anchor).collect()
    }

    #[test]
    fn links_of_all_pages_lead_to_files_and_headings() {
        let project = project().unwrap();
        let (mut wrong, mut seen) = (Vec::new(), 0);
        for page in pages("") {
            let text = fs::read_to_string(project.join(&page)).unwrap();
            for link in links(&text).iter().filter(|link| !link.contains("://")) {
                seen += 1;
                let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
                let file = if file.is_empty() { page.clone() } else { beside(&page, file) };
                let there = fs::read_to_string(project.join(&file));
                let is_there = if anchor.is_empty() {
                    project.join(&file).exists()
                } else {
                    there.is_ok_and(|text| anchors(&text).iter().any(|heading| heading == anchor))
                };
                if !is_there {
                    wrong.push(format!("{}: {link}", page.display()));
                }
            }
        }
        assert!(wrong.is_empty(), "they lead nowhere:\n{}", wrong.join("\n"));
        assert!(seen > 100, "{seen} links");
    }

    #[test]
    fn every_page_for_readers_is_in_the_book() {
        let summary = fs::read_to_string(project().unwrap().join(SUMMARY)).unwrap();
        let inside: Vec<PathBuf> =
            links(&summary).iter().map(|link| beside(SUMMARY.as_ref(), link)).collect();
        for page in pages("docs") {
            let listed = page == Path::new(SUMMARY) || inside.contains(&page);
            assert!(listed, "{} is not in {SUMMARY}", page.display());
        }
    }
}
