/// Lists each mutant once, in its group: its name and the broken rule.
macro_rules! mutants {
    ($($(#[doc = $what:literal])+ $group:ident { $($(#[doc = $rule:literal])+ $name:ident,)+ })+) => {
        /// A broken rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Mutant {
            $($($(#[doc = $rule])+ $name,)+)+
        }

        #[cfg(feature = "__mutants")]
        impl Mutant {
            $($(#[doc = $what])+ pub const $group: &[Mutant] = &[$(Mutant::$name,)+];)+

            fn all() -> impl Iterator<Item = Mutant> {
                [$(Mutant::$group,)+].concat().into_iter()
            }

            /// The broken rule.
            #[must_use]
            pub fn rule(self) -> &'static str {
                match self {
                    $($(Mutant::$name => concat!($($rule,)+).trim_ascii(),)+)+
                }
            }
        }
    };
}
