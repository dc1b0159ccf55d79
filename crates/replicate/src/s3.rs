//! S3, of AWS or another server: MinIO, Ceph, R2. Puts need `If-None-Match: *`.

use crate::bucket::{Bucket, Trouble};
use futures_util::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{ClientOptions, Error, ObjectStore, ObjectStoreExt, PutMode, PutPayload, RetryConfig};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// A prefix of a bucket.
pub struct S3 {
    store: AmazonS3,
    prefix: Path,
    /// One call at a time.
    runtime: Mutex<Runtime>,
}

impl S3 {
    /// A prefix of a bucket, with credentials, region and endpoint of the environment (`AWS_…`);
    /// `endpoint` goes before `AWS_ENDPOINT_URL`.
    ///
    /// # Errors
    /// The configuration is no valid one.
    pub fn new(bucket: &str, prefix: &str, endpoint: Option<&str>) -> Result<S3, String> {
        // Further tries are this crate's.
        let retry =
            RetryConfig { max_retries: 1, retry_timeout: Duration::from_secs(30), ..Default::default() };
        let client = ClientOptions::new()
            .with_timeout(Duration::from_secs(60))
            .with_connect_timeout(Duration::from_secs(5))
            .with_allow_http(true);
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_retry(retry)
            .with_client_options(client);
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let store = builder.build().map_err(|error| error.to_string())?;
        let prefix = Path::parse(prefix).map_err(|error| error.to_string())?;
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        Ok(S3 { store, prefix, runtime: Mutex::new(runtime) })
    }

    fn wait<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Trouble> {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        runtime.block_on(call).map_err(|error| trouble(&error))
    }

    fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn put_as(&self, name: &str, bytes: &[u8], mode: PutMode) -> Result<(), Trouble> {
        let (path, payload) = (self.path(name), PutPayload::from(bytes.to_vec()));
        let put = self.wait(self.store.put_opts(&path, payload, mode.into()));
        match put {
            Ok(_) => Ok(()),
            // A put finds no bucket.
            Err(Trouble::Missing) => Err(Trouble::Refused("there is no such bucket".into())),
            Err(trouble) => Err(trouble),
        }
    }
}

const REFUSALS: [&str; 2] = ["401 Unauthorized", "403 Forbidden"];

fn trouble(error: &Error) -> Trouble {
    let mut text = causes(error);
    if text.contains("/latest/api/token") || text.contains("/latest/meta-data") {
        text = format!(
            "the environment has no credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), and the \
             machine gives none: {text}"
        );
    }
    match error {
        _ if text.contains("NoSuchBucket") => Trouble::Refused("there is no such bucket".into()),
        // Lists have no kind of error for these.
        Error::Generic { .. } if REFUSALS.iter().any(|status| text.contains(status)) => {
            Trouble::Refused(text)
        }
        Error::NotFound { .. } => Trouble::Missing,
        Error::AlreadyExists { .. } | Error::Precondition { .. } => Trouble::Taken,
        Error::PermissionDenied { .. }
        | Error::Unauthenticated { .. }
        | Error::NotImplemented { .. }
        | Error::NotSupported { .. }
        | Error::InvalidPath { .. }
        | Error::UnknownConfigurationKey { .. } => Trouble::Refused(text),
        _ => Trouble::Unclear(text),
    }
}

fn causes(error: &Error) -> String {
    let (mut text, mut next) = (error.to_string(), std::error::Error::source(error));
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = cause.source();
    }
    text
}

impl Bucket for S3 {
    fn get(&self, name: &str) -> Result<Vec<u8>, Trouble> {
        let path = self.path(name);
        self.wait(async { Ok(self.store.get(&path).await?.bytes().await?.to_vec()) })
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        self.put_as(name, bytes, PutMode::Create)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        self.put_as(name, bytes, PutMode::Overwrite)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, Trouble> {
        let path = self.path(folder);
        let found = self.wait(self.store.list(Some(&path)).try_collect::<Vec<_>>())?;
        let last = |path: &Path| path.filename().map(|name| format!("{folder}/{name}"));
        let mut names: Vec<String> = found.iter().filter_map(|object| last(&object.location)).collect();
        names.sort_unstable();
        Ok(names)
    }
}
