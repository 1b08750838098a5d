//! The threads of the CPU device.
//!
//! Rayon hands a call from outside of its pool over by a queue, which allocates a block now and then; a training step must
//! not. So one thread of the pool never leaves: it waits at a desk for a job, runs it as the pool's thread that it is, and
//! says when it is done. The caller waits meanwhile.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex};

use crate::error::Error;

/// Leaf tasks keep blocks and tiles of matrices on the stack, up to 1.3 MiB; joins of a few dozen levels lie above them.
const STACK: usize = 4 << 20;

/// A pool of threads that works for one caller at a time.
pub struct Crew {
    /// None: the caller works alone.
    foreman: Option<Foreman>,
}

/// The pool, and the desk where one of its threads waits.
struct Foreman {
    desk: Arc<Desk>,
    _pool: rayon::ThreadPool,
}

/// Where jobs and their outcomes are laid.
struct Desk {
    state: Mutex<State>,
    changed: Condvar,
}

enum State {
    Idle,
    Job(Job),
    Done(Result<(), Box<dyn Any + Send>>),
    Closed,
}

/// A borrowed function, whose lender waits until it has run.
struct Job(*mut (dyn FnMut() + Send));

// SAFETY: the function is `Send`, and its lender does not touch it until it has run.
unsafe impl Send for Job {}

impl Crew {
    /// The caller alone.
    pub fn alone() -> Crew {
        Crew { foreman: None }
    }

    /// A crew of so many threads; with one, the caller itself works.
    ///
    /// # Errors
    /// Where the system gives no threads.
    pub fn new(threads: usize) -> Result<Crew, Error> {
        // Miri would interpret every thread's waiting.
        if threads <= 1 || cfg!(miri) {
            return Ok(Crew::alone());
        }
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK);
        let pool = builder.thread_name(|i| format!("plimsoll-{i}")).build();
        let failed = |message: String| Error::Device { device: "the CPU".to_string(), message };
        let pool = pool.map_err(|error| failed(error.to_string()))?;
        // A thread's first theft from another would otherwise allocate its record.
        pool.broadcast(|_| drop(crossbeam_epoch::pin()));
        let desk = Arc::new(Desk { state: Mutex::new(State::Idle), changed: Condvar::new() });
        let shared = Arc::clone(&desk);
        pool.spawn(move || shared.work());
        Ok(Crew { foreman: Some(Foreman { desk, _pool: pool }) })
    }

    /// Runs a function on one of the crew's threads, where [`parallel`](super::parallel) loops use them all.
    pub fn run(&mut self, mut job: impl FnMut() + Send) {
        let Some(foreman) = &self.foreman else {
            return job();
        };
        let job: *mut (dyn FnMut() + Send + '_) = &mut job;
        // SAFETY: only the lifetime changes, and `post` does not return before the job has run.
        let job = unsafe { std::mem::transmute::<*mut (dyn FnMut() + Send + '_), *mut (dyn FnMut() + Send)>(job) };
        if let Err(panic) = foreman.desk.post(Job(job)) {
            resume_unwind(panic);
        }
    }
}

impl Desk {
    /// Lays down a job and waits until it has run.
    fn post(&self, job: Job) -> Result<(), Box<dyn Any + Send>> {
        let mut state = self.state.lock().expect("no one panics at the desk");
        *state = State::Job(job);
        self.changed.notify_all();
        loop {
            state = match std::mem::replace(&mut *state, State::Idle) {
                State::Done(outcome) => return outcome,
                other => {
                    *state = other;
                    self.changed.wait(state).expect("no one panics at the desk")
                }
            };
        }
    }

    /// Runs one job after the other until the desk is closed.
    fn work(&self) {
        let mut state = self.state.lock().expect("no one panics at the desk");
        loop {
            state = match std::mem::replace(&mut *state, State::Idle) {
                State::Closed => return,
                State::Job(job) => {
                    drop(state);
                    // SAFETY: its lender waits in `post` and leaves it alone.
                    let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { (*job.0)() }));
                    let mut state = self.state.lock().expect("no one panics at the desk");
                    *state = State::Done(outcome);
                    self.changed.notify_all();
                    state
                }
                other => {
                    *state = other;
                    self.changed.wait(state).expect("no one panics at the desk")
                }
            };
        }
    }
}

impl Drop for Foreman {
    fn drop(&mut self) {
        if let Ok(mut state) = self.desk.state.lock() {
            *state = State::Closed;
            self.desk.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Crew;
    use crate::cpu::parallel;

    #[test]
    fn jobs_run_on_the_crew() {
        for threads in [1, 3] {
            let mut crew = Crew::new(threads).unwrap();
            let mut sums = [0.0; 2];
            for (i, sum) in sums.iter_mut().enumerate() {
                crew.run(|| *sum = parallel::sum(100_000, |range| range.len() as f64) + i as f64);
            }
            assert_eq!(sums, [100_000.0, 100_001.0]);
        }
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let mut crew = Crew::new(2).unwrap();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| crew.run(|| panic!("a kernel's bug"))));
        assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "a kernel's bug");
        let mut done = false;
        crew.run(|| done = true);
        assert!(done);
    }
}
