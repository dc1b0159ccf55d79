//! Parsing by libclang, which only this file uses.

use crate::headers;
use crate::problem::{Place, Problem, position};
use crate::tree::{Field, Include, Kind, Node, Record, Referent, Shape, Type, Unit};
use clang::diagnostic::{Diagnostic, Severity};
use clang::source::{Location, SourceLocation};
use clang::{
    Clang, Entity, EntityKind, EntityVisitResult, Index, Language, Parser, StorageClass, TypeKind, Unsaved,
};
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// libclang, loaded.
pub struct Compiler {
    /// Never unloaded, as a library with thread-local variables.
    clang: ManuallyDrop<Clang>,
    headers: Vec<String>,
}

/// A source; files with other texts than on disk come first.
pub(crate) struct Source<'a> {
    pub(crate) main: &'a Path,
    pub(crate) flags: &'a [String],
    pub(crate) texts: &'a [(PathBuf, String)],
    /// Parts of the first text from other places.
    pub(crate) moved: &'a [Moved],
}

impl Source<'_> {
    fn problem(&self, found: &Diagnostic<'_>) -> Problem {
        let text = found.get_text();
        let at = found.get_location();
        let (file, line, column) = at.get_presumed_location();
        let offset = at.get_file_location().offset as usize;
        let main = at.get_file_location().file.is_some_and(|file| file.get_path() == self.main);
        let place = moved(self.moved, Place { file: if main { 0 } else { usize::MAX }, offset });
        if main
            && place.offset != offset
            && let Some((file, source)) = self.texts.get(place.file)
        {
            let (line, column) = position(source, place.offset);
            return Problem { file: file.clone(), line, column, text };
        }
        Problem { file: file.into(), line, column, text }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Moved {
    pub(crate) from: Range<usize>,
    pub(crate) to: Place,
}

impl Compiler {
    /// Loads libclang.
    ///
    /// # Errors
    /// It is not installed; the text says how to install it.
    pub fn load() -> Result<Compiler, String> {
        let loaded = |clang| Compiler {
            clang: ManuallyDrop::new(clang),
            headers: headers::flags(&clang::get_version()),
        };
        Clang::new().map(loaded).map_err(|error| {
            format!(
                "extendible structs are lowered with libclang, which cannot be loaded ({error}): install it (Debian, Ubuntu: \
                 libclang1-14 or later; Fedora: clang-libs), or have LIBCLANG_PATH name its folder"
            )
        })
    }

    fn parser<'i>(&self, index: &'i Index<'_>, source: &Source<'_>) -> Parser<'i> {
        let unsaved: Vec<_> = source.texts.iter().map(|(path, text)| Unsaved::new(path, text)).collect();
        let flags: Vec<&String> = source.flags.iter().chain(&self.headers).collect();
        let mut parser = index.parser(source.main);
        parser.arguments(&flags).unsaved(&unsaved).detailed_preprocessing_record(true);
        parser
    }

    pub(crate) fn included(&self, source: &Source<'_>) -> Vec<PathBuf> {
        let index = Index::new(&self.clang, false, false);
        let mut parser = self.parser(&index, source);
        parser.skip_function_bodies(true);
        let Ok(unit) = parser.parse() else { return Vec::new() };
        let all = unit.get_entity().get_children().into_iter();
        let lines = all.filter(|entity| entity.get_kind() == EntityKind::InclusionDirective);
        lines.filter_map(|entity| Some(entity.get_file()?.get_path())).collect()
    }

    /// Errors of the compiler are the problems.
    pub(crate) fn parse(&self, source: &Source<'_>) -> Result<Unit, Vec<Problem>> {
        let index = Index::new(&self.clang, false, false);
        let parser = self.parser(&index, source);
        let failed = |text: String| vec![Problem { file: source.main.to_owned(), line: 0, column: 0, text }];
        let unit = parser.parse().map_err(|error| failed(format!("libclang cannot parse it: {error}")))?;
        let wrong = unit.get_diagnostics().into_iter().filter(|found| {
            matches!(found.get_severity(), Severity::Error | Severity::Fatal)
                && !is_of_layout(&found.get_text())
        });
        let problems: Vec<_> = wrong.map(|found| source.problem(&found)).collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut copy = Copy { unit: Unit::default(), numbers: HashMap::new(), moved: source.moved };
        // Files have the numbers of the texts.
        for (path, _) in source.texts {
            copy.file(path);
        }
        unit.get_entity().visit_children(|entity, _| {
            copy.top(entity);
            EntityVisitResult::Continue
        });
        Ok(copy.unit)
    }
}

