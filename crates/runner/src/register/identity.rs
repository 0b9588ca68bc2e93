//! The pod's key and the certificate that it makes for itself.

use std::io::{self, Write as _};
use std::path::Path;

use codeworkspace_bundle::Digest;
use codeworkspace_protocol::{layout, session};
use fs_err::OpenOptions;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _};

/// Makes key and certificate in `directory`, or takes the key that an earlier attempt of the same pod left there: the operator may
/// have pinned it already. Answers with the digest of the public key.
pub(super) fn provide(directory: &Path) -> io::Result<String> {
    let key_file = directory.join(layout::KEY_FILE);
    let key = match fs_err::read_to_string(&key_file) {
        Ok(pem) => KeyPair::from_pem(&pem).map_err(io::Error::other)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(io::Error::other)?;
            write_private(&key_file, &key.serialize_pem())?;
            key
        }
        Err(error) => return Err(error),
    };
    let certificate = CertificateParams::new([session::SESSION_NAME.to_owned()])
        .and_then(|parameters| parameters.self_signed(&key))
        .map_err(io::Error::other)?;
    write_private(&directory.join(layout::CERTIFICATE_FILE), &certificate.pem())?;
    Ok(Digest::of(&key.subject_public_key_info()).to_string())
}

/// Complete or not at all, so that an attempt that was cut short leaves no half of a key for the next one.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    fs_err::rename(unfinished, path)
}
