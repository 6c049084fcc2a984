//! S3 and compatible stores from options.

use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, S3ConditionalPut};

use super::StorageError;
use super::object::ObjectStorage;
use crate::env::Env;
use crate::options::Options;

/// Prefixes of the options, as in `org.apache.paimon.s3.S3FileIO`.
const PREFIXES: [&str; 3] = ["s3.", "s3a.", "fs.s3a."];

/// Opens `bucket/path` (`rest` of `url`).
///
/// Errors: `Refused` for a missing bucket, missing credentials or a wrong setting.
pub(super) fn open(
    url: &str,
    rest: &str,
    options: &Options,
    system_credentials: bool,
    env: Env,
) -> Result<ObjectStorage, StorageError> {
    let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(StorageError::refused(url, "the URL names no bucket"));
    }
    let mut builder = if system_credentials {
        AmazonS3Builder::from_env()
    } else {
        AmazonS3Builder::new()
    };
    builder = builder
        .with_bucket_name(bucket)
        .with_conditional_put(S3ConditionalPut::ETagMatch);
    if let Some(endpoint) = option(options, &["endpoint"]) {
        let endpoint = with_scheme(endpoint);
        builder = builder
            .with_allow_http(endpoint.starts_with("http://"))
            .with_endpoint(endpoint);
    }
    if let Some(region) = option(options, &["region", "endpoint.region"]) {
        builder = builder.with_region(region);
    }
    match (
        option(options, &["access-key", "access.key"]),
        option(options, &["secret-key", "secret.key"]),
    ) {
        (Some(key), Some(secret)) => builder = builder.with_access_key_id(key).with_secret_access_key(secret),
        (None, None) if system_credentials => {}
        _ => {
            return Err(StorageError::refused(
                url,
                "credentials are missing: set both s3.access-key and s3.secret-key",
            ));
        }
    }
    if let Some(token) = option(options, &["session-token", "session.token"]) {
        builder = builder.with_token(token);
    }
    if let Some(text) = option(options, &["path-style-access", "path.style.access"]) {
        let path_style: bool = text.parse().map_err(|_| {
            StorageError::refused(
                url,
                format_args!("s3.path-style-access is '{text}', expected true or false"),
            )
        })?;
        builder = builder.with_virtual_hosted_style_request(!path_style);
    }
    let store = builder.build().map_err(|error| StorageError::refused(url, error))?;
    ObjectStorage::new(Arc::new(store), path.trim_end_matches('/'), env)
}

/// The first of these names that is set, under any prefix.
fn option<'a>(options: &'a Options, names: &[&str]) -> Option<&'a str> {
    names
        .iter()
        .flat_map(|name| PREFIXES.iter().map(move |prefix| format!("{prefix}{name}")))
        .find_map(|key| options.get(&key))
}

/// An endpoint may be a bare host, which means HTTPS.
fn with_scheme(endpoint: &str) -> String {
    if endpoint.contains("://") {
        endpoint.to_owned()
    } else {
        format!("https://{endpoint}")
    }
}
