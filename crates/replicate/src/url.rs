//! Stores by URL.

use crate::bucket::Bucket;
use crate::error::{ReplicateError, Result};
use crate::folder::Folder;
use crate::s3::S3;

/// Opens `file:///FOLDER` or `s3://BUCKET/PREFIX`; nothing is asked of the store yet. `endpoint` is
/// another server than that of AWS.
///
/// # Errors
/// `Url`.
pub fn open(url: &str, endpoint: Option<&str>) -> Result<Box<dyn Bucket>> {
    let wrong = |why: &str| ReplicateError::Url { url: url.to_owned(), why: why.to_owned() };
    if let Some(path) = url.strip_prefix("file://") {
        return match path.starts_with('/') && path.len() > 1 {
            true => Ok(Box::new(Folder::new(path))),
            false => Err(wrong("the folder's path does not begin with /")),
        };
    }
    let Some(rest) = url.strip_prefix("s3://") else {
        return Err(wrong("it begins with neither file:// nor s3://"));
    };
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(wrong("it names no bucket"));
    }
    let store = S3::new(bucket, prefix.trim_end_matches('/'), endpoint).map_err(|why| wrong(&why))?;
    Ok(Box::new(store))
}
