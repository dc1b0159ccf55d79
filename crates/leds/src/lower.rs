//! Lowers a source to plain C or C++.

use crate::emit::{appended, emit};
use crate::extendible::{Struct, blanked, find, is_likely, keywords};
use crate::layout::check_holders;
use crate::lock::{self, Lock};
use crate::parse::{Compiler, Moved, Source};
use crate::problem::{Problem, Refusal, position};
use crate::program::{Program, place_of};
use crate::rewrite::rewrite;
use crate::tree::Unit;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// A source to be lowered.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its path.
    pub source: PathBuf,
    /// Flags of the compiler.
    pub flags: Vec<String>,
    /// Released layouts.
    pub lock: Option<Lock>,
}

/// A lowered source.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// Plain C or C++.
    pub text: String,
    /// Its files, but for the system's.
    pub files: Vec<PathBuf>,
    /// Number of its extendible structs.
    pub structs: usize,
}

/// Declarations for unlowered sources.
const PROLOGUE: &str = "/pmo-leds-prologue.h";

/// Lowers a source.
///
/// # Errors
/// All reasons why it cannot be lowered.
pub fn lower(compiler: &Compiler, request: &Request) -> Result<Lowered, Vec<Problem>> {
    let mut request = request.clone();
    if is_cpp(&request) {
        // The default of recent compilers; later flags override it.
        request.flags.insert(0, "-std=gnu++17".to_owned());
    }
    let request = &request;
    let mut sources = Sources { compiler, request, all: Vec::new() };
    sources.read(&request.source)?;
    sources.find_included()?;
    let structs = sources.compiled()?;
    let (unit, texts) = sources.understood(&structs)?;
    let is_cpp = is_cpp(request);
    let program = Program::new(&unit, &texts, &structs, is_cpp);
    let refused = |all: Vec<Refusal>| problems(&unit.files, &texts, all);
    program.check().and_then(|()| check_holders(&program)).map_err(refused)?;
    let rewritten = rewrite(&program).map_err(refused)?;
    let text = emit(&program, &rewritten);
    let lowered = sources.checked(&text)?;
    if let Some(lock) = &request.lock {
        lock::check(lock, &lowered, &structs)?;
    }
    let files =
        unit.files.iter().filter(|path| !path.starts_with("/usr") && path.exists()).cloned().collect();
    Ok(Lowered { text, files, structs: structs.len() })
}

fn is_cpp(request: &Request) -> bool {
    let extension = request.source.extension().and_then(|extension| extension.to_str());
    let named = matches!(extension, Some("cc" | "cpp" | "cxx" | "C" | "c++" | "hpp" | "hh"));
    let language =
        request.flags.iter().rposition(|flag| flag == "-x").and_then(|at| request.flags.get(at + 1));
    language.map_or(named, |language| language.starts_with("c++"))
}

fn problems(files: &[PathBuf], texts: &[String], refused: Vec<Refusal>) -> Vec<Problem> {
    let mut all: Vec<_> = refused
        .into_iter()
        .map(|Refusal { at, text }| {
            let (line, column) = texts.get(at.file).map_or((0, 0), |source| position(source, at.offset));
            Problem { file: files.get(at.file).cloned().unwrap_or_default(), line, column, text }
        })
        .collect();
    all.sort();
    all.dedup();
    all
}

struct Read {
    path: PathBuf,
    text: String,
    structs: Vec<Struct>,
}

struct Sources<'a> {
    compiler: &'a Compiler,
    request: &'a Request,
    all: Vec<Read>,
}

