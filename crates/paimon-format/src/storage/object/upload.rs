//! A file on its way to an object store: one request if it is small, a multipart upload if not.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::channel::oneshot;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};

use super::super::{StorageError, StorageWriter};
use super::write_error;
use crate::env::Env;

/// Bytes of a part, all but the last (some stores want them equal). A smaller file is one request.
const PART_BYTES: usize = 8 << 20;

/// Parts on their way at a time, so that a file holds at most five parts in memory.
const PARTS_IN_FLIGHT: usize = 4;

/// Uploads parts in the background while the next one is filled.
pub(super) struct ObjectWriter {
    store: Arc<dyn ObjectStore>,
    path: String,
    location: Path,
    env: Env,
    pending: VecDeque<Bytes>,
    pending_bytes: usize,
    written_bytes: u64,
    upload: Option<Box<dyn MultipartUpload>>,
    parts: VecDeque<oneshot::Receiver<object_store::Result<()>>>,
    failed: bool,
}

impl ObjectWriter {
    pub(super) fn new(store: Arc<dyn ObjectStore>, path: String, location: Path, env: Env) -> Self {
        Self {
            store,
            path,
            location,
            env,
            pending: VecDeque::new(),
            pending_bytes: 0,
            written_bytes: 0,
            upload: None,
            parts: VecDeque::new(),
            failed: false,
        }
    }

    fn check(&self) -> Result<(), StorageError> {
        if self.failed {
            return Err(StorageError::unavailable(
                &self.path,
                "an earlier write to this file failed",
            ));
        }
        Ok(())
    }

    /// The next bytes, a whole part if there are as many.
    fn take_part(&mut self) -> PutPayload {
        let mut missing = PART_BYTES.min(self.pending_bytes);
        self.pending_bytes -= missing;
        let mut chunks = Vec::new();
        while missing > 0
            && let Some(mut chunk) = self.pending.pop_front()
        {
            if chunk.len() > missing {
                self.pending.push_front(chunk.split_off(missing));
            }
            missing -= chunk.len();
            chunks.push(chunk);
        }
        PutPayload::from_iter(chunks)
    }

    async fn send_part(&mut self) -> Result<(), StorageError> {
        while self.parts.len() >= PARTS_IN_FLIGHT {
            self.wait_for_part().await?;
        }
        let payload = self.take_part();
        let upload = match &mut self.upload {
            Some(upload) => upload,
            none => {
                let started = self.store.put_multipart(&self.location).await;
                none.insert(started.map_err(|error| write_error(&self.path, error))?)
            }
        };
        let part = upload.put_part(payload);
        let (sender, receiver) = oneshot::channel();
        self.env.runtime.spawn(Box::pin(async move {
            // Nobody listens any more when the writer was dropped.
            let _ = sender.send(part.await);
        }));
        self.parts.push_back(receiver);
        Ok(())
    }

    async fn wait_for_part(&mut self) -> Result<(), StorageError> {
        let Some(part) = self.parts.pop_front() else {
            return Ok(());
        };
        match part.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(write_error(&self.path, error)),
            Err(_) => Err(StorageError::unavailable(&self.path, "the upload was stopped")),
        }
    }

    async fn send_full_parts(&mut self) -> Result<(), StorageError> {
        while self.pending_bytes >= PART_BYTES {
            self.send_part().await?;
        }
        Ok(())
    }

    async fn complete(&mut self) -> Result<(), StorageError> {
        if self.upload.is_none() {
            let payload = self.take_part();
            let put = self.store.put(&self.location, payload).await;
            return put.map(drop).map_err(|error| write_error(&self.path, error));
        }
        if self.pending_bytes > 0 {
            self.send_part().await?;
        }
        while !self.parts.is_empty() {
            self.wait_for_part().await?;
        }
        if let Some(upload) = &mut self.upload {
            upload
                .complete()
                .await
                .map_err(|error| write_error(&self.path, error))?;
        }
        // Nothing to abort any more.
        self.upload = None;
        Ok(())
    }
}

#[async_trait]
impl StorageWriter for ObjectWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StorageError> {
        self.check()?;
        self.pending_bytes += bytes.len();
        self.written_bytes += bytes.len() as u64;
        self.pending.push_back(bytes);
        // Until it is known to have worked: the future may be dropped half way.
        self.failed = true;
        self.send_full_parts().await?;
        self.failed = false;
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<u64, StorageError> {
        self.check()?;
        self.complete().await?;
        Ok(self.written_bytes)
    }

    async fn abort(mut self: Box<Self>) {
        if let Some(mut upload) = self.upload.take() {
            // A part that cannot be removed is invisible; the store's lifecycle rules remove it.
            let _ = upload.abort().await;
        }
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if let Some(mut upload) = self.upload.take() {
            self.env.runtime.spawn(Box::pin(async move {
                let _ = upload.abort().await;
            }));
        }
    }
}
