//! Extendible structs of a source: own fields, extensions, functions of initial values.

use crate::problem::{Place, Refusal};
use crate::token::{Kind, Token, tokens};
use std::ops::Range;

/// Extensions of a struct at most, as of any value (FORMAT.md).
const MOST: usize = 64;

/// `extendible struct tag { … }`.
#[derive(Clone, Debug)]
pub(crate) struct Struct {
    pub(crate) tag: String,
    pub(crate) file: usize,
    pub(crate) keyword: Range<usize>,
    pub(crate) name: Range<usize>,
    pub(crate) close: usize,
    pub(crate) end: usize,
    pub(crate) extensions: Vec<Extension>,
}

#[derive(Clone, Debug)]
pub(crate) struct Extension {
    /// All of it, without a nested extension.
    pub(crate) range: Range<usize>,
    pub(crate) fields: Vec<Range<usize>>,
    pub(crate) frame: Vec<Range<usize>>,
    pub(crate) init: Option<Init>,
}

#[derive(Clone, Debug)]
pub(crate) struct Init {
    pub(crate) parameter: Range<usize>,
    pub(crate) it: String,
    pub(crate) body: Range<usize>,
}

impl Extension {
    pub(crate) fn has(&self, offset: usize) -> bool {
        self.fields.iter().any(|range| range.contains(&offset))
    }
}

pub(crate) fn is_likely(source: &str) -> bool {
    source.contains("extendible")
}

pub(crate) fn find(file: usize, source: &str) -> Result<Vec<Struct>, Refusal> {
    let tokens = tokens(source);
    let mut reader = Reader { file, source, tokens: &tokens, at: 0 };
    let mut all = Vec::new();
    while let Some(token) = reader.next() {
        if reader.is_name(token, "extendible") {
            all.extend(reader.structure(token.range.clone())?);
        } else if reader.is_name(token, "EXTENSION") {
            return Err(reader.refuse(token, "an EXTENSION outside of an extendible struct"));
        }
    }
    Ok(all)
}

/// Blanks out words unknown to C; other bytes stay in place.
pub(crate) fn blanked(source: &str, all: &[Struct], keywords: &[Range<usize>]) -> String {
    let mut bytes = source.as_bytes().to_vec();
    let frames = all.iter().flat_map(|of| &of.extensions).flat_map(|extension| &extension.frame);
    for range in frames.chain(keywords) {
        bytes[range.clone()].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    // Whole tokens became blanks.
    String::from_utf8(bytes).unwrap_or_default()
}

/// All keywords `extendible`, also of declarations.
pub(crate) fn keywords(source: &str) -> Vec<Range<usize>> {
    let all = tokens(source).into_iter();
    all.filter(|token| token.kind == Kind::Name && token.text(source) == "extendible")
        .map(|token| token.range)
        .collect()
}

struct Reader<'s> {
    file: usize,
    source: &'s str,
    tokens: &'s [Token],
    at: usize,
}

