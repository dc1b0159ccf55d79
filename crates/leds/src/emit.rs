//! The output: the source, with included extendible structs and `#line` directives.

use crate::edit::Edits;
use crate::extendible::Struct;
use crate::layout::{describer, fields_of, holders, needed, table};
use crate::problem::{Place, position};
use crate::program::{Program, place_of};
use crate::rewrite::{INIT, Rewritten};
use crate::token::{Kind, Token, tokens};
use crate::tree::Include;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;
use std::path::Path;

fn lines_of(text: &str) -> String {
    "\n".repeat(text.matches('\n').count())
}

fn quoted(path: &Path) -> String {
    path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"")
}

pub(crate) fn emit(program: &Program<'_>, rewritten: &Rewritten) -> String {
    let mut emit = Emit { program, rewritten, touched: BTreeSet::new(), once: 0 };
    emit.find_touched();
    let mut out = format!("#line 1 \"{}\"\n", emit.path(0));
    out.push_str(&emit.file(0));
    out.push('\n');
    emit.tail(&mut out);
    out
}

struct Emit<'a> {
    program: &'a Program<'a>,
    rewritten: &'a Rewritten,
    /// Changed files, and their includers.
    touched: BTreeSet<usize>,
    once: usize,
}

impl<'a> Emit<'a> {
    fn path(&self, file: usize) -> String {
        self.program.unit.files.get(file).map(|path| quoted(path)).unwrap_or_default()
    }

