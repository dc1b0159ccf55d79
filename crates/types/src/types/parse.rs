//! The parser of descriptions. Types are numbered when their definition begins, so that it may
//! mention itself. The text is not trusted.

use super::measure::{DEEPEST, check_parts, layout_of, settle_plain};
use super::scalar;
use super::{Description, Field, Kind, Pointer, Type, TypeId, Valid, Variant};

pub const MOST: usize = 1 << 20;
const LARGEST: u64 = 1 << 46;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", position(*word))]
pub struct Malformed {
    word: usize,
    what: String,
}

fn position(word: usize) -> String {
    if word == 0 { String::new() } else { format!("word {word}: ") }
}

type Result<T> = std::result::Result<T, Malformed>;

impl Description {
    /// The error is the first invalid word, or an impossible type.
    pub fn parse(text: &str) -> Result<Description> {
        if text.len() > MOST {
            return Err(Malformed { word: 0, what: format!("a description of {} bytes", text.len()) });
        }
        let mut parser = Parser {
            words: text.split_ascii_whitespace(),
            word: 0,
            types: Vec::new(),
            defined: Vec::new(),
            pointers: Vec::new(),
        };
        let root = parser.describe(0)?;
        parser.targets()?;
        finish(parser.types, root)
    }
}

fn finish(mut types: Vec<Type>, root: TypeId) -> Result<Description> {
    let order = check_parts(&types).map_err(|what| Malformed { word: 0, what })?;
    settle_plain(&mut types, &order);
    Ok(Description { types, root })
}

fn by_tag(variants: &[Variant], bytes: u64) -> std::result::Result<Vec<(u128, usize)>, &str> {
    let unused = 128 - 8 * bytes as u32;
    let tag = |variant: &Variant| ((variant.number as u128) << unused) >> unused;
    let mut all: Vec<_> = (0..).zip(variants).map(|(index, variant)| (tag(variant), index)).collect();
    all.sort_unstable();
    match all.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(&variants[pair[1].1].name),
        None => Ok(all),
    }
}

struct Parser<'t> {
    words: std::str::SplitAsciiWhitespace<'t>,
    word: usize,
    types: Vec<Type>,
    defined: Vec<TypeId>,
    pointers: Vec<TypeId>,
}

