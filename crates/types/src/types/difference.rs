//! Compares two descriptions: the first difference, or the first growth. Types are visited depth
//! first, in field order, so that a grown field is named before the fields that it moved. An
//! explicit work list bounds recursion.

use super::{Description, Field, Kind, Type, TypeId, Variant};
use std::collections::HashSet;
use std::rc::Rc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    Same,
    /// Only fields or variants behind the last ones were added; this is the first.
    Appended(String),
    Differs(String),
}

impl Description {
    pub fn difference(&self, other: &Description) -> Option<String> {
        Comparison::new(self, other, false).run().err()
    }

    pub fn target_difference(&self, other: &Description) -> Option<String> {
        let mut comparison = Comparison::new(self, other, false);
        comparison.follows = true;
        comparison.run().err()
    }

    pub(super) fn alike(
        &self,
        here: TypeId,
        other: &Description,
        there: TypeId,
    ) -> Option<HashSet<(TypeId, TypeId)>> {
        let mut comparison = Comparison::new(self, other, false);
        comparison.pending = vec![Task::Types { path: String::new(), here, there }];
        comparison.compare().ok()?;
        Some(comparison.met)
    }

    pub fn relation(&self, other: &Description) -> Relation {
        match Comparison::new(self, other, true).run() {
            Ok(None) => Relation::Same,
            Ok(Some(first)) => Relation::Appended(first),
            Err(first) => Relation::Differs(first),
        }
    }
}

struct Part {
    way: String,
    offset: Option<u64>,
    of: TypeId,
}

impl Part {
    fn new(way: &str, of: TypeId) -> Part {
        Part { way: way.to_owned(), offset: None, of }
    }

    fn field(field: &Field) -> Part {
        Part { way: format!(".{}", field.name), offset: Some(field.offset), of: field.of }
    }
}

enum Task {
    Types {
        path: String,
        here: TypeId,
        there: TypeId,
    },
    /// `path` is that of the containing type.
    Parts {
        path: Rc<str>,
        here: Part,
        there: Part,
    },
    Only {
        path: String,
        added: bool,
    },
    Sizes {
        path: String,
        here: TypeId,
        there: TypeId,
        grown: usize,
    },
}

struct Comparison<'d> {
    here: &'d Description,
    there: &'d Description,
    growth: bool,
    follows: bool,
    grown: Vec<String>,
    met: HashSet<(TypeId, TypeId)>,
    pending: Vec<Task>,
}

type Compared = Result<(), String>;

impl<'d> Comparison<'d> {
    fn new(here: &'d Description, there: &'d Description, growth: bool) -> Self {
        let pending = vec![Task::Types { path: here.name(here.root), here: here.root, there: there.root }];
        Comparison { here, there, growth, follows: false, grown: Vec::new(), met: HashSet::new(), pending }
    }

    fn run(mut self) -> Result<Option<String>, String> {
        self.compare()?;
        Ok(self.grown.into_iter().next())
    }

    fn compare(&mut self) -> Compared {
        while let Some(task) = self.pending.pop() {
            match task {
                Task::Types { path, here, there } => {
                    let itself = std::ptr::eq(self.here, self.there) && here == there;
                    if !itself && self.met.insert((here, there)) {
                        self.types(path, here, there)?;
                    }
                }
                Task::Parts { path, here, there } => self.parts(&path, &here, &there)?,
                Task::Only { path, added: true } => self.added(format!("{path} is there only"))?,
                Task::Only { path, added: false } => return Err(format!("{path} is here only")),
                Task::Sizes { path, here, there, grown } => self.sizes(&path, (here, there), grown)?,
            }
        }
        Ok(())
    }

    fn types(&mut self, path: String, here: TypeId, there: TypeId) -> Compared {
        let (one, two) = (self.here.get(here), self.there.get(there));
        let (head, other) = (self.here.head(here), self.there.head(there));
        if head != other {
            return Err(format!("{path}: {head} here, {other} there"));
        }
        self.pending.push(Task::Sizes { path: path.clone(), here, there, grown: self.grown.len() });
        match (&one.kind, &two.kind) {
            (Kind::Enum { variants, .. }, Kind::Enum { variants: others, .. }) => {
                return self.variants(&path, variants, others);
            }
            (Kind::Struct { fields, .. }, Kind::Struct { fields: others, .. }) => {
                self.fields(&path, fields, others);
            }
            (Kind::Pointer { to: Some(one), .. }, Kind::Pointer { to: Some(two), .. }) if self.follows => {
                self.pending.push(Task::Types { path, here: *one, there: *two });
            }
            _ => self.all(&path, self.here.inner(here), self.there.inner(there)),
        }
        Ok(())
    }

    fn variants(&mut self, path: &str, here: &[Variant], there: &[Variant]) -> Compared {
        let text = |variant: &Variant| format!("{} = {}", variant.name, variant.number);
        let texts = here.iter().zip(there).map(|(one, two)| (text(one), text(two)));
        if let Some((one, two)) = texts.clone().find(|(one, two)| one != two) {
            return Err(format!("{path}: variant {one} here, {two} there"));
        }
        if let Some(only) = here.get(there.len()) {
            return Err(format!("{path}: variant {} is here only", text(only)));
        }
        if let Some(only) = there.get(here.len()) {
            self.added(format!("{path}: variant {} is there only", text(only)))?;
        }
        for (one, two) in here.iter().zip(there).rev() {
            self.fields(&format!("{path}.{}", one.name), &one.fields, &two.fields);
        }
        Ok(())
    }

