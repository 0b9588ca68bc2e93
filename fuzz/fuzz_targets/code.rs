//! A `code` block as JSON.
#![no_main]

use codeworkspace_bundle::define_code;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &[u8]| {
    let Ok(block) = serde_json::from_slice(json) else {
        return;
    };
    match define_code(&block) {
        Err(errors) => assert!(!errors.is_empty()),
        Ok(code) => {
            assert!(!code.sources.is_empty());
            for entry in code.sources {
                if let Err(errors) = entry.source {
                    assert!(!errors.is_empty());
                    assert!(errors.iter().all(|error| error.field.starts_with(&entry.field)));
                }
            }
        }
    }
});
