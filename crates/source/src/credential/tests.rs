use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::KeySize;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        lines.join("\n")
    )
}

/// A fresh key in both dialects of PEM.
fn keys() -> [String; 2] {
    let key = KeyPair::generate(KeySize::Rsa2048).unwrap();
    let pkcs8: Pkcs8V1Der = key.as_der().unwrap();
    // PKCS#8 wraps PKCS#1 after a header whose length is fixed for keys of this size (RFC 5208).
    [
        pem("PRIVATE KEY", pkcs8.as_ref()),
        pem("RSA PRIVATE KEY", &pkcs8.as_ref()[26..]),
    ]
}

fn token(value: &[u8]) -> Result<Credential, CredentialError> {
    Credential::token("team/default", value)
}

fn refused(key: &'static str, problem: CredentialProblem) -> CredentialError {
    CredentialError { key, problem }
}

fn exposed(credential: &Credential) -> &str {
    match credential.kind() {
        Kind::Token(token) => token.expose_secret(),
        Kind::App(_) => panic!("an App has no token of its own"),
    }
}

#[test]
fn a_token_of_any_length_and_alphabet_is_taken_and_line_ends_after_it_are_forgiven() {
    let stateless = format!("ghs_{}.{}-{}", "a".repeat(170), "B_".repeat(90), "9".repeat(165));
    for value in ["ghp_x", "github_pat_11A_b", "!#$%&'*+/=?^`{|}~\"\\", &stateless] {
        for end in ["", "\n", "\r\n", "\n\n"] {
            let credential = token(format!("{value}{end}").as_bytes()).unwrap();
            assert_eq!(exposed(&credential), value);
        }
    }
}

#[test]
fn a_token_that_cannot_be_one_is_refused_by_its_key() {
    for (value, problem) in [
        (&b""[..], CredentialProblem::Empty),
        (b"\r\n", CredentialProblem::Empty),
        (b"ghp_a b", CredentialProblem::WhiteSpace),
        (b" ghp_a", CredentialProblem::WhiteSpace),
        (b"ghp_a ", CredentialProblem::WhiteSpace),
        (b"ghp_a\nghp_b", CredentialProblem::WhiteSpace),
        (b"ghp_a\0", CredentialProblem::Illegal),
        (b"ghp_\x1b[0m", CredentialProblem::Illegal),
        ("ghp_\u{feff}a".as_bytes(), CredentialProblem::Illegal),
        (b"\xff", CredentialProblem::Illegal),
        (&[b'a'; 8 * 1024 + 1], CredentialProblem::TooLong),
    ] {
        assert_eq!(token(value).unwrap_err(), refused("token", problem), "{value:?}");
    }
    assert_eq!(
        token(b"ghp_a b").unwrap_err().to_string(),
        "Secret key `token` has white space within its value; write the value alone, without quotes, spaces or a second line"
    );
}

#[test]
fn an_app_takes_both_dialects_of_pem() {
    for key in keys() {
        for text in [key.clone(), key.replace('\n', "\r\n"), format!("\n{key}\n")] {
            let credential = Credential::app("a", b"123\n", Some(b"456\n"), text.as_bytes()).unwrap();
            let Kind::App(app) = credential.kind() else {
                panic!("no App")
            };
            assert_eq!((app.id.as_str(), app.installation), ("123", Some(456)));
        }
    }
}

#[test]
fn an_app_that_cannot_work_is_refused_by_the_key_at_fault() {
    let [key, _] = keys();
    let app = |id: &[u8], installation: Option<&[u8]>, key: &[u8]| {
        Credential::app("a", id, installation, key).unwrap_err()
    };
    let key = key.as_bytes();
    assert_eq!(app(b"", None, key), refused("appId", CredentialProblem::Empty));
    assert_eq!(
        app(b"1 2", None, key),
        refused("appId", CredentialProblem::WhiteSpace)
    );
    for value in [&b"x"[..], b"-1", b"99999999999999999999999"] {
        let expected = refused("installationId", CredentialProblem::NotANumber);
        assert_eq!(app(b"1", Some(value), key), expected);
    }
    for (value, problem) in [
        (b" \n".to_vec(), CredentialProblem::Empty),
        (b"ghp_a".to_vec(), CredentialProblem::NotPem),
        (key[..key.len() / 2].to_vec(), CredentialProblem::NotPem),
        (
            pem("ENCRYPTED PRIVATE KEY", b"x").into_bytes(),
            CredentialProblem::NotPem,
        ),
        (pem("PRIVATE KEY", b"x").into_bytes(), CredentialProblem::NotRsa),
        (
            pem("EC PRIVATE KEY", b"x").into_bytes(),
            CredentialProblem::NotRsa,
        ),
    ] {
        assert_eq!(app(b"1", None, &value), refused("privateKey", problem));
    }
}

#[test]
fn a_rotated_secret_is_another_credential_and_so_is_the_same_secret_under_another_name() {
    let make = |name: &str, value: &[u8]| Credential::token(name, value).unwrap();
    assert_eq!(make("a", b"x"), make("a", b"x\n"));
    assert_ne!(make("a", b"x"), make("a", b"y"));
    assert_ne!(make("a", b"x"), make("b", b"x"));
    let [one, two] = [keys(), keys()];
    let app = |installation, key: &str| Credential::app("a", b"1", installation, key.as_bytes()).unwrap();
    assert_ne!(app(None, &one[0]), app(None, &two[0]));
    assert_ne!(app(None, &one[0]), app(Some(b"1"), &one[0]));
}

proptest! {
    #[test]
    fn no_value_makes_the_parser_panic_or_shows_itself(value in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = secret::number("installationId", &value);
        let _ = secret::rsa_key("privateKey", &value);
        match token(&value) {
            Ok(credential) => {
                let exposed = exposed(&credential);
                prop_assert!(!exposed.is_empty() && exposed.bytes().all(|byte| byte.is_ascii_graphic()));
                prop_assert!(value.starts_with(exposed.as_bytes()));
                prop_assert!(bearer(&exposed.into()).is_some());
                let shown = format!("{credential:?}");
                prop_assert_eq!(shown, r#"Credential { name: "team/default", kind: "token", .. }"#);
            }
            Err(error) => prop_assert_eq!(error.key, "token"),
        }
    }

    #[test]
    fn every_visible_value_is_a_token(value in "[!-~]{1,600}", end in "[\r\n]{0,3}") {
        let credential = token(format!("{value}{end}").as_bytes()).unwrap();
        prop_assert_eq!(exposed(&credential), value);
    }
}
