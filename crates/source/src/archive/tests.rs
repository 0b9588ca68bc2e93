pub(crate) mod fixtures;
