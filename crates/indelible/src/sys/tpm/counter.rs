//! Monotonic counters in the non-volatile memory of a TPM. A newly defined counter starts above all
//! earlier ones.

use super::{HEADER, NO_SESSIONS, OWNER, Tpm, TpmError, number, sized, take};

const DEFINE: u32 = 0x12a;
const INCREMENT: u32 = 0x134;
const READ: u32 = 0x14e;
const READ_PUBLIC: u32 = 0x169;

/// Type *counter*; read and written by the index's own, empty, password, which never locks the TPM.
const ATTRIBUTES: u32 = 1 << 25 | 1 << 18 | 1 << 4 | 1 << 2;
const STATE: u32 = 1 << 29 | 1 << 28 | 1 << 11;
const SHA_256: u16 = 0x000b;
const BYTES: u16 = 8;
const NO_HANDLE: u32 = 0x18b;

impl Tpm {
    pub(crate) fn define_counter(&mut self, index: u32) -> Result<(), TpmError> {
        if self.is_counter(index)? {
            return Ok(());
        }
        let public = [
            &index.to_be_bytes()[..],
            &SHA_256.to_be_bytes(),
            &ATTRIBUTES.to_be_bytes(),
            &[0, 0],
            &BYTES.to_be_bytes(),
        ];
        let parameters = [&[0, 0], &sized(&public.concat())?[..]].concat();
        self.call(DEFINE, &[OWNER], &parameters)?;
        self.increment(index)
    }

    pub(crate) fn counter(&mut self, index: u32) -> Result<u64, TpmError> {
        // An ordinary index in its place could have any value.
        if !self.is_counter(index)? {
            return Err(TpmError::NoCounter(index));
        }
        let parameters = [BYTES.to_be_bytes(), [0, 0]].concat();
        let answer = self.call(READ, &[index, index], &parameters)?;
        let value = take(&mut &answer[HEADER + 4..])?;
        value.try_into().map(u64::from_be_bytes).map_err(|_| TpmError::Answer)
    }

    pub(crate) fn increment(&mut self, index: u32) -> Result<(), TpmError> {
        self.call(INCREMENT, &[index, index], &[]).map(drop)
    }

    fn is_counter(&mut self, index: u32) -> Result<bool, TpmError> {
        let answer = match self.exchange(NO_SESSIONS, READ_PUBLIC, &index.to_be_bytes()) {
            Err(TpmError::Refused { code: NO_HANDLE, .. }) => return Ok(false),
            answer => answer?,
        };
        let public = take(&mut &answer[HEADER..])?;
        let attributes = number(public.get(6..).ok_or(TpmError::Answer)?)?;
        let size = public.last_chunk::<2>().map(|size| u16::from_be_bytes(*size));
        if attributes & !STATE != ATTRIBUTES || size != Some(BYTES) {
            return Err(TpmError::NotACounter(index));
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::answering;
    use super::*;

    const INDEX: u32 = 0x0180_0042;

    fn public(attributes: u32, bytes: u16) -> Vec<u8> {
        let public = [
            &INDEX.to_be_bytes()[..],
            &SHA_256.to_be_bytes(),
            &attributes.to_be_bytes(),
            &[0, 0],
            &bytes.to_be_bytes(),
        ]
        .concat();
        let len = (HEADER + 2 + public.len()) as u8;
        [&[0x80, 1, 0, 0, 0, len, 0, 0, 0, 0, 0, public.len() as u8], &public[..]].concat()
    }

    #[test]
    fn an_index_that_is_no_counter_is_refused() {
        let ordinary = ATTRIBUTES & !(1 << 4);
        for other in [public(ordinary, 8), public(ATTRIBUTES, 9), public(ATTRIBUTES | 2, 8)] {
            let found = answering(&[&other]).0.counter(INDEX);
            assert!(matches!(found, Err(TpmError::NotACounter(INDEX))), "{found:?}");
            let found = answering(&[&other]).0.define_counter(INDEX);
            assert!(matches!(found, Err(TpmError::NotACounter(INDEX))), "{found:?}");
        }
        let gone = [0x80, 1, 0, 0, 0, 10, 0, 0, 1, 0x8b];
        let found = answering(&[&gone]).0.counter(INDEX);
        assert!(matches!(found, Err(TpmError::NoCounter(INDEX))), "{found:?}");
    }

    #[test]
    fn answers_that_make_no_sense_are_errors() {
        let written = public(ATTRIBUTES | 1 << 29, 8);
        let short = [0x80, 2, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 6, 0, 4, 1, 2, 3, 4];
        let empty = [0x80, 1, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0];
        for answers in [&[&written[..], &short][..], &[&empty], &[&written[..HEADER]]] {
            let found = answering(answers).0.counter(INDEX);
            assert!(matches!(found, Err(TpmError::Answer)), "{answers:x?}: {found:?}");
        }
    }
}