    fn text(&self, file: usize) -> &'a str {
        self.program.texts.get(file).map_or("", String::as_str)
    }

    fn line(&self, file: usize, offset: usize) -> String {
        format!("#line {} \"{}\"\n", position(self.text(file), offset).0, self.path(file))
    }

    fn find_touched(&mut self) {
        self.touched.extend(self.rewritten.code.keys().chain(self.rewritten.inits.keys()));
        self.touched.extend(self.program.structs.iter().map(|of| of.file));
        loop {
            let more =
                self.program.unit.includes.iter().filter(|include| self.touched.contains(&include.file));
            let more: Vec<usize> = more.map(|include| include.at.file).collect();
            let before = self.touched.len();
            self.touched.extend(more);
            if self.touched.len() == before {
                return;
            }
        }
    }

    fn file(&mut self, file: usize) -> String {
        let text = self.text(file);
        let mut edits = self.rewritten.code.get(&file).cloned().unwrap_or_default();
        for of in self.program.structs.iter().filter(|of| of.file == file) {
            self.structure(of, &mut edits);
        }
        for range in crate::extendible::keywords(text) {
            edits.replace(range, String::new());
        }
        let included: Vec<_> =
            self.program.unit.includes.iter().filter(|include| include.at.file == file).collect();
        for directive in tokens(text).into_iter().filter(|token| token.kind == Kind::Directive) {
            let inside = |include: &&&Include| directive.range.contains(&include.at.offset);
            if file != 0 && is_once(directive.text(text)) {
                edits.replace(directive.range.clone(), String::new());
            }
            let include = included.iter().find(inside);
            if let Some((name, path)) = include.and_then(|include| self.beside(include, &directive, text)) {
                edits.replace(name, path);
            }
            if let Some(include) = include.filter(|include| self.touched.contains(&include.file)) {
                let inner = self.included(include.file);
                let line = position(text, directive.range.end).0;
                edits.replace(
                    directive.range.clone(),
                    format!("{inner}#line {line} \"{}\"\n", self.path(file)),
                );
            }
        }
        edits.apply(text, 0..text.len())
    }

    /// The name in an include of a file beside the including one, and the absolute path that
    /// replaces it in the output.
    fn beside(&self, include: &Include, directive: &Token, text: &str) -> Option<(Range<usize>, String)> {
        let files = &self.program.unit.files;
        let (own, found) = (files.get(include.at.file)?, files.get(include.file)?);
        let quoted = directive.text(text).find('"')? + 1;
        let len = directive.text(text).get(quoted..)?.find('"')?;
        let name = directive.range.start + quoted..directive.range.start + quoted + len;
        let moved = own.parent() != files.first()?.parent() && !self.touched.contains(&include.file);
        let beside = own.parent()?.join(text.get(name.clone())?) == *found;
        let path = std::path::absolute(found).ok().filter(|_| moved && beside)?;
        Some((name, path.to_str()?.to_owned()))
    }

    fn included(&mut self, file: usize) -> String {
        let once = tokens(self.text(file)).iter().any(|token| is_once(token.text(self.text(file))));
        let inner = format!("#line 1 \"{}\"\n{}\n", self.path(file), self.file(file));
        if !once {
            return inner;
        }
        self.once += 1;
        // Each include has the same name.
        format!("#ifndef PMO_LEDS_ONCE_{file}\n#define PMO_LEDS_ONCE_{file}\n{inner}#endif\n")
    }

    fn structure(&self, of: &Struct, edits: &mut Edits) {
        let text = self.text(of.file);
        for extension in &of.extensions {
            for range in extension.fields.iter().chain(&extension.frame) {
                edits.replace(range.clone(), lines_of(&text[range.clone()]));
            }
        }
        let (access, value) = match (self.program.is_cpp, constructs(&text[of.name.end..of.close], &of.tag)) {
            (true, true) => ("public: ", "{}"),
            (true, false) => ("public: ", ""),
            _ => ("", ""),
        };
        edits.close(of.close, format!("{access}struct pmo_extensions extensions{value}; "));
        let mut after = "\n".to_owned();
        self.extensions(of, &mut after);
        after.push_str(&self.line(of.file, of.end));
        edits.close(of.end, after);
    }

    fn extensions(&self, of: &Struct, out: &mut String) {
        let (tag, text) = (&of.tag, self.text(of.file));
        let line = self.line(of.file, of.name.start);
        for (number, extension) in (1..).zip(&of.extensions) {
            out.push_str(&self.line(of.file, extension.frame[0].end));
            let fields: String = extension.fields.iter().map(|range| &text[range.clone()]).collect();
            let _ = writeln!(out, "struct {tag}Extension{number} {{{}\n}};", fields.trim_end());
        }
        out.push_str(&line);
        let _ = writeln!(out, "static inline const struct pmo_type *pmo_type_{tag}(void);");
        let mut rows = Vec::new();
        for (number, extension) in (1..).zip(&of.extensions) {
            out.push_str(&line);
            let _ =
                writeln!(out, "static inline const struct pmo_type *pmo_type_{tag}Extension{number}(void);");
            let init = match extension.init {
                Some(_) => {
                    let _ = writeln!(
                        out,
                        "static inline void {INIT}{tag}_{number}(struct {tag} *, struct {tag}Extension{number} *);"
                    );
                    let _ = writeln!(out, "{line}PMO_LEDS_INIT({tag}, {number})");
                    format!("pmo_leds_computed_{tag}_{number}")
                }
                None => "NULL".to_owned(),
            };
            rows.push(format!("{{\"{tag}\", pmo_type_{tag}Extension{number}, {init}, 0}}"));
        }
        let index = self.program.structure(place_of(of));
        if rows.is_empty() {
            let _ = writeln!(out, "{line}PMO_LEDS_NONE({tag})");
        } else {
            let _ = writeln!(
                out,
                "{line}static struct pmo_extension pmo_leds_of_{tag}[] = {{{}}};",
                rows.join(", ")
            );
            let _ = writeln!(out, "{line}PMO_LEDS_ALL({tag}, {})", rows.len());
        }
        for number in 1..=of.extensions.len() {
            let _ = writeln!(out, "{line}PMO_LEDS_EXTENSION({tag}, {number})");
            for field in index.into_iter().flat_map(|index| fields_of(self.program, index, number)) {
                if !field.ty.is_array() {
                    let _ = writeln!(out, "{line}PMO_LEDS_FIELD({tag}, {number}, {})", field.name);
                }
            }
        }
        for place in holders(self.program) {
            if let Some(name) = describer(self.program, place) {
                let _ = writeln!(out, "{line}static inline const struct pmo_type *{name}(void);");
            }
        }
    }

    fn tail(&self, out: &mut String) {
        for of in self.program.structs {
            for (number, init) in
                (1..).zip(&of.extensions).filter_map(|(number, of)| Some((number, of.init.as_ref()?)))
            {
                let (tag, text) = (&of.tag, self.text(of.file));
                out.push_str(&self.line(of.file, init.parameter.start));
                let parameter = &text[init.parameter.clone()];
                let _ = writeln!(
                    out,
                    "static inline void {INIT}{tag}_{number}({parameter}, struct {tag}Extension{number} *pmo_own)"
                );
                out.push_str(&self.line(of.file, init.body.start));
                let edits = self.rewritten.inits.get(&of.file).cloned().unwrap_or_default();
                let body = edits.apply(text, init.body.clone());
                let _ = writeln!(out, "{{ (void){}; (void)pmo_own; {body} }}", init.it);
            }
        }
        self.descriptions(out);
    }

    fn descriptions(&self, out: &mut String) {
        let program = self.program;
        let places: Vec<Place> = program.structs.iter().map(place_of).chain(holders(program)).collect();
        let mut others = Vec::new();
        places.iter().for_each(|place| needed(program, *place, &mut others));
        others
            .extend(holders(program).into_iter().filter(|place| !others.contains(place)).collect::<Vec<_>>());
        let described =
            |place: &Place| describer(program, *place).filter(|name| name.starts_with("pmo_leds_"));
        let others: Vec<_> = others.iter().filter_map(|place| Some((place, described(place)?))).collect();
        for (_, name) in &others {
            let _ = writeln!(out, "static inline const struct pmo_type *{name}(void);");
        }
        for (place, name) in &others {
            if let Some(record) = program.unit.records.get(place) {
                out.push_str(&table(program, name, &record.spelled, record.fields.iter(), false));
            }
        }
        for (of, structure) in program.structs.iter().enumerate() {
            let tag = &structure.tag;
            let line = self.line(structure.file, structure.name.start);
            for number in 0..=structure.extensions.len() {
                let name = if number == 0 { tag.clone() } else { format!("{tag}Extension{number}") };
                let fields = fields_of(program, of, number);
                out.push_str(&line);
                out.push_str(&table(
                    program,
                    &format!("pmo_type_{name}"),
                    &format!("struct {name}"),
                    fields,
                    number == 0,
                ));
            }
        }
    }
}

