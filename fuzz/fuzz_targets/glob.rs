//! Text that claims to be a glob, and a path.
#![no_main]

use codeworkspace_bundle::{BundlePath, Glob, MAX_GLOB_BYTES};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|texts: (&str, &str)| {
    let (text, path) = texts;
    let (Ok(glob), Ok(path)) = (text.parse::<Glob>(), path.parse::<BundlePath>()) else {
        return;
    };
    assert_eq!(glob.as_str(), text);
    let matches = glob.matches(&path);
    if !text.contains('/') && text.len() + 3 <= MAX_GLOB_BYTES {
        let anywhere: Glob = format!("**/{text}")
            .parse()
            .expect("a glob of names is one at any depth");
        assert_eq!(anywhere.matches(&path), matches, "at any depth");
    }
    let is_hidden = path.segments().any(|segment| segment.starts_with('.'));
    let names_hidden = text.starts_with('.') || text.contains("/.");
    assert!(
        !matches || !is_hidden || names_hidden,
        "a hidden file that was not named"
    );
    if !Glob::is_pattern(text) && text.contains('/') {
        let written = BundlePath::from_manifest(text);
        assert_eq!(
            written.as_ref() == Ok(&path),
            matches,
            "a glob without wildcards is a path"
        );
    }
});
