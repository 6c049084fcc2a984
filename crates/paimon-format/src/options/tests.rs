//! Values and keys of options.