impl Sources<'_> {
    fn read(&mut self, path: &Path) -> Result<(), Vec<Problem>> {
        let wrong = |text: String| vec![Problem { file: path.to_owned(), line: 0, column: 0, text }];
        let bytes = fs::read(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
        let number = self.all.len();
        let structs = find(number, &text).map_err(|Refusal { at, text: why }| {
            let (line, column) = position(&text, at.offset);
            vec![Problem { file: path.to_owned(), line, column, text: why }]
        })?;
        self.all.push(Read { path: path.to_owned(), text, structs });
        Ok(())
    }

    fn find_included(&mut self) -> Result<(), Vec<Problem>> {
        loop {
            let texts = self.texts(&[], "");
            let included = self.compiler.included(&self.source(&texts, &[], &self.flags()));
            let known = self.all.len();
            for path in included {
                let new = self.all.iter().all(|read| read.path != path);
                if new && fs::read_to_string(&path).is_ok_and(|text| is_likely(&text)) {
                    self.read(&path)?;
                }
            }
            if self.all.len() == known {
                return Ok(());
            }
        }
    }

    fn flags(&self) -> Vec<String> {
        let mut flags = self.request.flags.clone();
        flags.extend(["-include".to_owned(), PROLOGUE.to_owned()]);
        flags
    }

    fn source<'s>(
        &'s self,
        texts: &'s [(PathBuf, String)],
        moved: &'s [Moved],
        flags: &'s [String],
    ) -> Source<'s> {
        Source { main: &self.request.source, flags, texts, moved }
    }

    /// All files without words unknown to C, and declarations of the output's functions.
    fn texts(&self, structs: &[Struct], behind: &str) -> Vec<(PathBuf, String)> {
        let blank = |read: &Read| blanked(&read.text, &read.structs, &keywords(&read.text));
        let mut texts: Vec<_> = self.all.iter().map(|read| (read.path.clone(), blank(read))).collect();
        texts[0].1.push_str(behind);
        let c = if is_cpp(self.request) { "extern \"C\" " } else { "" };
        let mut prologue = format!(
            "{c}void PMO_EXTENDED(const void *);\n{c}int PMO_EXTEND(const void *);\n{c}int PMO_UNEXTEND(const void *);\n\
             struct pmo_type;\n"
        );
        for of in structs.iter().chain(self.all.iter().flat_map(|read| &read.structs)) {
            let _ = writeln!(prologue, "static inline const struct pmo_type *pmo_type_{}(void);", of.tag);
        }
        texts.push((PROLOGUE.into(), prologue));
        texts
    }

    /// The compiled structs, without those behind conditions of the preprocessor.
    fn compiled(&self) -> Result<Vec<Struct>, Vec<Problem>> {
        let (texts, flags) = (self.texts(&[], ""), self.flags());
        let unit = self.compiler.parse(&self.source(&texts, &[], &flags))?;
        let all = self.all.iter().flat_map(|read| &read.structs);
        let structs: Vec<Struct> =
            all.filter(|of| unit.records.contains_key(&place_of(of))).cloned().collect();
        let declared = unit.records.values().any(|record| record.tag == "pmo_extensions");
        if let (false, Some(of)) = (declared, structs.first()) {
            let (line, column) = position(&self.all[of.file].text, of.keyword.start);
            let text = format!("struct {} is extendible: include <pmo.h> before it", of.tag);
            return Err(vec![Problem { file: self.all[of.file].path.clone(), line, column, text }]);
        }
        Ok(structs)
    }

    fn understood(&self, structs: &[Struct]) -> Result<(Unit, Vec<String>), Vec<Problem>> {
        let own: Vec<String> = self.all.iter().map(|read| read.text.clone()).collect();
        let (behind, parts) = appended(structs, &own, own[0].len());
        let moved: Vec<Moved> = parts.into_iter().map(|(from, to)| Moved { from, to }).collect();
        let (texts, flags) = (self.texts(structs, &behind), self.flags());
        let unit = self.compiler.parse(&self.source(&texts, &moved, &flags))?;
        let mut all = own;
        for path in unit.files.iter().skip(all.len()) {
            all.push(fs::read_to_string(path).unwrap_or_default());
        }
        Ok((unit, all))
    }

    fn checked(&self, text: &str) -> Result<Unit, Vec<Problem>> {
        let texts = [(self.request.source.clone(), text.to_owned())];
        self.compiler.parse(&self.source(&texts, &[], &self.request.flags))
    }
}