fn moved(moved: &[Moved], place: Place) -> Place {
    let of = moved
        .iter()
        .find(|of| place.file == 0 && of.from.start <= place.offset && place.offset <= of.from.end);
    of.map_or(place, |of| Place { file: of.to.file, offset: of.to.offset + (place.offset - of.from.start) })
}

/// Assertions about sizes fail before the lowering; the compiler checks them afterwards.
fn is_of_layout(text: &str) -> bool {
    text.starts_with("static_assert failed") || text.starts_with("static assertion failed")
}

struct Copy<'a> {
    unit: Unit,
    numbers: HashMap<PathBuf, usize>,
    moved: &'a [Moved],
}

impl Copy<'_> {
    fn file(&mut self, path: &Path) -> usize {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let number = self.unit.files.len();
        self.unit.files.push(path.to_owned());
        self.numbers.insert(path.to_owned(), number);
        number
    }

    fn place(&mut self, location: Option<SourceLocation<'_>>) -> Place {
        let Some(Location { file: Some(file), offset, .. }) = location.map(|it| it.get_file_location())
        else {
            // Built into the compiler.
            return Place { file: usize::MAX, offset: 0 };
        };
        let place = Place { file: self.file(&file.get_path()), offset: offset as usize };
        moved(self.moved, place)
    }

    fn top(&mut self, entity: Entity<'_>) {
        let of_system = entity.is_in_system_header();
        match entity.get_kind() {
            EntityKind::InclusionDirective => {
                if let Some(file) = entity.get_file() {
                    let (at, file) = (self.place(entity.get_location()), self.file(&file.get_path()));
                    self.unit.includes.push(Include { at, file });
                }
            }
            EntityKind::StructDecl | EntityKind::UnionDecl | EntityKind::ClassDecl if !of_system => {
                self.records(entity);
                self.methods(entity);
            }
            EntityKind::FunctionDecl
            | EntityKind::FunctionTemplate
            | EntityKind::Method
            | EntityKind::Constructor
            | EntityKind::Destructor => {
                self.unit.functions.extend(entity.get_name());
                if !of_system {
                    let node = self.node(entity);
                    self.unit.declarations.push(node);
                }
            }
            EntityKind::VarDecl if !of_system => {
                let node = self.node(entity);
                self.unit.declarations.push(node);
            }
            EntityKind::Namespace | EntityKind::LinkageSpec | EntityKind::UnexposedDecl if !of_system => {
                entity.visit_children(|child, _| {
                    self.top(child);
                    EntityVisitResult::Continue
                });
            }
            EntityKind::ClassTemplate if !of_system => self.methods(entity),
            _ => {}
        }
    }

    fn methods(&mut self, entity: Entity<'_>) {
        entity.visit_children(|child, _| {
            if child.get_kind() != EntityKind::FieldDecl {
                self.top(child);
            }
            EntityVisitResult::Continue
        });
    }

    fn records(&mut self, entity: Entity<'_>) {
        if let Some(ty) = entity.get_type().filter(|_| entity.is_definition()) {
            self.ty(&ty);
        }
    }

    fn node(&mut self, entity: Entity<'_>) -> Node {
        let range = entity.get_range();
        let (begin, end) = (
            self.place(range.map(|range| range.get_start())),
            self.place(range.map(|range| range.get_end())),
        );
        let at = self.place(entity.get_location());
        let ty = match entity.get_type() {
            Some(ty) => self.ty(&ty),
            None => Type { shape: Shape::Other, is_const: false, text: String::new() },
        };
        let kind = kind(entity);
        let refers = match kind {
            Kind::Member | Kind::FieldName | Kind::Name | Kind::Call => {
                entity.get_reference().map(|to| self.referent(to))
            }
            _ => None,
        };
        let mut children = Vec::new();
        entity.visit_children(|child, _| {
            if matches!(child.get_kind(), EntityKind::StructDecl | EntityKind::UnionDecl) {
                self.records(child);
            } else if !child.is_reference() || child.get_kind() == EntityKind::MemberRef {
                children.push(self.node(child));
            } else if kind == Kind::Unevaluated {
                children.extend(child.get_reference().map(|named| self.type_name(child, named)));
            }
            EntityVisitResult::Continue
        });
        Node { kind, name: entity.get_name().unwrap_or_default(), begin, end, at, ty, refers, children }
    }

    fn type_name(&mut self, name: Entity<'_>, named: Entity<'_>) -> Node {
        let mut node = self.node(name);
        node.kind = Kind::TypeName;
        if let Some(ty) = named.get_type() {
            node.ty = self.ty(&ty);
        }
        node
    }

    fn referent(&mut self, to: Entity<'_>) -> Referent {
        let kind = kind(to);
        let of = to.get_semantic_parent().map(|parent| parent.get_kind());
        let inside = !matches!(
            of,
            None | Some(
                EntityKind::TranslationUnit
                    | EntityKind::Namespace
                    | EntityKind::StructDecl
                    | EntityKind::ClassDecl
            )
        );
        let lasts = matches!(to.get_storage_class(), Some(StorageClass::Static | StorageClass::Extern));
        let ty = to.get_type().map(|ty| ty.get_canonical_type().get_kind());
        let is_reference = matches!(ty, Some(TypeKind::LValueReference | TypeKind::RValueReference));
        Referent {
            place: self.place(to.get_location()),
            kind,
            is_local: inside && !lasts,
            is_reference,
            is_of_system: to.is_in_system_header(),
        }
    }

    fn ty(&mut self, ty: &clang::Type<'_>) -> Type {
        let text = ty.get_display_name();
        let canonical = ty.get_canonical_type();
        let is_const = canonical.is_const_qualified();
        let shape = match canonical.get_kind() {
            TypeKind::Record => match canonical.get_declaration() {
                Some(declaration) => Shape::Record(self.record(declaration, &canonical, &text)),
                None => Shape::Other,
            },
            TypeKind::Pointer => match ty.get_pointee_type().or_else(|| canonical.get_pointee_type()) {
                Some(target) => Shape::Pointer(Box::new(self.ty(&target))),
                None => Shape::Other,
            },
            TypeKind::LValueReference | TypeKind::RValueReference => match canonical.get_pointee_type() {
                Some(target) => Shape::Reference(Box::new(self.ty(&target))),
                None => Shape::Other,
            },
            TypeKind::ConstantArray => match (canonical.get_element_type(), canonical.get_size()) {
                (Some(of), Some(count)) => Shape::Array(Box::new(self.ty(&of)), count),
                _ => Shape::Other,
            },
            kind => number(kind, &canonical).map_or(Shape::Other, Shape::Number),
        };
        let is_const = is_const || matches!(&shape, Shape::Array(of, _) if of.is_const);
        Type { shape, is_const, text }
    }

    fn record(&mut self, declaration: Entity<'_>, ty: &clang::Type<'_>, text: &str) -> Place {
        let definition = declaration.get_definition().unwrap_or(declaration);
        let place = self.place(definition.get_location());
        if self.unit.records.contains_key(&place) {
            return place;
        }
        let shown = text.trim_start_matches("const ").trim_start_matches("volatile ");
        let is_name = |name: &&str| !name.is_empty() && !name.contains(['(', ' ', ':', '<']);
        let own = definition.get_name().filter(|name| is_name(&name.as_str()));
        let of = definition.get_semantic_parent().map(|parent| parent.get_kind());
        // Some releases do not expose extern "C".
        let is_inner = !matches!(
            of,
            None | Some(
                EntityKind::TranslationUnit
                    | EntityKind::Namespace
                    | EntityKind::LinkageSpec
                    | EntityKind::UnexposedDecl
            )
        );
        let is_union = definition.get_kind() == EntityKind::UnionDecl;
        let word = if is_union { "union" } else { "struct" };
        // C's struct named by a typedef is spelled as that.
        let canonical = ty.get_display_name();
        let is_tag =
            definition.get_language() != Some(Language::C) || canonical.contains(&format!("{word} "));
        let (tag, spelled) = match own {
            Some(name) if is_tag => (name.clone(), format!("{word} {name}")),
            _ => match Some(shown).filter(is_name) {
                Some(name) => (name.to_owned(), name.to_owned()),
                None => (String::new(), word.to_owned()),
            },
        };
        let record = Record {
            tag,
            spelled,
            size: ty.get_sizeof().unwrap_or(0),
            align: ty.get_alignof().unwrap_or(0),
            is_union,
            is_inner,
            is_qualified: of == Some(EntityKind::Namespace) || canonical.contains('<'),
            is_of_system: definition.is_in_system_header(),
            fields: Vec::new(),
        };
        // Before its fields, which may point to it.
        self.unit.records.insert(place, record);
        let mut fields = Vec::new();
        for field in ty.get_fields().unwrap_or_default() {
            let of = field.get_type().map(|ty| (self.ty(&ty), ty.get_sizeof().unwrap_or(0)));
            let Some((of, size)) = of else { continue };
            fields.push(Field {
                name: field.get_name().unwrap_or_default(),
                place: self.place(field.get_location()),
                ty: of,
                offset: field.get_offset_of_field().unwrap_or(0) / 8,
                size,
                is_bit_field: field.is_bit_field(),
            });
        }
        if let Some(record) = self.unit.records.get_mut(&place) {
            record.fields = fields;
        }
        place
    }
}

