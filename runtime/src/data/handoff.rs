//! A place where one thread lays something down for another.
//!
//! The standard library's channels allocate at the first wait of each thread, whenever that happens to be; a loader promises
//! not to, so this is a mutex and a condition variable.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Holds one thing at a time.
pub(super) struct Handoff<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    item: Option<T>,
    closed: bool,
}

impl<T> Handoff<T> {
    pub(super) fn new() -> Handoff<T> {
        Handoff { state: Mutex::new(State { item: None, closed: false }), changed: Condvar::new() }
    }

    fn wait(&self, goes_on: impl Fn(&State<T>) -> bool) -> MutexGuard<'_, State<T>> {
        // No code that could panic runs under the lock.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !goes_on(&state) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// Lays something down as soon as there is room; gives it back if nobody will take it.
    pub(super) fn put(&self, item: T) -> Result<(), T> {
        let mut state = self.wait(|state| state.item.is_none() || state.closed);
        if state.closed {
            return Err(item);
        }
        state.item = Some(item);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Takes what is laid down, as soon as there is something; nothing once it is closed and empty.
    pub(super) fn take(&self) -> Option<T> {
        let item = self.wait(|state| state.item.is_some() || state.closed).item.take();
        self.changed.notify_all();
        item
    }

    /// Says, from either side, that nothing more will be laid down.
    pub(super) fn close(&self) {
        self.wait(|_| true).closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::Handoff;

    #[test]
    fn in_order_until_closed() {
        let handoff = Handoff::new();
        let taken: Vec<u32> = std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!((0..100).all(|item| handoff.put(item).is_ok()));
                handoff.close();
            });
            std::iter::from_fn(|| handoff.take()).collect()
        });
        assert_eq!(taken, (0..100).collect::<Vec<_>>());
        assert_eq!(handoff.put(100), Err(100));
    }

    #[test]
    fn a_waiting_thread_is_woken() {
        let handoff = Handoff::new();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| handoff.put(1).and_then(|()| handoff.put(2)));
            std::thread::sleep(std::time::Duration::from_millis(5));
            handoff.close();
            assert_eq!(waiting.join().unwrap(), Err(2));
        });
        // What was laid down before is not lost.
        assert_eq!((handoff.take(), handoff.take()), (Some(1), None));
    }
}
