//! A line on standard error for long work.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress line. Draws nothing unless standard error is a terminal.
#[derive(Clone, Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A line that says what is going on, without an end in sight.
    pub(crate) fn start(visible: bool, what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(
            None,
            if visible {
                ProgressDrawTarget::stderr()
            } else {
                ProgressDrawTarget::hidden()
            },
        );
        bar.set_prefix(what);
        bar.set_style(style("{spinner} {prefix} {msg} {elapsed}"));
        if visible {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        Self(bar)
    }

    /// So much of so much is done.
    pub(crate) fn position(&self, done: u64, of: u64) {
        if self.0.length() != Some(of) {
            self.0
                .set_style(style("{spinner} {prefix} [{bar:30}] {pos}/{len} {msg} {elapsed}"));
            self.0.set_length(of);
        }
        self.0.set_position(done);
    }

    /// What is going on now.
    pub(crate) fn message(&self, text: String) {
        self.0.set_message(text);
    }

    /// Takes the line away.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    // A template is fixed text; should it be refused, the plain bar does.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