fn kind(entity: Entity<'_>) -> Kind {
    match entity.get_kind() {
        EntityKind::FunctionDecl
        | EntityKind::FunctionTemplate
        | EntityKind::Method
        | EntityKind::Constructor
        | EntityKind::Destructor
        | EntityKind::ConversionFunction => Kind::Function,
        EntityKind::ParmDecl => Kind::Parameter,
        EntityKind::VarDecl => Kind::Variable,
        EntityKind::FieldDecl => Kind::Field,
        EntityKind::MemberRefExpr => Kind::Member,
        EntityKind::MemberRef => Kind::FieldName,
        EntityKind::DeclRefExpr => Kind::Name,
        EntityKind::UnexposedExpr => Kind::Implicit,
        EntityKind::ParenExpr => Kind::Paren,
        EntityKind::UnaryOperator => Kind::Unary,
        EntityKind::UnaryExpr => Kind::Unevaluated,
        EntityKind::BinaryOperator => Kind::Binary,
        EntityKind::CompoundAssignOperator => Kind::CompoundAssign,
        EntityKind::ConditionalOperator => Kind::Conditional,
        EntityKind::CStyleCastExpr
        | EntityKind::StaticCastExpr
        | EntityKind::ReinterpretCastExpr
        | EntityKind::ConstCastExpr
        | EntityKind::FunctionalCastExpr => Kind::Cast,
        EntityKind::CallExpr | EntityKind::AsmStmt | EntityKind::MsAsmStmt => Kind::Call,
        EntityKind::ArraySubscriptExpr => Kind::Subscript,
        EntityKind::InitListExpr => Kind::InitList,
        EntityKind::CompoundLiteralExpr => Kind::CompoundLiteral,
        EntityKind::CompoundStmt => Kind::Block,
        EntityKind::DeclStmt => Kind::Declarations,
        EntityKind::IfStmt => Kind::If,
        EntityKind::ForStmt | EntityKind::WhileStmt | EntityKind::DoStmt | EntityKind::ForRangeStmt => {
            Kind::Loop
        }
        EntityKind::SwitchStmt => Kind::Switch,
        EntityKind::CaseStmt | EntityKind::DefaultStmt => Kind::Case,
        EntityKind::LabelStmt => Kind::Label,
        EntityKind::LambdaExpr => Kind::Lambda,
        _ => Kind::Other,
    }
}

fn number(kind: TypeKind, ty: &clang::Type<'_>) -> Option<&'static str> {
    let signed = match kind {
        TypeKind::Bool => return Some("bool"),
        TypeKind::Float => return Some("f32"),
        TypeKind::Double => return Some("f64"),
        TypeKind::Enum => {
            let under = ty.get_declaration()?.get_enum_underlying_type()?;
            under.get_canonical_type().is_signed_integer()
        }
        _ if ty.is_integer() => ty.is_signed_integer(),
        _ => return None,
    };
    // The compiler's own types have no size.
    Some(match (ty.get_sizeof().ok()?, signed) {
        (1, true) => "i8",
        (2, true) => "i16",
        (4, true) => "i32",
        (8, true) => "i64",
        (1, false) => "u8",
        (2, false) => "u16",
        (4, false) => "u32",
        (8, false) => "u64",
        _ => return None,
    })
}
