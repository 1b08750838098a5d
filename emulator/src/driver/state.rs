//! The state of the driver and of its one device.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::control::Settings;
use super::module::{Function, LoadedModule};
use super::{Code, Handle, Needs};
use crate::memory::Global;

/// The driver.
#[derive(Debug)]
pub struct Driver {
    pub(super) settings: Settings,
    pub(super) initialized: bool,
    pub(super) global: Global,
    /// The number of the primary context while it is retained.
    pub(super) context: Option<usize>,
    pub(super) retained: u32,
    pub(super) modules: HashMap<usize, LoadedModule>,
    pub(super) functions: HashMap<usize, Arc<Mutex<Function>>>,
    pub(super) streams: HashSet<usize>,
    pub(super) events: HashMap<usize, Option<Instant>>,
    /// The error that the context ends with.
    pub(super) sticky: Option<Code>,
    /// Whether a call has told that error, so that every call tells it from there on.
    pub(super) told: bool,
    /// Whether the device was given work since a call last waited for it.
    pub(super) busy: bool,
    /// The names of the kernels that were launched.
    pub(super) kernels: BTreeSet<String>,
    pub(super) reports: Vec<String>,
    next: usize,
}

static DRIVER: LazyLock<Mutex<Driver>> = LazyLock::new(|| Mutex::new(Driver::new(Settings::from_environment())));

thread_local! {
    /// The context of the thread.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The driver, for one call.
pub(super) fn lock() -> MutexGuard<'static, Driver> {
    DRIVER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The context of the calling thread; zero is none.
pub(super) fn current() -> usize {
    CURRENT.get()
}

/// Changes the context of the calling thread.
pub(super) fn set_current(context: usize) {
    CURRENT.set(context);
}

impl Driver {
    pub(super) fn new(settings: Settings) -> Driver {
        Driver {
            settings,
            initialized: false,
            global: Global::new(settings.memory),
            context: None,
            retained: 0,
            modules: HashMap::new(),
            functions: HashMap::new(),
            streams: HashSet::new(),
            events: HashMap::new(),
            sticky: None,
            told: false,
            busy: false,
            kernels: BTreeSet::new(),
            reports: Vec::new(),
            next: 0x1000,
        }
    }

    /// Back to the start, with these settings. Handles from before stay unknown.
    pub(super) fn reset(&mut self, settings: Settings) {
        let next = self.next;
        *self = Driver { next, ..Driver::new(settings) };
    }

    pub(super) fn check(&mut self, needs: Needs) -> Result<(), Code> {
        if needs == Needs::Nothing {
            return Ok(());
        }
        if !self.initialized {
            return Err(Code::NotInitialized);
        }
        if self.settings.lost {
            return Err(Code::Unknown);
        }
        if needs == Needs::Context {
            if self.context.is_none() || self.context != Some(current()) {
                return Err(Code::InvalidContext);
            }
            if self.told {
                return self.tell();
            }
        }
        Ok(())
    }

    /// Tells whether a kernel has failed.
    pub(super) fn tell(&mut self) -> Result<(), Code> {
        self.told = self.sticky.is_some();
        self.sticky.map_or(Ok(()), Err)
    }

    /// A call that waits for all work, which tells whether a kernel has failed.
    pub(super) fn wait(&mut self) -> Result<(), Code> {
        let accounting = self.global.accounting_mut();
        accounting.waits += 1;
        accounting.waits_for_work += u64::from(self.busy);
        self.busy = false;
        self.tell()
    }

    /// A handle that was never given before.
    pub(super) fn handle(&mut self) -> usize {
        self.next += 16;
        self.next
    }

    /// Keeps a line for those who ask what happened.
    pub(super) fn report(&mut self, line: impl Into<String>) {
        let line = line.into();
        if self.settings.verbose {
            eprintln!("emulator: {line}");
        }
        self.reports.push(line);
    }

    /// Whether a stream exists: the two that always do, or one that was made.
    pub(super) fn check_stream(&self, stream: Handle) -> Result<(), Code> {
        let stream = stream as usize;
        match stream <= 2 || self.streams.contains(&stream) {
            true => Ok(()),
            false => Err(Code::InvalidHandle),
        }
    }

    /// The end of the context: all that it holds is given back.
    pub(super) fn end_context(&mut self) {
        self.context = None;
        self.retained = 0;
        (self.sticky, self.told, self.busy) = (None, false, false);
        self.modules.clear();
        self.functions.clear();
        self.streams.clear();
        self.events.clear();
        self.global.clear();
    }
}
