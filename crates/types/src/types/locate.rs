use super::{Description, Kind, TypeId};
use std::fmt::Write;

impl Description {
    /// The path to the innermost field at byte `offset`, such as `.where[1].x`, and its type's
    /// name. Empty for the value itself, and between fields.
    pub fn locate(&self, offset: u64) -> (String, String) {
        let (mut way, mut id, mut offset) = (String::new(), self.root(), offset);
        while let Some((step, inner, rest)) = self.step(id, offset) {
            way.push_str(&step);
            (id, offset) = (inner, rest);
        }
        (way, self.name(id))
    }

    fn step(&self, id: TypeId, offset: u64) -> Option<(String, TypeId, u64)> {
        match &self.get(id).kind {
            Kind::Struct { fields, .. } => {
                let has = |size: u64, start: u64| (start..start + size).contains(&offset);
                let field = fields.iter().find(|field| has(self.get(field.of).size, field.offset))?;
                Some((format!(".{}", field.name), field.of, offset - field.offset))
            }
            Kind::Array { element, count } => {
                let index = offset.checked_div(self.get(*element).size).filter(|index| index < count)?;
                let mut step = String::new();
                let _ = write!(step, "[{index}]");
                Some((step, *element, offset % self.get(*element).size))
            }
            Kind::Alias { of, .. } => self.step(*of, offset),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Description;

    #[test]
    fn bytes_belong_to_the_innermost_field() {
        let words = "place:40:8 { name@0:1 char~ i8 where@8:16 [2] point:8:4 { x@0:4 i32 y@4:4 i32 } next@24:8 *mut place } ";
        let of = Description::parse(words).unwrap();
        let located = |offset| {
            let (way, of) = of.locate(offset);
            format!("{way}: {of}")
        };
        assert_eq!(located(0), ".name: char", "by the name that people see");
        assert_eq!(located(3), ": place", "between fields");
        assert_eq!(located(8), ".where[0].x: i32");
        assert_eq!(located(23), ".where[1].y: i32");
        assert_eq!(located(24), ".next: *mut place");
        assert_eq!(located(36), ": place");
    }
}
