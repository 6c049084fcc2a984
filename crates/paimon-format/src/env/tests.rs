use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::channel::{mpsc, oneshot};
use futures::executor::block_on;

use super::*;

fn tokio_env() -> Env {
    let runtime = TokioRuntime::with_threads(tokio::runtime::Handle::current(), 2).unwrap();
    Env::system(Arc::new(runtime), 1 << 20, 1 << 20, "unused")
}

#[tokio::test]
async fn tokio_runs_jobs_tasks_and_timers() {
    let env = tokio_env();
    assert_eq!(env.cpu(|| 1).await.unwrap(), 1);
    assert_eq!(env.blocking(|| 2).await.unwrap(), 2);
    let (sender, receiver) = oneshot::channel();
    let runtime = Arc::clone(&env.runtime);
    env.runtime.spawn(Box::pin(async move {
        runtime.sleep(Duration::from_millis(1)).await;
        sender.send(3).unwrap();
    }));
    assert_eq!(receiver.await.unwrap(), 3);
}

#[tokio::test]
async fn a_panicking_job_is_an_error_and_the_pool_lives_on() {
    for env in [tokio_env(), Env::fixed("unused")] {
        let error = env.cpu(|| -> () { panic!("bad block {}", 7) }).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "internal error: a background job panicked: bad block 7"
        );
        let error = env.blocking(|| -> () { panic!("bad disk") }).await.unwrap_err();
        assert_eq!(error.to_string(), "internal error: a background job panicked: bad disk");
        assert_eq!(env.cpu(|| 1).await.unwrap(), 1);
    }
}

#[test]
fn a_timer_can_be_made_outside_of_tokio() {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let runtime = TokioRuntime::with_threads(tokio.handle().clone(), 1).unwrap();
    let sleep = runtime.sleep(Duration::from_millis(1));
    tokio.block_on(sleep);
}

/// Two tasks talk to each other and to the one that started them, on any executor, on one thread.
async fn ping_pong(env: Env) -> usize {
    let (to_worker, mut jobs) = mpsc::channel::<usize>(1);
    let (done, mut results) = mpsc::channel::<usize>(1);
    let worker = env.clone();
    env.runtime.spawn(Box::pin(async move {
        let mut done = done;
        while let Some(job) = jobs.next().await {
            worker.runtime.sleep(Duration::from_secs(3600)).await;
            let result = worker.cpu(move || job * 2).await.unwrap();
            futures::SinkExt::send(&mut done, result).await.unwrap();
        }
    }));
    let mut to_worker = to_worker;
    let feeder = async move {
        for job in 0..10 {
            futures::SinkExt::send(&mut to_worker, job).await.unwrap();
        }
    };
    let sum = async move {
        let mut sum = 0;
        while let Some(result) = results.next().await {
            sum += result;
        }
        sum
    };
    futures::join!(feeder, sum).1
}

#[test]
fn inline_tasks_run_beside_the_one_that_spawned_them() {
    let runtime = InlineRuntime::new();
    let env = Env {
        runtime: Arc::new(runtime.clone()),
        ..Env::fixed("unused")
    };
    assert_eq!(runtime.block_on(ping_pong(env)), 90);
}

#[test]
fn inline_tasks_run_under_a_foreign_executor() {
    assert_eq!(block_on(ping_pong(Env::fixed("unused"))), 90);
    let env = Env::fixed("unused");
    let (sender, receiver) = oneshot::channel();
    let worker = env.clone();
    env.runtime.spawn(Box::pin(async move {
        worker.runtime.sleep(Duration::from_secs(3600)).await;
        sender
            .send(worker.cpu(|| std::thread::current().id()).await.unwrap())
            .unwrap();
    }));
    assert_eq!(
        block_on(receiver).unwrap(),
        std::thread::current().id(),
        "a task that waits for nobody stays on the thread"
    );
}

#[test]
fn inline_tasks_run_on_tokio() {
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(tokio.block_on(ping_pong(Env::fixed("unused"))), 90);
}

#[test]
fn inline_jobs_run_on_any_executor() {
    let env = Env::fixed("unused");
    block_on(async {
        env.runtime.sleep(Duration::from_secs(3600)).await;
        assert_eq!(env.cpu(|| 1).await.unwrap() + env.blocking(|| 2).await.unwrap(), 3);
    });
}

/// Tasks that spawn tasks, in an order that never changes.
#[test]
fn inline_tasks_run_in_one_order() {
    let order = || {
        let runtime = InlineRuntime::new();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (done, mut ends) = mpsc::unbounded::<usize>();
        runtime.block_on(async {
            for task in 0..3 {
                let (log, done, inner) = (Arc::clone(&log), done.clone(), runtime.clone());
                runtime.spawn(Box::pin(async move {
                    log.lock().unwrap().push(task);
                    let sleep = inner.sleep(Duration::ZERO);
                    inner.spawn(Box::pin(async move {
                        sleep.await;
                        log.lock().unwrap().push(10 + task);
                        done.unbounded_send(task).unwrap();
                    }));
                }));
            }
            drop(done);
            while ends.next().await.is_some() {}
        });
        log.lock().unwrap().clone()
    };
    let first = order();
    assert_eq!(first.len(), 6);
    assert_eq!(first, order());
}

#[test]
fn the_fixed_environment_counts() {
    let env = Env::fixed("unused");
    assert_eq!(env.ids.uuid(), "00000000-0000-4000-8000-000000000001");
    assert_eq!(env.clone().ids.uuid(), "00000000-0000-4000-8000-000000000002");
    assert_eq!(env.clock.now_ms() + 1, env.clock.now_ms());
    assert_eq!(env.clock.local_offset_ms(0), 0);
    let clock = TickingClock::new(0, 0).with_offset_ms(3_600_000);
    clock.advance_ms(5);
    assert_eq!((clock.now_ms(), clock.local_offset_ms(5)), (5, 3_600_000));
}

#[test]
fn system_ids_are_random_uuids() {
    let (one, two) = (SystemIds.uuid(), SystemIds.uuid());
    assert_ne!(one, two);
    assert_eq!((one.len(), one.as_bytes()[14]), (36, b'4'));
    assert_eq!(SystemIds.jitter(0), 0);
    assert!((0..100).all(|_| SystemIds.jitter(7) < 7));
    assert!((0..1000).any(|_| SystemIds.jitter(2) == 1));
}

#[test]
fn the_system_clock_is_after_2024_and_within_a_day_of_utc() {
    assert!(SystemClock.now_ms() > 1_704_067_200_000);
    assert!(SystemClock.local_offset_ms(SystemClock.now_ms()).abs() <= 86_400_000);
}

#[test]
fn caches_have_a_part_of_the_memory() {
    const MIB: u64 = 1 << 20;
    let shares = |bytes| {
        let env = Env::fixed("unused").with_memory(bytes);
        (env.memory.total() / MIB, env.cache.total() / MIB)
    };
    assert_eq!(shares(1024 * MIB), (776, 248));
    assert_eq!(shares(64 * MIB), (56, 8));
    assert_eq!(shares(12 * MIB), (12, 4), "too little to be shared");
}
