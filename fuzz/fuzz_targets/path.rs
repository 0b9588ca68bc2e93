//! Text that claims to be a path, a link's target or an `as`.
#![no_main]

use std::path::{Component, Path};

use codeworkspace_bundle::{BundlePath, code::Target, link_destination};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|texts: (&str, &str)| {
    let (text, other) = texts;
    let Ok(path) = BundlePath::from_manifest(text) else {
        return;
    };
    assert_eq!(path.as_str().parse().as_ref(), Ok(&path), "one spelling");
    assert!(
        Path::new(path.as_str())
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
    );

    if let Ok(Some(place)) = link_destination(&path, other) {
        assert_eq!(place.as_str().parse().as_ref(), Ok(&place), "a place inside");
    }
    if let Ok(target) = other.parse::<Target>() {
        for placed in [
            target.place_file(&path),
            target.place_below(Some(&path), &path),
            target.place_below(None, &path),
        ] {
            if let Ok(placed) = placed {
                assert_eq!(placed.as_str().parse().as_ref(), Ok(&placed), "a place inside");
            }
        }
    }
});
