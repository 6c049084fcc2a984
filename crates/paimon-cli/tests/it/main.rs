//! Commands as users type them; their output as users see it.

mod commands;
mod inputs;
mod support;
mod wrong;
