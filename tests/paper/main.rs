//! What the papers print, computed again: one module a paper or figure.

mod adly;
mod adly_errors;
mod liu;
mod tr_figure3;