impl<'t> Parser<'t> {
    fn fail<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(Malformed { word: self.word, what: what.into() })
    }

    fn next(&mut self) -> Result<&'t str> {
        self.word += 1;
        match self.words.next() {
            Some(word) => Ok(word),
            None => self.fail("the text ends in the middle of a type"),
        }
    }

    fn put(&mut self, size: u64, align: u64, kind: Kind) -> TypeId {
        self.types.push(Type { size, align, plain: false, kind });
        self.types.len() - 1
    }

    fn made(&mut self, kind: Kind) -> Result<TypeId> {
        match layout_of(&self.types, &kind) {
            Some((size, align)) if size <= LARGEST => Ok(self.put(size, align, kind)),
            _ => self.fail("a type larger than any object"),
        }
    }

    fn describe(&mut self, depth: usize) -> Result<TypeId> {
        if depth > DEEPEST {
            return self.fail(format!("more than {DEEPEST} types within each other"));
        }
        let word = self.next()?;
        if let Some((word, size, valid)) = scalar::find(word) {
            return Ok(self.put(size, size.max(1), Kind::Scalar { word, valid }));
        }
        if let Some(number) = word.strip_prefix('=') {
            return match number.parse::<usize>().ok().and_then(|number| self.defined.get(number)) {
                Some(id) => Ok(*id),
                None => self.fail(format!("{word}: no such type")),
            };
        }
        if let Some(count) = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let Ok(count) = count.parse() else { return self.fail(format!("{word}: no length")) };
            let element = self.describe(depth + 1)?;
            return self.made(Kind::Array { element, count });
        }
        if let Some(name) = word.strip_suffix('~').filter(|name| !name.is_empty()) {
            let of = self.describe(depth + 1)?;
            return self.made(Kind::Alias { name: name.to_owned(), of });
        }
        match word {
            "*mut" => self.pointer(Pointer::Mutable),
            "*const" => self.pointer(Pointer::Constant),
            "atomic" => self.pointer_of("*mut", Pointer::Atomic),
            "relative" => self.pointer_of("*mut", Pointer::Relative),
            "far" => self.pointer(Pointer::Far),
            "Option" => {
                let word = self.next()?;
                if !matches!(word, "PBox" | "PRc") {
                    return self.fail(format!("{word:?} where \"PBox\" or \"PRc\" should be"));
                }
                let value = self.describe(depth + 1)?;
                self.made(match word {
                    "PRc" => Kind::Shared { value, optional: true },
                    _ => Kind::Boxed { value, optional: true },
                })
            }
            "PBox" => {
                let value = self.describe(depth + 1)?;
                self.made(Kind::Boxed { value, optional: false })
            }
            "PRc" => {
                let value = self.describe(depth + 1)?;
                self.made(Kind::Shared { value, optional: false })
            }
            "PString" => self.made(Kind::Text),
            "PVec" => {
                let element = self.describe(depth + 1)?;
                self.made(Kind::Vector(element))
            }
            "PVecDeque" => {
                let element = self.describe(depth + 1)?;
                self.made(Kind::Ring(element))
            }
            "POption" => {
                let value = self.describe(depth + 1)?;
                self.made(Kind::Optional(value))
            }
            "PHashMap" => {
                let (key, value) = (self.describe(depth + 1)?, self.describe(depth + 1)?);
                self.made(Kind::Hashed { key, value, set: false })
            }
            "PHashSet" => {
                let key = self.describe(depth + 1)?;
                let value = self.put(0, 1, Kind::Scalar { word: "()", valid: Valid::Any });
                self.made(Kind::Hashed { key, value, set: true })
            }
            "PBTreeMap" => {
                let (key, value) = (self.describe(depth + 1)?, self.describe(depth + 1)?);
                self.made(Kind::Ordered { key, value })
            }
            "Extensions" => self.made(Kind::Extensions),
            "PMutex" => self.lock("PMutex", depth),
            "PRwLock" => self.lock("PRwLock", depth),
            _ => self.define(word, depth),
        }
    }

    fn expect(&mut self, wanted: &str) -> Result<()> {
        match self.next()? {
            word if word == wanted => Ok(()),
            word => self.fail(format!("{word:?} where {wanted:?} should be")),
        }
    }

    fn pointer(&mut self, how: Pointer) -> Result<TypeId> {
        let target = self.next()?.to_owned();
        let id = self.put(8, 8, Kind::Pointer { how, target, to: None });
        self.pointers.push(id);
        Ok(id)
    }

    fn targets(&mut self) -> Result<()> {
        let mut least = 0;
        while self.words.clone().next().is_some() {
            if self.next()? != "->" {
                return self.fail("behind the end of the type");
            }
            let word = self.next()?;
            let number = word.parse::<usize>().ok().filter(|number| *number >= least);
            let Some((number, pointer)) =
                number.and_then(|number| Some((number, *self.pointers.get(number)?)))
            else {
                return self.fail(format!("{word}: no pointer of that number without a target"));
            };
            least = number + 1;
            let target = self.describe(0)?;
            if let Kind::Pointer { to, .. } = &mut self.types[pointer].kind {
                *to = Some(target);
            }
        }
        Ok(())
    }

    fn pointer_of(&mut self, next: &str, how: Pointer) -> Result<TypeId> {
        self.expect(next)?;
        self.pointer(how)
    }

    fn lock(&mut self, word: &'static str, depth: usize) -> Result<TypeId> {
        let value = self.describe(depth + 1)?;
        self.made(Kind::Lock { word, value })
    }

    fn head(&mut self, first: &str) -> Result<String> {
        let open = |word: &str| word.matches('<').count() as i64 - word.matches('>').count() as i64;
        let (mut head, mut depth) = (first.to_owned(), open(first));
        while depth > 0 {
            let word = self.next()?;
            depth += open(word);
            head.push(' ');
            head.push_str(word);
        }
        Ok(head)
    }

    fn define(&mut self, first: &str, depth: usize) -> Result<TypeId> {
        let head = self.head(first)?;
        let mut parts = head.rsplitn(3, ':');
        let (align, size, name) = (parts.next(), parts.next(), parts.next());
        let number = |part: Option<&str>| part.and_then(|part| part.parse::<u64>().ok());
        let (Some(size), Some(align), Some(name)) = (number(size), number(align), name) else {
            return self.fail(format!("{head}: no type of that name"));
        };
        let fits =
            align.is_power_of_two() && align <= 1 << 29 && size <= LARGEST && size.is_multiple_of(align);
        if name.is_empty() || !fits {
            return self.fail(format!("{head}: no size and alignment of a type"));
        }
        let name = name.to_owned();
        match self.next()? {
            "{" => {}
            "<" => return self.opaque(name, (size, align), depth),
            word => return self.fail(format!("{word:?} where \"{{\" or \"<\" should be")),
        }
        let id = self.put(size, align, Kind::Struct { name: name.clone(), fields: Vec::new() });
        self.defined.push(id);
        self.types[id].kind = self.members(name, size, depth)?;
        Ok(id)
    }

    fn opaque(&mut self, name: String, (size, align): (u64, u64), depth: usize) -> Result<TypeId> {
        let id = self.put(size, align, Kind::Opaque { name: name.clone(), parameters: Vec::new() });
        self.defined.push(id);
        let mut parameters = Vec::new();
        while !self.ends(">") {
            parameters.push(self.describe(depth + 1)?);
        }
        self.types[id].kind = Kind::Opaque { name, parameters };
        Ok(id)
    }

    fn ends(&mut self, end: &str) -> bool {
        let is = self.words.clone().next() == Some(end);
        if is {
            self.words.next();
            self.word += 1;
        }
        is
    }

    fn members(&mut self, name: String, size: u64, depth: usize) -> Result<Kind> {
        let (mut fields, mut variants, mut tag) = (Vec::new(), Vec::<Variant>::new(), None);
        let mut open = false;
        loop {
            let word = self.next()?;
            if word == "}" {
                break;
            } else if let Some(integer) = word.strip_prefix("tag:") {
                tag = scalar::find(integer).map(|(word, size, _)| (word, size));
                if tag.is_none() || !variants.is_empty() || !fields.is_empty() {
                    return self.fail(format!("{word}: no tag of an enum"));
                }
            } else if word == "(" && open {
                open = false;
                let Some(variant) = variants.last_mut() else { return self.fail("fields of no variant") };
                let mut fields = std::mem::take(&mut variant.fields);
                while let Some(field) = self.field_or(")", depth)? {
                    fields.push(field);
                }
                if let Some(variant) = variants.last_mut() {
                    variant.fields = fields;
                }
            } else if word.contains('@') {
                fields.push(self.field(word, depth)?);
            } else {
                variants.push(self.variant(word, tag.map_or(size, |tag| tag.1))?);
                open = true;
            }
        }
        match (fields.is_empty(), variants.is_empty()) {
            (false, false) => self.fail("a type with fields and variants"),
            (true, false) => {
                let (integer, tag) = (tag.map(|tag| tag.0), tag.map_or(size, |tag| tag.1));
                match by_tag(&variants, tag) {
                    Ok(by_tag) => Ok(Kind::Enum { name, tag, integer, variants, by_tag }),
                    Err(twice) => {
                        self.fail(format!("{twice}: another variant of {name} has the same number"))
                    }
                }
            }
            _ if tag.is_some() => self.fail("an enum without variants"),
            _ => Ok(Kind::Struct { name, fields }),
        }
    }

    fn field_or(&mut self, end: &str, depth: usize) -> Result<Option<Field>> {
        match self.next()? {
            word if word == end => Ok(None),
            word => self.field(word, depth).map(Some),
        }
    }

    fn field(&mut self, word: &str, depth: usize) -> Result<Field> {
        let parts = word.split_once('@').and_then(|(name, place)| Some((name, place.split_once(':')?)));
        let Some((name, (offset, size))) = parts else { return self.fail(format!("{word}: no field")) };
        let (Ok(offset), Ok(size)) = (offset.parse::<u64>(), size.parse::<u64>()) else {
            return self.fail(format!("{word}: no place of a field"));
        };
        let at = self.word;
        let of = self.describe(depth + 1)?;
        match self.types[of].size == size {
            true => Ok(Field { name: name.to_owned(), offset, of }),
            false => Err(Malformed {
                word: at,
                what: format!("{word}: its type has {} bytes", self.types[of].size),
            }),
        }
    }

    fn variant(&mut self, word: &str, tag: u64) -> Result<Variant> {
        let parts =
            word.split_once('=').and_then(|(name, number)| Some((name, number.parse::<i128>().ok()?)));
        match parts {
            Some((name, number)) if matches!(tag, 1 | 2 | 4 | 8 | 16) => {
                Ok(Variant { name: name.to_owned(), number, fields: Vec::new() })
            }
            _ => self.fail(format!("{word}: no variant of an enum")),
        }
    }
}
