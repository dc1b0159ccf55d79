//! The store, as replication needs it: whole objects, put if absent. The seam for faults in tests.

/// Objects by name. Lists show each object that was put before.
pub trait Bucket: Send + Sync {
    /// The object's bytes.
    ///
    /// # Errors
    /// `Missing`, `Unclear`, `Refused`.
    fn get(&self, name: &str) -> Result<Vec<u8>, Trouble>;

    /// Puts a new object, whole or not at all.
    ///
    /// # Errors
    /// `Taken`: there is one, which stays. `Unclear`: it may be there, now or later. `Refused`.
    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble>;

    /// Puts an object in place of any other.
    ///
    /// # Errors
    /// `Unclear`, `Refused`.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble>;

    /// Names in a folder, ascending.
    ///
    /// # Errors
    /// `Unclear`, `Refused`.
    fn list(&self, folder: &str) -> Result<Vec<String>, Trouble>;
}

/// A store's answer that is no success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No such object.
    Missing,
    /// There is such an object.
    Taken,
    /// No answer, or one that asks to try again: the call may have happened.
    Unclear(String),
    /// It did not happen, and will not.
    Refused(String),
}

impl<T: Bucket + ?Sized> Bucket for std::sync::Arc<T> {
    fn get(&self, name: &str) -> Result<Vec<u8>, Trouble> {
        (**self).get(name)
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        (**self).put_new(name, bytes)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        (**self).put(name, bytes)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, Trouble> {
        (**self).list(folder)
    }
}
