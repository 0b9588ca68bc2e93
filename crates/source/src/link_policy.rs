/// What becomes of symbolic links that lead out of a source, or nowhere. Links inside a source are always kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LinkPolicy {
    /// They are an error.
    #[default]
    Keep,
    /// They are left out, with a warning.
    Skip,
}
