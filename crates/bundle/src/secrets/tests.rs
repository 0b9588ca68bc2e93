use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixtures::report;

fn errors(block: &Value) -> Vec<String> {
    define_secrets(block)
        .unwrap_err()
        .iter()
        .map(FieldError::to_string)
        .collect()
}

fn vault(slug: &str) -> SecretSource {
    SecretSource::Vault(slug.to_owned())
}

#[test]
fn a_variable_is_bound_to_exactly_one_source() {
    let block = json!({
        "STRIPE_KEY": { "vault": "billing/stripe-api-key" },
        "GITHUB_TOKEN": { "oauth": "github" },
        "region": { "value": "eu" },
        "_EMPTY": { "value": "" },
    });
    let expected = Secrets {
        bindings: BTreeMap::from([
            ("STRIPE_KEY".to_owned(), vault("billing/stripe-api-key")),
            (
                "GITHUB_TOKEN".to_owned(),
                SecretSource::Oauth("github".to_owned()),
            ),
            ("region".to_owned(), SecretSource::Value("eu".to_owned())),
            ("_EMPTY".to_owned(), SecretSource::Value(String::new())),
        ]),
    };
    assert_eq!(define_secrets(&block), Ok(expected));
    assert_eq!(define_secrets(&json!({})), Ok(Secrets::default()));
}

#[test]
fn every_fault_is_named_with_its_field() {
    insta::assert_snapshot!(report(
        &[
            json!(null),
            json!(["STRIPE_KEY"]),
            json!({ "KEY": "stripe-api-key" }),
            json!({ "KEY": {} }),
            json!({ "KEY": { "vault": "a-b", "oauth": "github" } }),
            json!({ "KEY": { "vault": "a-b", "value": null } }),
            json!({ "KEY": { "vault": "Stripe_Key" } }),
            json!({ "KEY": { "vault": "a/b/c" } }),
            json!({ "KEY": { "vault": 7 } }),
            json!({ "KEY": { "oauth": "" } }),
            json!({ "KEY": { "oauth": "git hub" } }),
            json!({ "KEY": { "value": 8080 } }),
            json!({ "KEY": { "value": { "a": 1 } } }),
            json!({ "KEY": { "value": "a\u{0}b" } }),
            json!({ "KEY": { "token": "t0p" } }),
            json!({ "KEY": { "secretRef": { "name": "x", "namespace": "kube-system" } } }),
            json!({ "1KEY": { "vault": "a-b" }, "MY-KEY": { "vault": "a-b" }, "": { "vault": "a-b" } }),
        ],
        errors
    ));
}

#[test]
fn names_that_the_operator_sets_itself_are_refused() {
    for name in [
        "PATH",
        "LD_PRELOAD",
        "LD_",
        "HTTP_PROXY",
        "https_proxy",
        "No_Proxy",
        "CODEWORKSPACE_INPUT",
    ] {
        let [error] = &errors(&json!({ name: { "vault": "a-b" } }))[..] else {
            panic!("one error for {name}")
        };
        assert!(
            error.starts_with(&format!("secrets.{name}: ")) && error.contains("is reserved"),
            "{error}"
        );
    }
    for name in ["path", "PATHS", "OLD_KEY", "PROXY", "PROXY_URL", "CODEWORKSPACE"] {
        assert!(
            define_secrets(&json!({ name: { "vault": "a-b" } })).is_ok(),
            "{name}"
        );
    }
}

#[test]
fn a_secret_in_a_wrong_field_is_not_repeated() {
    let shown = errors(&json!({ "KEY": { "token": "hunter2", "plaintext": "hunter2" } })).concat();
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_flood_of_faults_is_not_repeated_one_by_one() {
    let block = |count: usize| -> Value {
        let entries: serde_json::Map<_, _> =
            (0..count).map(|index| (format!("A{index}"), json!({}))).collect();
        json!(entries)
    };
    assert_eq!(errors(&block(64)).len(), MOST_FAULTS);
    assert_eq!(
        errors(&block(65)),
        ["secrets: has 65 entries; at most 64 are allowed"]
    );
}

#[test]
fn names_alone_stand_for_the_secrets_of_their_names() {
    let names = ["STRIPE_API_KEY", "K2"].map(str::to_owned);
    let mut issues = Vec::new();
    let secrets = by_convention("runtime.env", &names, &mut issues);
    assert_eq!(issues, []);
    let expected = [("STRIPE_API_KEY", "stripe-api-key"), ("K2", "k2")];
    assert_eq!(
        secrets.bindings,
        expected.map(|(name, slug)| (name.to_owned(), vault(slug))).into()
    );
}

#[test]
fn a_name_that_stands_for_no_slug_asks_for_a_binding() {
    let mut issues = Vec::new();
    by_convention(
        "runtime.env",
        &["_A".to_owned(), "PATH".to_owned(), "A".to_owned()],
        &mut issues,
    );
    insta::assert_snapshot!(
        issues
            .iter()
            .map(FieldError::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    );
}

#[test]
fn an_inventory_stands_for_the_variables_of_its_slugs() {
    let inventory = json!([
        { "slug": "stripe-api-key", "name": "Stripe", "description": "x" },
        { "slug": "billing/tax-key", "metadata": { "owner": "x" } },
        { "slug": "openai-key", "metadata": { "bindings": { "env": ["OPENAI_KEY", "OPENAI_API_KEY"] } } },
    ]);
    let expected = [
        ("STRIPE_API_KEY", "stripe-api-key"),
        ("TAX_KEY", "billing/tax-key"),
        ("OPENAI_KEY", "openai-key"),
        ("OPENAI_API_KEY", "openai-key"),
    ];
    assert_eq!(
        read_inventory("x", &inventory).map(|secrets| secrets.bindings),
        Ok(expected.map(|(name, slug)| (name.to_owned(), vault(slug))).into())
    );
}

#[test]
fn two_secrets_for_one_variable_are_refused() {
    let inventory =
        json!([{ "slug": "test/key" }, { "slug": "live/key" }, { "name": "x" }, { "slug": "B" }, "stripe"]);
    let errors = read_inventory("./SECRETS.md: secrets", &inventory).unwrap_err();
    insta::assert_snapshot!(
        errors
            .iter()
            .map(FieldError::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    );
}

proptest! {
    #[test]
    fn a_slug_is_what_the_schema_says(text in "[a-z0-9/-]{0,8}") {
        let is_word = |word: &str| {
            word.len() >= 2 && word.as_bytes()[0].is_ascii_lowercase() && !word.ends_with('-')
        };
        let words: Vec<_> = text.split('/').collect();
        let is_slug = words.len() <= 2 && words.iter().all(|word| is_word(word));
        prop_assert_eq!(wrong_slug(&text).is_none(), is_slug);
    }
}