    fn added(&mut self, what: String) -> Compared {
        if !self.growth {
            return Err(what);
        }
        self.grown.push(what);
        Ok(())
    }

    fn fields(&mut self, path: &str, here: &[Field], there: &[Field]) {
        let parts = |fields: &[Field]| fields.iter().map(Part::field).collect();
        self.all(path, parts(here), parts(there));
    }

    fn all(&mut self, path: &str, here: Vec<Part>, there: Vec<Part>) {
        let only = here.get(there.len()).map(|part| (part, false));
        if let Some((part, added)) = only.or_else(|| there.get(here.len()).map(|part| (part, true))) {
            self.pending.push(Task::Only { path: format!("{path}{}", part.way), added });
        }
        let path: Rc<str> = path.into();
        let mut pairs: Vec<_> = here.into_iter().zip(there).collect();
        while let Some((here, there)) = pairs.pop() {
            self.pending.push(Task::Parts { path: path.clone(), here, there });
        }
    }

    fn parts(&mut self, path: &str, here: &Part, there: &Part) -> Compared {
        if here.way != there.way {
            return Err(format!("{path}{} here, {path}{} there", here.way, there.way));
        }
        let path = format!("{path}{}", here.way);
        let (one, two) = (self.here.name(here.of), self.there.name(there.of));
        if one != two && !self.is_same_generic(here.of, there.of) {
            return Err(format!("{path}: {one} here, {two} there"));
        }
        if let (Some(at), Some(elsewhere)) = (here.offset, there.offset)
            && at != elsewhere
        {
            return Err(format!("{path}: at {at} here, at {elsewhere} there"));
        }
        self.pending.push(Task::Types { path, here: here.of, there: there.of });
        Ok(())
    }

    fn is_same_generic(&self, here: TypeId, there: TypeId) -> bool {
        let defined =
            |ty: &Type| matches!(ty.kind, Kind::Struct { .. } | Kind::Enum { .. } | Kind::Opaque { .. });
        defined(self.here.get(here)) && self.here.head(here) == self.there.head(there)
    }

    fn sizes(&mut self, path: &str, (here, there): (TypeId, TypeId), grown: usize) -> Compared {
        let (one, two) = (self.here.name(here), self.there.name(there));
        if one != two && self.is_same_generic(here, there) {
            return Err(format!("{path}: {one} here, {two} there"));
        }
        let (one, two) = (self.here.get(here), self.there.get(there));
        let text = |ty: &Type| format!("{} bytes, alignment {}", ty.size, ty.align);
        match (one.size, one.align) == (two.size, two.align) || self.grown.len() > grown {
            true => Ok(()),
            false => Err(format!("{path}: {} here, {} there", text(one), text(two))),
        }
    }
}

impl Description {
    fn head(&self, id: TypeId) -> String {
        let base = |name: &str| name.split('<').next().unwrap_or_default().to_owned();
        match &self.get(id).kind {
            Kind::Scalar { .. } | Kind::Pointer { .. } | Kind::Text => self.name(id),
            Kind::Struct { name, .. } => format!("struct {}", base(name)),
            Kind::Opaque { name, .. } => format!("opaque {}", base(name)),
            Kind::Alias { name, .. } => format!("alias {name}"),
            Kind::Enum { name, integer: Some(integer), .. } => {
                format!("enum {} with a tag of {integer}", base(name))
            }
            Kind::Enum { name, tag, .. } => format!("enum {} of {tag} bytes", base(name)),
            Kind::Array { count, .. } => format!("[{count}]"),
            Kind::Vector(_) => "PVec".to_owned(),
            Kind::Ring(_) => "PVecDeque".to_owned(),
            Kind::Boxed { optional: true, .. } => "Option<PBox>".to_owned(),
            Kind::Boxed { .. } => "PBox".to_owned(),
            Kind::Shared { optional: true, .. } => "Option<PRc>".to_owned(),
            Kind::Shared { .. } => "PRc".to_owned(),
            Kind::Optional(_) => "POption".to_owned(),
            Kind::Hashed { set: true, .. } => "PHashSet".to_owned(),
            Kind::Hashed { .. } => "PHashMap".to_owned(),
            Kind::Ordered { .. } => "PBTreeMap".to_owned(),
            Kind::Lock { word, .. } => (*word).to_owned(),
            Kind::Extensions => "Extensions".to_owned(),
        }
    }

    fn inner(&self, id: TypeId) -> Vec<Part> {
        match &self.get(id).kind {
            Kind::Opaque { parameters, .. } => {
                let part = |(index, of): (usize, &TypeId)| Part::new(&format!("<{index}>"), *of);
                parameters.iter().enumerate().map(part).collect()
            }
            Kind::Array { element, .. } | Kind::Vector(element) | Kind::Ring(element) => {
                vec![Part::new("[0]", *element)]
            }
            Kind::Boxed { value, .. }
            | Kind::Shared { value, .. }
            | Kind::Optional(value)
            | Kind::Lock { value, .. }
            | Kind::Alias { of: value, .. } => vec![Part::new("", *value)],
            Kind::Hashed { key, value, .. } | Kind::Ordered { key, value } => {
                vec![Part::new(".keys", *key), Part::new(".values", *value)]
            }
            _ => Vec::new(),
        }
    }
}
