const PREFIX: &str = "indelible-";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) pool: [u8; 16],
    pub(crate) object: [u8; 16],
    pub(crate) binding: u64,
    /// All zeros if the kernel does not tell.
    pub(crate) boot: [u8; 16],
}

impl Identity {
    pub(super) fn has_boot(&self) -> bool {
        self.boot != [0; 16]
    }

    pub(super) fn path_in(&self, folder: &std::path::Path) -> std::path::PathBuf {
        folder.join(self.name())
    }

    pub(super) fn name(&self) -> String {
        let hex = |id: [u8; 16]| format!("{:032x}", u128::from_be_bytes(id));
        let Identity { pool, object, binding, boot } = *self;
        format!("{PREFIX}{}-{}-{binding:016x}-{}", hex(pool), hex(object), hex(boot))
    }

    pub(super) fn parse(name: &str) -> Option<Identity> {
        let words: Vec<_> = name.strip_prefix(PREFIX)?.split('-').collect();
        let [pool, object, binding, boot] = words[..] else { return None };
        let id = |word| Some(u128::from_str_radix(word, 16).ok()?.to_be_bytes());
        let binding = u64::from_str_radix(binding, 16).ok()?;
        let identity = Identity { pool: id(pool)?, object: id(object)?, binding, boot: id(boot)? };
        (identity.name() == name).then_some(identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_not() {
        let identity = Identity { pool: [1; 16], object: [0xfe; 16], binding: 77, boot: [0; 16] };
        let name = identity.name();
        assert_eq!(Identity::parse(&name), Some(identity));
        assert!(name.len() < 255 && !name.contains('/'));
        let odd = [
            String::new(),
            PREFIX.to_owned(),
            name.replace('f', "F"),
            name.replace("fe", "+e"),
            name[..name.len() - 1].to_owned(),
            format!("{name}-"),
            format!(".{name}"),
        ];
        for odd in odd {
            assert_eq!(Identity::parse(&odd), None, "{odd}");
        }
    }
}