impl<'s> Reader<'s> {
    fn next(&mut self) -> Option<&'s Token> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    fn is_name(&self, token: &Token, name: &str) -> bool {
        token.kind == Kind::Name && token.text(self.source) == name
    }

    fn refuse(&self, at: &Token, text: &str) -> Refusal {
        self.refuse_at(at.range.start, text)
    }

    fn refuse_at(&self, offset: usize, text: impl Into<String>) -> Refusal {
        Refusal::new(Place { file: self.file, offset }, text)
    }

    fn expect(&mut self, mark: u8, behind: &str) -> Result<&'s Token, Refusal> {
        match self.next() {
            Some(token) if token.is(mark) => Ok(token),
            Some(token) => Err(self.refuse(token, &format!("{:?} is missing behind {behind}", mark as char))),
            None => Err(self.refuse_at(self.source.len(), format!("the source ends behind {behind}"))),
        }
    }

    /// After the keyword; `None` for a declaration.
    fn structure(&mut self, keyword: Range<usize>) -> Result<Option<Struct>, Refusal> {
        let shape = "`extendible` stands before `struct tag {`; the tag is its name in descriptions";
        let refused = self.refuse_at(keyword.start, shape);
        if !self.next().is_some_and(|token| self.is_name(token, "struct")) {
            return Err(refused);
        }
        let Some(name) = self.next().filter(|token| token.kind == Kind::Name) else { return Err(refused) };
        match self.next() {
            Some(token) if token.is(b';') => return Ok(None),
            Some(token) if token.is(b'{') => {}
            _ => return Err(refused),
        }
        let tag = name.text(self.source).to_owned();
        let mut extensions = Vec::new();
        let close = loop {
            let Some(token) = self.next() else {
                return Err(self.refuse_at(keyword.start, format!("struct {tag} has no end")));
            };
            if token.is(b'}') {
                break token.range.start;
            } else if self.is_name(token, "EXTENSION") {
                self.extension(token, &tag, &mut extensions)?;
            } else if self.is_name(token, "INIT") {
                return Err(self.refuse(token, "INIT stands in an EXTENSION, behind its fields"));
            } else if token.kind != Kind::Directive && !extensions.is_empty() {
                let text = "a field behind an EXTENSION: move it before all of them, or into a new last one";
                return Err(self.refuse(token, text));
            } else {
                self.group(token)?;
            }
        };
        let end = loop {
            match self.next() {
                Some(token) if token.is(b';') => break token.range.end,
                Some(token) => self.group(token)?,
                None => return Err(self.refuse_at(close, format!("no ';' behind struct {tag}"))),
            }
        };
        let (file, name) = (self.file, name.range.clone());
        Ok(Some(Struct { tag, file, keyword, name, close, end, extensions }))
    }

    fn group(&mut self, token: &Token) -> Result<(), Refusal> {
        let Kind::Mark(open @ (b'(' | b'{' | b'[')) = token.kind else { return Ok(()) };
        let mut depth = vec![open];
        while let Some(open) = depth.last() {
            let close = if *open == b'(' { b')' } else { *open + 2 };
            let Some(next) = self.next() else { return Err(self.refuse(token, "it is not closed")) };
            match next.kind {
                Kind::Mark(mark) if mark == close => drop(depth.pop()),
                Kind::Mark(mark @ (b'(' | b'{' | b'[')) => depth.push(mark),
                Kind::Mark(b')' | b'}' | b']') => return Err(self.refuse(next, "it closes nothing")),
                _ => {}
            }
        }
        Ok(())
    }

    fn grouped(&mut self, open: &Token) -> Result<Range<usize>, Refusal> {
        self.group(open)?;
        Ok(open.range.start..self.tokens[self.at - 1].range.end)
    }

    fn extension(&mut self, keyword: &Token, tag: &str, all: &mut Vec<Extension>) -> Result<(), Refusal> {
        self.expect(b'(', "EXTENSION")?;
        let number = self.next();
        let found = number.and_then(|number| number.text(self.source).parse::<usize>().ok());
        let next = all.len() + 1;
        if found != Some(next) || next > MOST {
            let text = if next > MOST {
                format!("struct {tag} has {MOST} extensions, as many as there can be")
            } else {
                format!(
                    "extensions follow each other from 1 on, as they were released: EXTENSION({next}) comes here"
                )
            };
            return Err(self.refuse(keyword, &text));
        }
        self.expect(b')', "the number")?;
        let open = self.expect(b'{', "EXTENSION(…)")?;
        let index = all.len();
        let start = keyword.range.start;
        let first =
            Extension { range: start..open.range.end, fields: Vec::new(), frame: Vec::new(), init: None };
        all.push(first);
        all[index].frame.push(start..open.range.end);
        let mut from = open.range.end;
        loop {
            let Some(token) = self.next() else { return Err(self.refuse(keyword, "it is not closed")) };
            let begin = token.range.start;
            if token.is(b'}') {
                all[index].fields.push(from..begin);
                all[index].frame.push(token.range.clone());
                all[index].range.end = token.range.end;
                return Ok(());
            } else if self.is_name(token, "EXTENSION") {
                all[index].fields.push(from..begin);
                self.extension(token, tag, all)?;
                from = self.tokens[self.at - 1].range.end;
            } else if self.is_name(token, "INIT") {
                if all[index].init.is_some() {
                    return Err(self.refuse(token, "an EXTENSION has one INIT"));
                }
                all[index].fields.push(from..begin);
                let init = self.init()?;
                from = init.body.end;
                all[index].frame.push(begin..from);
                all[index].init = Some(init);
            } else {
                self.group(token)?;
            }
        }
    }

    fn init(&mut self) -> Result<Init, Refusal> {
        let open = self.expect(b'(', "INIT")?;
        let parentheses = self.grouped(open)?;
        let name = &self.tokens[self.at - 2];
        if name.kind != Kind::Name {
            return Err(self.refuse(open, "INIT has one parameter: INIT(struct tag *it) { … }"));
        }
        let brace = self.expect(b'{', "INIT(…)")?;
        let body = self.grouped(brace)?;
        let it = name.text(self.source).to_owned();
        Ok(Init { parameter: parentheses.start + 1..parentheses.end - 1, it, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEM: &str = "extendible struct item {\n int id; struct { int x; } in;\n EXTENSION(1) { int a[3];\n \
        INIT(struct item *it) { if (it) { it->a[0] = '}'; } } int b;\n EXTENSION(2) { long c; } }\n} one, *two;\n";

    #[test]
    fn the_parts_of_a_struct_are_found() {
        let all = find(7, ITEM).unwrap();
        let [of] = &all[..] else { panic!("{all:?}") };
        assert_eq!((of.tag.as_str(), of.file, of.extensions.len()), ("item", 7, 2));
        assert_eq!(&ITEM[of.close..of.end], "} one, *two;");
        let text = |ranges: &[Range<usize>]| -> Vec<&str> {
            let all = ranges.iter().map(|range| ITEM[range.clone()].trim());
            all.filter(|text| !text.is_empty()).collect()
        };
        assert_eq!(text(&of.extensions[0].fields), ["int a[3];", "int b;"]);
        assert_eq!(text(&of.extensions[1].fields), ["long c;"]);
        let init = of.extensions[0].init.as_ref().unwrap();
        assert_eq!((&ITEM[init.parameter.clone()], init.it.as_str()), ("struct item *it", "it"));
        let plain = blanked(ITEM, &all, &keywords(ITEM));
        assert_eq!(plain.len(), ITEM.len());
        let words: Vec<_> = plain.split_whitespace().collect();
        assert_eq!(
            words.join(" "),
            "struct item { int id; struct { int x; } in; int a[3]; int b; long c; } one, *two;"
        );
    }

    #[test]
    fn refusals_say_why() {
        let cases = [
            ("extendible union u { int a; };", "stands before `struct tag {`"),
            ("extendible struct { int a; };", "stands before `struct tag {`"),
            ("extendible struct a", "stands before `struct tag {`"),
            ("extendible struct a { int b;", "has no end"),
            ("extendible struct a { int b; }", "no ';'"),
            ("extendible struct a { EXTENSION(2) { int c; } };", "EXTENSION(1) comes here"),
            (
                "extendible struct a { EXTENSION(1) { int c; } EXTENSION(1) { int d; } };",
                "EXTENSION(2) comes here",
            ),
            ("extendible struct a { EXTENSION(1) { int c; } int d; };", "a field behind an EXTENSION"),
            ("extendible struct a { EXTENSION 1 { int c; } };", "'(' is missing"),
            ("extendible struct a { EXTENSION(1) int c; };", "'{' is missing"),
            ("extendible struct a { EXTENSION(1) { int c; INIT() {} } };", "one parameter"),
            ("extendible struct a { EXTENSION(1) { INIT(A *b) {} INIT(A *b) {} } };", "one INIT"),
            ("extendible struct a { INIT(A *b) {} };", "INIT stands in an EXTENSION"),
            ("struct a { EXTENSION(1) { int c; } };", "outside of an extendible struct"),
            ("extendible struct a { int b[3; };", "closes nothing"),
        ];
        for (source, why) in cases {
            let text = find(0, source).expect_err(source).text;
            assert!(text.contains(why), "{source}: {text}");
        }
        assert!(find(0, "extendible struct a; struct a *b; // extendible\n").unwrap().is_empty());
    }

    #[test]
    fn one_extension_more_than_there_can_be_is_refused() {
        let of = |most: usize| {
            let all: String = (1..=most).map(|n| format!("EXTENSION({n}) {{ int f{n}; }}")).collect();
            format!("extendible struct a {{ {all} }};")
        };
        assert_eq!(find(0, &of(MOST)).unwrap()[0].extensions.len(), MOST);
        assert!(find(0, &of(MOST + 1)).unwrap_err().text.contains("64 extensions"));
    }
}
