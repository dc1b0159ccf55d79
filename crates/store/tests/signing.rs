//! Signed objects: a seal key and the verify key read, only the sign key changes (S3.5). Forged
//! states are in `rules/signatures.rs`.

use super::seal_keys::{KEY, file, of, pool, seal_error};
use indelible_store::error::SealError;
use indelible_store::format::PAGE;
use indelible_store::seal::{SealKey, SignKey};
use indelible_store::store::{SnapshotOf, Store};
use indelible_testing::pool::psync;
use indelible_testing::sealed::{self, key, sign_key, signed_key};
use std::sync::Arc;

fn reading() -> SealKey {
    key().verified_by(sign_key().verify_key())
}

fn other() -> SignKey {
    SignKey::file(vec![0x77; 32]).unwrap()
}

fn contents(store: &Arc<Store>, name: &str, key: &SealKey) -> Result<Vec<u8>, SealError> {
    let mut reader = store.attach_still(name, KEY).unwrap();
    let opened = reader.unlock(key).and_then(|unlocked| reader.unseal(&unlocked));
    let found = opened.map(|()| sealed::bytes(&reader.sealed_pages().unwrap()).unwrap());
    store.end_snapshot(reader).unwrap();
    match found {
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(seal_error::<()>(Err(error))),
    }
}

fn written(store: &Arc<Store>, name: &str, at: u64, bytes: &[u8]) {
    let mut writer = sealed::writer(store, name).unwrap();
    psync(&mut writer, &[(at, bytes)]).unwrap();
    writer.detach().unwrap();
}

#[test]
fn a_signed_object_is_read_by_one_key_and_written_by_another() {
    let (_, store) = pool();
    sealed::create_signed(&store, "a", 9000).unwrap();
    written(&store, "a", 7, b"kept");
    for reads in [reading(), signed_key()] {
        assert_eq!(&contents(&store, "a", &reads).unwrap()[7..11], b"kept");
    }
    assert_eq!(contents(&store, "a", &key()), Err(SealError::VerifyKeyNeeded));
    let foreign = key().verified_by(other().verify_key());
    assert_eq!(contents(&store, "a", &foreign), Err(SealError::BadSignature));
    assert!(matches!(contents(&store, "a", &file(1)), Err(SealError::WrongKey { .. })));
    let attach = |key: &SealKey| {
        let unlocked = store.unlock("a", KEY, key)?;
        store.attach_sealed_writer("a", KEY, &unlocked)
    };
    let refused = |key: &SealKey| seal_error(attach(key).map(drop));
    assert_eq!(refused(&reading()), SealError::SignKeyNeeded);
    assert_eq!(refused(&key()), SealError::SignKeyNeeded);
    assert_eq!(refused(&key().signed_by(&other()).unwrap()), SealError::BadSignature);
    attach(&signed_key()).unwrap().detach().unwrap();
    assert_eq!(&contents(&store, "a", &reading()).unwrap()[7..11], b"kept");
}

// S3.5
#[test]
fn an_object_that_nobody_signed_is_not_taken_for_a_signed_one() {
    let (_, store) = pool();
    sealed::create(&store, "a", 9000).unwrap();
    written(&store, "a", 7, b"kept");
    assert_eq!(contents(&store, "a", &reading()), Err(SealError::NotSigned));
    let unlocked = store.unlock("a", KEY, &signed_key()).unwrap();
    assert_eq!(seal_error(store.attach_sealed_writer("a", KEY, &unlocked).map(drop)), SealError::NotSigned);
    let mut writer = sealed::writer(&store, "a").unwrap();
    assert_eq!(seal_error(writer.change_signer(&other())), SealError::NotSigned);
    psync(&mut writer, &[(9, b"on")]).unwrap();
    writer.detach().unwrap();
    assert_eq!(&contents(&store, "a", &key()).unwrap()[7..11], b"keon");
}

