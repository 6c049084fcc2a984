//! A storage that answers badly.
//!
//! [`FaultyStorage`] wraps any [`Storage`](paimon_format::storage::Storage) and follows a [`FaultPlan`]: scripted faults by kind of call, path and count,
//! or random ones from a seed. It keeps a list of all calls.
//!
//! ```
//! # use paimon_format::{env::Env, storage::{MemoryStorage, Storage}};
//! # use paimon_testkit::faulty::{CallKind, Fault, FaultPlan, FaultyStorage, Rule};
//! # use std::sync::Arc;
//! # futures::executor::block_on(async {
//! let env = Env::fixed("unused");
//! let memory = Arc::new(MemoryStorage::new(Arc::clone(&env.clock)));
//! // The second snapshot is stored, but its writer gets a time-out.
//! let plan = FaultPlan::new().rule(Rule::new(CallKind::PutIfAbsent, "snapshot/snapshot-2", Fault::LoseAnswer));
//! let storage = FaultyStorage::new(memory, env, plan);
//! assert!(storage.put_if_absent("snapshot/snapshot-2", "{}".into()).await.is_err());
//! assert_eq!(storage.size("snapshot/snapshot-2").await.unwrap(), Some(2));
//! # });
//! ```

mod plan;
mod storage;

pub use plan::{CallKind, Fault, FaultPlan, Rule};
pub use storage::{FaultyStorage, LoggedCall};

#[cfg(test)]
mod tests;
