use super::*;

#[test]
fn forged_descriptions_are_refused() {
    let wrong = [
        ("", "the text ends"),
        ("u8 u8", "behind the end"),
        ("PVec", "the text ends"),
        ("nothing", "no type of that name"),
        ("=0", "no such type"),
        ("S:8:8 { a@0:8 =0 }", "a part of itself"),
        ("S:8:8 { a@0:8 [1] =0 }", "a part of itself"),
        ("S:8:8 { a@0:4 u32 b@2:4 u32 }", "field b of S"),
        ("S:8:8 { a@4:8 u64 }", "field a of S"),
        ("S:8:8 { a@0:4 u64 }", "8 bytes"),
        ("S:8:4 { a@0:8 u64 }", "field a of S"),
        ("S:9:8 { }", "no size and alignment"),
        ("S:8:3 { }", "no size and alignment"),
        ("S:8:8 { a@18446744073709551615:8 u64 }", "field a of S"),
        ("[18446744073709551615] u64", "larger than any object"),
        ("[18446744073709551615] [18446744073709551615] u64", "larger than any object"),
        ("E:1:1 { tag:u64 A=0 ( ) }", "its tag"),
        ("E:3:1 { A=0 }", "no variant"),
        ("E:8:8 { A=0 a@0:1 u8 }", "fields and variants"),
        ("E:8:8 { tag:u8 }", "without variants"),
        ("E:8:8 { tag:u8 A=0 ( x@0:1 u8 ) }", "field x of E"),
        ("E:8:8 { tag:u8 ( x@0:1 u8 ) }", "no variant"),
        ("S:8:8 { A=x }", "no variant"),
        ("S:8:8 <", "the text ends"),
        ("long~", "the text ends"),
        ("P<u8, u8:8:8 { }", "the text ends"),
        ("P<u8, u8> :8:8 { }", "no type of that name"),
        ("S:8:8 { a@0:8 x~ =0 }", "a part of itself"),
        ("S:8:8 ( )", "should be"),
        ("E:1:1 { A=0 B=0 }", "B: another variant of E"),
        ("E:1:1 { A=-1 B=255 }", "B: another variant of E"),
        ("atomic u8", "where \"*mut\" should be"),
        ("*mut A ->", "the text ends"),
        ("*mut A -> 0", "the text ends"),
        ("*mut A -> 1 u8", "1: no pointer of that number"),
        ("*mut A -> x u8", "x: no pointer of that number"),
        ("*mut A -> -1 u8", "-1: no pointer of that number"),
        ("*mut A -> 0 u8 -> 0 u8", "0: no pointer of that number without a target"),
        ("[2] S:16:8 { a@0:8 *mut A b@8:8 *mut B } -> 1 u8 -> 0 u8", "0: no pointer of that number without"),
        ("*mut A -> 0 =0", "no such type"),
        ("*mut A -> 0 S:8:8 { a@0:8 =0 }", "a part of itself"),
        ("*mut A -> 0 [18446744073709551615] u64", "larger than any object"),
        ("*mut A -> 0 u8 u8", "behind the end"),
        ("u8 -> 0 u8", "no pointer of that number"),
    ];
    for (text, expected) in wrong {
        let error = Description::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let deep = "PVec ".repeat(200) + "u8";
    assert!(Description::parse(&deep).unwrap_err().to_string().contains("within each other"));
    assert!(Description::parse(&"PVec ".repeat(300_000)).is_err());
    // Nested empty types with exponentially many paths.
    let twice = (1..90)
        .rev()
        .fold("N:0:1 { }".to_owned(), |inner, number| format!("N:0:1 {{ a@0:0 {inner} b@0:0 ={number} }}"));
    let twice = Description::parse(&twice).unwrap();
    assert!(twice.get(twice.root()).plain);
    assert_eq!(twice.difference(&twice.clone()), None);
}

#[test]
fn names_of_generic_types_have_blanks_between_their_arguments() {
    let inner = "Q<P<u8, i8>, [u8; 4]>:1:1 { c@0:1 =1 }";
    let text = format!("S:2:1 {{ a@0:1 P<u8, i8>:1:1 {{ a@0:1 u8 }} b@1:1 {inner} }}");
    let of = Description::parse(&text).unwrap();
    let names = of.all().filter_map(|ty| match &ty.kind {
        Kind::Struct { name, .. } => Some(name.as_str()),
        _ => None,
    });
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    assert_eq!(names, ["P<u8, i8>", "Q<P<u8, i8>, [u8; 4]>", "S"]);
    let other = Description::parse(&text.replace("c@0:1", "d@0:1")).unwrap();
    assert_eq!(of.difference(&other).unwrap(), "S.b.c here, S.b.d there");
}

#[test]
fn the_first_difference_is_named() {
    let difference = |one: &str, two: &str| {
        let parse = |text| Description::parse(text).unwrap();
        parse(one).difference(&parse(two))
    };
    let same = "S:16:8 { a@0:8 u64 b@8:8 *mut S }";
    assert_eq!(difference(same, same), None);
    assert_eq!(difference(same, "S:16:8 { a@0:8 u64 c@8:8 *mut S }").unwrap(), "S.b here, S.c there");
    assert_eq!(difference(same, "S:16:8 { a@0:8 i64 b@8:8 *mut S }").unwrap(), "S.a: u64 here, i64 there");
    assert_eq!(
        difference("PVec S:8:8 { a@0:8 u64 }", "PVec S:16:8 { a@0:8 u64 b@8:8 u64 }").unwrap(),
        "PVec<S>[0].b is there only"
    );
    assert_eq!(
        difference("S:16:8 { a@0:4 u32 b@4:4 u32 }", "S:16:8 { a@0:4 u32 b@8:4 u32 }").unwrap(),
        "S.b: at 4 here, at 8 there"
    );
    assert_eq!(
        difference("E:1:1 { A=0 B=1 }", "E:1:1 { A=0 B=2 }").unwrap(),
        "E: variant B = 1 here, B = 2 there"
    );
    assert_eq!(
        difference("A:8:8 { b@0:8 B:8:8 { c@0:8 u64 } }", "A:8:8 { b@0:8 B:8:8 { c@0:8 f64 } }").unwrap(),
        "A.b.c: u64 here, f64 there"
    );
    assert_eq!(
        difference(
            "A:16:4 { b@0:8 B:8:4 { c@0:4 u32 d@4:4 u32 } e@8:4 u32 f@12:4 u32 }",
            "A:20:4 { b@0:12 B:12:4 { c@0:4 u32 d@4:4 u32 g@8:4 u32 } e@12:4 u32 f@16:4 u32 }"
        )
        .unwrap(),
        "A.b.g is there only"
    );
    assert_eq!(
        difference("P<u8>:1:1 { a@0:1 u8 }", "P<i8>:1:1 { a@0:1 i8 }").unwrap(),
        "P<u8>.a: u8 here, i8 there"
    );
    assert_eq!(difference("P<u8>:0:1 { }", "P<i8>:0:1 { }").unwrap(), "P<u8>: P<u8> here, P<i8> there");
    assert_eq!(difference("X:1:1 { a@0:1 u8 }", "X:1:1 < >").unwrap(), "X: struct X here, opaque X there");
}

#[test]
fn a_type_that_only_grew_is_told_apart() {
    let relation = |one: &str, two: &str| {
        let parse = |text| Description::parse(text).unwrap();
        parse(one).relation(&parse(two))
    };
    let appended = |text: &str| Relation::Appended(text.to_owned());
    let differs = |text: &str| Relation::Differs(text.to_owned());
    let item = "I:8:4 { a@0:4 u32 b@4:4 u32 }";
    let longer = "I:16:8 { a@0:4 u32 b@4:4 u32 c@8:8 u64 }";
    assert_eq!(relation(item, item), Relation::Same);
    assert_eq!(relation(item, longer), appended("I.c is there only"));
    assert_eq!(relation(longer, item), differs("I.c is here only"));
    assert_eq!(
        relation(&format!("PVec {item}"), &format!("PVec {longer}")),
        appended("PVec<I>[0].c is there only")
    );
    assert_eq!(relation("E:1:1 { A=0 }", "E:1:1 { A=0 B=1 }"), appended("E: variant B = 1 is there only"));
    assert_eq!(relation("E:1:1 { A=0 }", "E:1:1 { B=1 A=0 }"), differs("E: variant A = 0 here, B = 1 there"));
    assert_eq!(
        relation(
            &format!("S:12:4 {{ x@0:8 {item} y@8:4 u32 }}"),
            &format!("S:24:8 {{ x@0:16 {longer} y@16:4 u32 }}")
        ),
        differs("S.y: at 8 here, at 16 there")
    );
    assert_eq!(
        relation(
            &format!("S:32:8 {{ x@0:24 PVec {item} y@24:8 O:8:8 < > }}"),
            &format!("S:40:8 {{ x@0:24 PVec {longer} y@24:16 O:16:8 < > }}")
        ),
        differs("S.y: 8 bytes, alignment 8 here, 16 bytes, alignment 8 there")
    );
}

fn nested(structs: usize) -> String {
    let fields: String = (0..structs - 1)
        .map(|number| format!("f{number}@{0}:1 S{number}:1:1 {{ a@0:1 ={0} }} ", number + 1))
        .collect();
    format!("Z:{structs}:1 {{ a@0:1 S:1:1 {{ a@0:1 bool }} {fields}}} ")
}

#[test]
fn a_description_cannot_make_work_out_of_proportion_to_its_object() {
    let refused = |text: &str, what: &str| {
        assert!(text.len() <= parse::MOST, "{}", text.len());
        let error = Description::parse(text).unwrap_err().to_string();
        assert!(error.ends_with(what), "{error}");
    };
    refused(&nested(20_000), "more than 100 types within each other");
    assert!(Description::parse(&nested(90)).is_ok());
    let empty = |fields: usize| format!("S:1:1 {{ {}b@0:1 bool }} ", "a@0:0 () ".repeat(fields));
    refused(&empty(100_000), "S: 100000 fields without bytes");
    assert!(Description::parse(&empty(64)).is_ok());
    let variant = format!("E:2:1 {{ tag:u8 A=0 ( {}) }} ", "a@1:0 () ".repeat(65));
    refused(&variant, "E: 65 fields without bytes");
}

#[test]
fn long_names_in_a_description_are_not_kept_many_times() {
    let (name, count) = ("n".repeat(300_000), 40_000);
    let fields = |of: &str| (0..count).map(|at| format!("a@{at}:1 {of} ")).collect::<String>();
    let of_long =
        format!("S:{count}:1 {{ {}}} ", fields("=1").replacen("=1", &format!("{name}:1:1 {{ }}"), 1));
    assert!(Description::parse(&of_long).unwrap().lines().len() < 16 << 20);
    let long_way = |last: &str| {
        let all = fields("u8");
        let all = all.strip_suffix("u8 ").unwrap();
        format!("S:{count}:1 {{ {name}@0:{count} T:{count}:1 {{ {all}{last} }} }} ")
    };
    let [one, two] = ["u8", "bool"].map(|last| Description::parse(&long_way(last)).unwrap());
    assert!(one.difference(&two).unwrap().ends_with("n.a: u8 here, bool there"));
}

fn random_type(rng: &mut indelible_testing::Seeded, depth: usize) -> String {
    let leaves =
        ["X:0:1 < >", "u8", "u64", "bool", "char", "()", "PString", "*mut X", "relative *mut X", "u128"];
    if depth == 0 || rng.u8(..4) == 0 {
        return leaves[rng.usize(..leaves.len())].to_owned();
    }
    let inner = random_type(rng, depth - 1);
    match rng.u8(..14) {
        13 => format!("{}PRc {inner}", ["", "Option "][rng.usize(..2)]),
        0 => format!("PVec {inner}"),
        1 => format!("PBox {inner}"),
        2 => format!("Option PBox {inner}"),
        3 => format!("POption {inner}"),
        4 => format!("PHashMap {inner} {}", random_type(rng, depth - 1)),
        5 => format!("PHashSet {inner}"),
        6 => format!("PBTreeMap {inner} {}", random_type(rng, depth - 1)),
        7 => format!("PMutex {inner}"),
        8 => format!("[{}] {inner}", [0, 1, 2, 3, 4, u64::MAX][rng.usize(..6)]),
        9 => format!("E:8:8 {{ tag:u8 A=0 B=1 ( p@8:8 PBox {inner} ) }}"),
        10 if rng.bool() => format!("={}", rng.u8(..3)),
        11 => format!("PVecDeque {inner}"),
        10 => format!("map<K,V>:24:8 < {inner} >"),
        _ => {
            let Ok(of) = Description::parse(&inner) else { return inner };
            let (size, align) = (of.get(of.root()).size, of.get(of.root()).align);
            format!("S:{}:{align} {{ x@0:{size} {inner} y@{size}:{size} {inner} }}", 2 * size)
        }
    }
}

struct Count(u64);

impl walk::Visitor for Count {
    fn block(&mut self, _: u64, path: &Path<'_, '_>) {
        self.0 += path.to_string().len() as u64;
    }

    fn pointer(&mut self, _: u64, _: u64, path: &Path<'_, '_>) {
        self.0 += path.to_string().len() as u64;
    }

    fn wrong(&mut self, _: u64, _: &str, path: &Path<'_, '_>) {
        self.0 += path.to_string().len() as u64;
    }
}

#[test]
fn a_walk_through_any_bytes_ends() {
    let mut rng = indelible_testing::Seeded::new(1);
    let (base, block) = (0x10_0000_u64, 256_u64);
    let (mut parsed, mut visited, mut followed) = (0, 0, 0);
    for _ in 0..4000 {
        let text = random_type(&mut rng, 4);
        let mut all = text.clone();
        let pointers = text.matches("*mut").count();
        for pointer in
            (0..pointers + usize::from(rng.u8(..8) == 0)).filter(|_| rng.bool()).collect::<Vec<_>>()
        {
            all += &format!(" -> {pointer} {}", random_type(&mut rng, 3));
        }
        let targets = Description::parse(&all);
        followed += u64::from(targets.is_ok() && all != text);
        let Ok(of) = targets.or_else(|_| Description::parse(&text)) else { continue };
        assert!(of.lines().len() < 1 << 20 && of.difference(&of).is_none());
        let mut bytes: Vec<u8> = Vec::new();
        while bytes.len() < 16 * block as usize {
            let word = match rng.u8(..8) {
                0..=2 => base + block * rng.u64(..16),
                3 => base + rng.u64(..16 * block),
                4 => rng.u64(..20),
                5 => 16,
                6 => 0,
                _ => rng.u64(..),
            };
            bytes.extend(word.to_le_bytes());
        }
        let live = |address: u64| (address.wrapping_sub(base) % block == 0).then_some(block * 4);
        let memory = walk::Memory { base, bytes: &bytes };
        let around = |address: u64| {
            let at = address.checked_sub(base)?;
            (at < 16 * block).then_some((address - at % block, block))
        };
        let mut walk = walk::Walk::new(memory, &live, Count(0)).following(&around);
        walk.root("root", &of, base, of.get(of.root()).size);
        let walked = walk.finish();
        assert!(walked.owned.len() <= 16);
        parsed += 1;
        visited += u64::from(walked.visitor.0 > 0);
    }
    assert!(parsed > 1000 && visited > 300, "{parsed} types, {visited} with anything to visit");
    assert!(followed > 200, "{followed} with pointers to described types");
}
