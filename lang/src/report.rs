//! Gathers every mistake, so that one build reports them all.

use std::collections::HashSet;

use proc_macro2::{Punct, Spacing, TokenStream, TokenTree};

use crate::ast::Place;
use crate::limits;

/// The mistakes found so far, and the work that was done to find them.
#[derive(Debug, Default)]
pub struct Report {
    errors: Vec<Mistake>,
    /// The steps taken so far, which end at a limit.
    work: usize,
    /// The nodes of the syntax tree that [`Report::once`] has spoken about.
    spoken: HashSet<usize>,
}

/// One mistake.
#[derive(Clone, Debug)]
pub struct Mistake {
    /// The user's own tokens.
    pub place: Place,
    /// What is wrong, then, on a line of its own, what to do.
    pub message: String,
}

impl Report {
    /// A mistake at `place`: what is wrong, with the value, and what to do about it.
    pub fn error(&mut self, place: impl Into<Place>, message: impl AsRef<str>, help: impl AsRef<str>) {
        self.push(place, format!("{}\nhelp: {}", message.as_ref(), help.as_ref()));
    }

    /// A mistake whose message holds its own remedy.
    pub fn push(&mut self, place: impl Into<Place>, message: String) {
        if !self.is_full() {
            self.errors.push(Mistake { place: place.into(), message });
        }
    }

    /// Whether `node` of the syntax tree has not been spoken about yet: a block that is used many times over is wrong
    /// many times over, and one error is enough.
    pub fn first_at<T>(&mut self, node: &T) -> bool {
        self.first_at_address(std::ptr::from_ref(node).addr())
    }

    /// As [`first_at`](Report::first_at), by the node's address.
    pub fn first_at_address(&mut self, node: usize) -> bool {
        self.spoken.insert(node)
    }

    /// Counts steps of evaluating and lowering. `false`: too many were taken, which is reported once, at `place`.
    pub fn work(&mut self, steps: usize, place: impl Into<Place>) -> bool {
        let was_within = !self.is_exhausted();
        self.work = self.work.saturating_add(steps);
        if was_within && self.is_exhausted() {
            let message = format!("putting blocks in place takes more than {} steps", limits::WORK);
            self.error(place, message, "repeat fewer times, or write shorter lists");
        }
        !self.is_exhausted()
    }

    /// Whether too many steps were taken.
    pub fn is_exhausted(&self) -> bool {
        self.work >= limits::WORK
    }

    /// Whether no further error would be shown, so that no help for one need be thought of.
    pub fn is_full(&self) -> bool {
        self.errors.len() >= limits::ERRORS
    }

    /// Whether all is well so far.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// The mistakes in the order they were found.
    pub fn mistakes(&self) -> &[Mistake] {
        &self.errors
    }

    /// All mistakes as one error, in the order of the source.
    pub fn into_error(mut self) -> Option<syn::Error> {
        self.errors.sort_by_key(|mistake| {
            let start = mistake.place.start.start();
            (start.line, start.column)
        });
        let mut errors = self.errors.into_iter().map(|mistake| {
            // `syn` takes a stretch of the source as the first and last token of a stream.
            let token = |span| {
                let mut punct = Punct::new(',', Spacing::Alone);
                punct.set_span(span);
                TokenTree::Punct(punct)
            };
            let stretch = TokenStream::from_iter([token(mistake.place.start), token(mistake.place.end)]);
            syn::Error::new_spanned(stretch, mistake.message)
        });
        let mut first = errors.next()?;
        first.extend(errors);
        Some(first)
    }
}