/// Whether a struct has a constructor, which does not know the link.
fn constructs(fields: &str, tag: &str) -> bool {
    let all = tokens(fields);
    all.windows(3).any(|three| {
        three[1].kind == Kind::Name
            && three[1].text(fields) == tag
            && three[2].is(b'(')
            && !three[0].is(b'~')
            && three[0].text(fields) != "new"
    })
}

fn is_once(directive: &str) -> bool {
    let words: Vec<_> = directive.trim_start_matches('#').split_whitespace().collect();
    directive.starts_with('#') && words == ["pragma", "once"]
}

/// Functions of initial values, parsed behind a source, with their places.
pub(crate) fn appended(
    structs: &[Struct],
    texts: &[String],
    behind: usize,
) -> (String, Vec<(Range<usize>, Place)>) {
    let (mut out, mut parts) = ("\n".to_owned(), Vec::new());
    for of in structs {
        for (number, init) in
            (1..).zip(&of.extensions).filter_map(|(number, of)| Some((number, of.init.as_ref()?)))
        {
            let mut part = |out: &mut String, range: &Range<usize>| {
                let start = behind + out.len();
                out.push_str(&texts[of.file][range.clone()]);
                parts.push((start..behind + out.len(), Place { file: of.file, offset: range.start }));
            };
            let _ = write!(out, "static inline void {INIT}{}_{number}(", of.tag);
            part(&mut out, &init.parameter);
            out.push_str(") ");
            part(&mut out, &init.body);
            out.push('\n');
        }
    }
    (out, parts)
}
