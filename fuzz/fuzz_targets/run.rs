//! A `run` block: JSON if it is JSON, else a string.
#![no_main]

use std::collections::BTreeSet;

use bytes::Bytes;
use codeworkspace_bundle::{FileTree, define_run, run::Form};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let block = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    let run = match define_run(&block) {
        Ok(run) => run,
        Err(errors) => {
            assert!(!errors.is_empty() && errors.iter().all(|error| error.field.starts_with("run")));
            return;
        }
    };
    let bundle = FileTree::of_file("main.py".parse().expect("a path"), Bytes::new());
    let Ok(resolved) = run.resolve(&bundle, "/workspace", &BTreeSet::new()) else {
        return;
    };
    let last = resolved.argv.last().expect("a program");
    assert!(
        resolved.form != Form::File || last.starts_with("/workspace/"),
        "{last}"
    );
});
