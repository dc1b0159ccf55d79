//! Manual pages from comments in pmo.h and its parts for C: one per function and macro, and one for
//! all.

use crate::command::Result;
use std::fmt::Write;

struct Item<'a> {
    include: &'a str,
    comment: String,
    declaration: &'a str,
}

/// Name and text of each page. The first header is the overview.
pub(crate) fn pages(headers: &[(&str, String)], version: &str) -> Result<Vec<(String, String)>> {
    let (_, header) = headers.first().ok_or("there is no header")?;
    let read = headers.iter().map(|(include, header)| items(include, header));
    let items: Vec<_> = read.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    let functions: Vec<_> = items.iter().filter(|item| item.name().is_some()).collect();
    if functions.len() < 40 {
        return Err(format!("the header has only {} documented functions", functions.len()));
    }
    let mut pages = vec![("pmo".to_owned(), overview(header, &functions, &items, version))];
    for item in &functions {
        let name = item.name().unwrap_or("");
        pages.push((name.to_owned(), page(name, item, &items, version)));
    }
    Ok(pages)
}

/// The declarations behind `/**` comments: a macro's name and arguments, a function's head.
fn items<'a>(include: &'a str, header: &'a str) -> Result<Vec<Item<'a>>> {
    let mut items = Vec::new();
    for piece in header.split("/** ").skip(1) {
        let (comment, rest) = piece.split_once("*/").ok_or("a comment without an end")?;
        let comment = comment.split_whitespace().filter(|word| *word != "*").collect::<Vec<_>>().join(" ");
        let rest = rest.trim_start();
        let brace = rest.find('{').unwrap_or(usize::MAX);
        let end = match rest.find(';') {
            Some(end) if end < brace => end + 1,
            _ => rest.find("};").map_or(rest.len(), |end| end + 2),
        };
        // An enum needs only the constant before a comma.
        let constant = rest.starts_with("PMO_");
        let end = if constant { rest.find([',', '\n']).unwrap_or(end) } else { end };
        let declaration = match rest.strip_prefix("#define ") {
            Some(of_macro) => {
                let name =
                    of_macro.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(of_macro.len());
                let last = if of_macro[name..].starts_with('(') { ')' } else { '\n' };
                &of_macro[..of_macro.find(last).map_or(of_macro.len(), |at| at + 1)]
            }
            None => match rest.strip_prefix("static inline ") {
                Some(function) => &function[..function.find("\n{").unwrap_or(function.len())],
                None => &rest[..end],
            },
        };
        items.push(Item { include, comment, declaration: declaration.trim() });
    }
    Ok(items)
}

impl Item<'_> {
    fn name(&self) -> Option<&str> {
        let braced = ["struct pmo_", "enum "].iter().any(|word| self.declaration.starts_with(word))
            && self.declaration.contains('{');
        let (before, _) = self.declaration.split_once('(').filter(|_| !braced)?;
        let typed = before.starts_with("typedef") || before.contains("PMO_") && before.contains([' ', '=']);
        let before = (!typed).then_some(before)?;
        before.rsplit([' ', '*']).next()
    }

    fn tag(&self) -> Option<&str> {
        let before = self.declaration.split_once(" {")?.0;
        (self.name().is_none()).then_some(before)
    }
}

fn page(name: &str, item: &Item<'_>, items: &[Item<'_>], version: &str) -> String {
    let mut out = head(name, version);
    let summary = sentence(&item.comment);
    let _ = write!(out, ".SH NAME\n{name} \\- {}\n", escape(&summary));
    let _ = write!(out, ".SH SYNOPSIS\n.nf\n#include <{}>\n\n{}\n", item.include, escape(item.declaration));
    for used in items {
        let mentioned =
            |tag: &str| ["*", " *"].iter().any(|end| item.declaration.contains(&format!("{tag}{end}")));
        if used.tag().is_some_and(mentioned) {
            let _ = write!(out, "\n{}\n", escape(used.declaration));
        }
    }
    let _ = write!(out, ".fi\n.SH DESCRIPTION\n{}\n", escape(&item.comment));
    for used in items {
        if let Some(tag) = used.tag().filter(|tag| item.declaration.contains(&format!("{tag} *"))) {
            let _ = write!(out, ".PP\n{}: {}\n", escape(tag), escape(&used.comment));
        }
    }
    for constant in items
        .iter()
        .filter(|constant| constant.name().is_none() && item.comment.contains(first(constant.declaration)))
    {
        if let Some(name) = Some(first(constant.declaration)).filter(|name| name.starts_with("PMO_")) {
            let _ = write!(out, ".TP\n.B {name}\n{}\n", escape(&constant.comment));
        }
    }
    let result = item.declaration.split('(').next().unwrap_or("");
    let returns = if item.declaration.starts_with("int ") && !name.contains("errno") {
        "0, or \\-1 for an error: see pmo_errno(3)."
    } else if result.contains('*') && !result.starts_with("const char") {
        "NULL for an error: see pmo_errno(3)."
    } else {
        "See above."
    };
    let _ = write!(out, ".SH RETURN VALUE\n{returns}\n.SH SEE ALSO\npmo(3)\n");
    out
}

fn overview(header: &str, functions: &[&Item<'_>], items: &[Item<'_>], version: &str) -> String {
    let mut out = head("pmo", version);
    let comment =
        header.split_once("/* ").and_then(|(_, rest)| rest.split_once("*/")).map_or("", |(text, _)| text);
    let words: Vec<_> = comment.lines().map(|line| line.trim_start_matches([' ', '*'])).collect();
    let text = words.join("\n");
    let mut paragraphs = text.split("\n\n");
    let title = paragraphs.next().unwrap_or("").split(": ").next().unwrap_or("");
    let _ = write!(out, ".SH NAME\npmo \\- {}\n", escape(title));
    out.push_str(".SH SYNOPSIS\n.nf\n#include <pmo.h>\n\ncc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs pmo)\n.fi\n");
    out.push_str(".SH DESCRIPTION\n");
    for paragraph in paragraphs.filter(|paragraph| !paragraph.contains("manual pages")) {
        let _ = write!(out, ".PP\n{}\n", escape(paragraph.trim()));
    }
    out.push_str(".SH FUNCTIONS\n");
    for item in functions {
        let _ =
            write!(out, ".TP\n.BR {} (3)\n{}\n", item.name().unwrap_or(""), escape(&sentence(&item.comment)));
    }
    out.push_str(".SH CONSTANTS\n");
    for item in items.iter().filter(|item| item.name().is_none() && item.declaration.starts_with("PMO_")) {
        let _ = write!(out, ".TP\n.B {}\n{}\n", first(item.declaration), escape(&item.comment));
    }
    out
}

fn head(name: &str, version: &str) -> String {
    format!(".TH {} 3 \"\" \"Indelible {version}\" \"Persistent memory objects\"\n", name.to_uppercase())
}

fn first(declaration: &str) -> &str {
    declaration.split([' ', ',', '\n']).next().unwrap_or("")
}

fn sentence(text: &str) -> String {
    let end = [". ", ": "].iter().filter_map(|end| text.find(end)).min();
    text[..end.unwrap_or(text.len())].trim_end_matches('.').to_owned()
}

fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let line =
        |line: &str| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}
