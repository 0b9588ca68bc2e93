//! The committed definitions are what the types say.

use std::path::Path;

use codeworkspace_api::{crds, file_name};

/// `UPDATE_CRDS=1 cargo test -p codeworkspace-api` writes them anew.
#[test]
fn the_committed_definitions_are_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds");
    for crd in crds() {
        let file = folder.join(file_name(&crd));
        let generated = serde_saphyr::to_string(&crd).unwrap();
        if std::env::var_os("UPDATE_CRDS").is_some() {
            std::fs::write(&file, &generated).unwrap();
        }
        let committed = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            committed == generated,
            "{} is stale: run UPDATE_CRDS=1 cargo test -p codeworkspace-api",
            file.display()
        );
    }
}

/// Client-side apply keeps a copy of the object in an annotation of at most 262,144 bytes.
#[test]
fn each_definition_fits_client_side_apply() {
    for crd in crds() {
        let size = serde_json::to_vec(&crd).unwrap().len();
        assert!(size < 262_144, "{} has {size} bytes", file_name(&crd));
    }
}

/// The API server warns about integer formats that it does not know.
#[test]
fn no_definition_uses_a_number_format_unknown_to_kubernetes() {
    for crd in crds() {
        let text = serde_json::to_string(&crd).unwrap();
        for format in ["uint8", "uint16", "uint32", "uint64", "\"format\":\"uint\""] {
            assert!(!text.contains(format), "{} contains {format}", file_name(&crd));
        }
    }
}
