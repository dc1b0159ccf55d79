use crate::heap::{Root, TypeInfo};
use crate::types::{Description, Relation, own};

/// A root's type compared with a program's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Comparison {
    /// The program can use the root as is.
    Same,
    /// The program's type only adds fields behind the last ones of structs, or variants behind the
    /// last ones of enums: this is the first.
    Appended(String),
    /// The types differ; this is the first difference beyond that.
    Differs(String),
    /// The types differ, and one has no readable description.
    Undescribed,
}

impl Root {
    /// Compares the root's type with a program's.
    #[must_use]
    pub fn compare(&self, ty: &TypeInfo<'_>) -> Comparison {
        if self.is(ty) {
            return Comparison::Same;
        }
        let (Some(here), Ok(there)) = (self.description(), Description::parse(ty.layout)) else {
            return Comparison::Undescribed;
        };
        match here.relation(&there) {
            Relation::Same if own(&self.layout) == own(ty.layout) => {
                Comparison::Differs("keys of bytes are hashed in another way".to_owned())
            }
            Relation::Same => Comparison::Differs(format!("{} here, {} there", self.type_name, ty.name)),
            Relation::Appended(first) => Comparison::Appended(first),
            Relation::Differs(first) => Comparison::Differs(first),
        }
    }
}