// S3.5
#[test]
fn sign_keys_are_other_keys_than_those_that_read() {
    let (_, store) = pool();
    let bad = |error: SealError| assert!(matches!(error, SealError::BadKey { .. }), "{error}");
    bad(seal_error(SignKey::file(vec![1; 31])));
    let same = SignKey::file(vec![1; 40]).unwrap();
    bad(seal_error(file(1).signed_by(&same)));
    file(2).signed_by(&same).unwrap();
    let create = |keys: &[SealKey]| {
        let keys: Vec<_> = keys.iter().map(|key| (key, "")).collect();
        store.create_sealed("a", &of(9000), &keys).map(drop)
    };
    bad(seal_error(create(&[reading()])));
    bad(seal_error(create(&[signed_key(), file(1).signed_by(&other()).unwrap()])));
    assert!(store.find("a").is_err());
    create(&[file(1), signed_key()]).unwrap();
    assert_eq!(contents(&store, "a", &file(1)), Err(SealError::VerifyKeyNeeded));
    contents(&store, "a", &file(1).verified_by(sign_key().verify_key())).unwrap();
}

// S3.5
#[test]
fn all_that_changes_a_signed_object_signs_it() {
    let (_, store) = pool();
    sealed::create_signed(&store, "a", 9000).unwrap();
    let mut expected = vec![0; 9000];
    let expect = |expected: &[u8], what: &str| {
        assert!(contents(&store, "a", &reading()).unwrap() == expected, "{what}");
    };
    let mut writer = sealed::writer(&store, "a").unwrap();
    psync(&mut writer, &[(7, b"kept")]).unwrap();
    expected[7..11].copy_from_slice(b"kept");
    expect(&expected, "beside its writer");
    writer.set_anchored(true).unwrap();
    expect(&expected, "an anchor");
    for size in [66 * PAGE, 65 * PAGE + 5, 3 * PAGE, 130 * PAGE] {
        writer.resize(size).unwrap();
        expected.resize(size as usize, 0);
        psync(&mut writer, &[(size - 5, b"end")]).unwrap();
        expected[size as usize - 5..][..3].copy_from_slice(b"end");
        expect(&expected, &format!("size {size}"));
    }
    writer.grow(140 * PAGE).unwrap();
    expected.resize(140 * PAGE as usize, 0);
    writer.set_anchored(false).unwrap();
    expect(&expected, "growth");
    writer.reencrypt(&[&key()], &mut |_, _| {}).unwrap();
    psync(&mut writer, &[(100, b"after")]).unwrap();
    expected[100..105].copy_from_slice(b"after");
    expect(&expected, "another key");
    writer.detach().unwrap();
    let unlocked = sealed::unlock(&store, "a").unwrap();
    let mut writer = store.attach_sealed_writer("a", KEY, &unlocked).unwrap();
    writer.change_keys(&unlocked, |page, object| page.add(object, &file(1), "another")).unwrap();
    writer.detach().unwrap();
    assert!(contents(&store, "a", &file(1).verified_by(sign_key().verify_key())).unwrap() == expected);
}

// S3.5
#[test]
fn copies_and_snapshots_are_signed_as_their_object_is() {
    let (_, store) = pool();
    sealed::create_signed(&store, "a", 9000).unwrap();
    written(&store, "a", 7, b"older");
    store.snapshot(&[SnapshotOf { object: "a", key: KEY, name: "a@1" }]).unwrap();
    written(&store, "a", 7, b"newer");
    assert_eq!(&contents(&store, "a@1", &reading()).unwrap()[7..12], b"older");
    assert_eq!(contents(&store, "a@1", &key()), Err(SealError::VerifyKeyNeeded));
    assert_eq!(&contents(&store, "a", &reading()).unwrap()[7..12], b"newer");
}

// S3.5
#[test]
fn another_key_may_sign_from_then_on() {
    let (_, store) = pool();
    sealed::create_signed(&store, "a", 9000).unwrap();
    written(&store, "a", 7, b"kept");
    let mut writer = sealed::writer(&store, "a").unwrap();
    writer.change_signer(&other()).unwrap();
    psync(&mut writer, &[(9, b"on")]).unwrap();
    writer.detach().unwrap();
    let by_other = key().signed_by(&other()).unwrap();
    assert_eq!(&contents(&store, "a", &by_other).unwrap()[7..11], b"keon");
    assert_eq!(contents(&store, "a", &reading()), Err(SealError::BadSignature));
    let unlocked = store.unlock("a", KEY, &signed_key()).unwrap();
    assert_eq!(
        seal_error(store.attach_sealed_writer("a", KEY, &unlocked).map(drop)),
        SealError::BadSignature
    );
}
