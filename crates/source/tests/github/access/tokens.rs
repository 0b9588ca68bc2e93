//! Personal access tokens.

use std::time::Duration;

use codeworkspace_source::{Access, SourceErrorReason as Reason};
use github_server::{Redirect, RequestKind, Switches, Token, TokenRefusal};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{MINE, Secret, ask, mine, missing, theirs, token};
use crate::world::{World, lines, one_file};

#[tokio::test]
async fn a_token_opens_a_private_repository_and_goes_to_the_api_alone() {
    let secret = Secret::new().await;
    let found = secret.ask("main", &mine()).await.unwrap();
    assert_eq!(
        (lines(&found.tree), found.warnings),
        (vec!["a.txt: a".to_owned()], vec![])
    );
    let requests = secret.world.server.requests();
    assert_eq!(requests.by("mine", RequestKind::Reference), 2);
    assert_eq!(requests.by("mine", RequestKind::Tarball), 1);
    assert_eq!(requests.by("anonymous", RequestKind::Download), 1);
    assert_eq!(requests.credentials.get(&RequestKind::Download), None);
}

#[tokio::test]
async fn no_credential_reaches_another_host_that_a_redirect_leads_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = listener.local_addr().unwrap().to_string();
    let secret = Secret::with(|configuration| {
        configuration.download_hosts.push(elsewhere.clone());
        configuration.insecure_hosts.push(elsewhere.clone());
    })
    .await;
    let seen = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(connection.read_u8().await.unwrap());
        }
        connection
            .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
        String::from_utf8(request).unwrap().to_lowercase()
    });
    secret.world.set_switches(Switches {
        redirect: Redirect::To(format!("http://{elsewhere}/archive")),
        ..Switches::default()
    });
    let error = secret.ask(&secret.commit, &mine()).await.unwrap_err();
    assert_eq!(error.reason, Reason::RepoOrRefNotFound);
    let request = seen.await.unwrap();
    assert!(request.starts_with("get /archive http/1.1\r\n"), "{request}");
    for telling in ["authorization", "cookie", "token", "ghp_", "mine"] {
        assert!(!request.contains(telling), "{telling} in {request}");
    }
}

#[tokio::test]
async fn the_token_is_used_always_also_for_public_repositories() {
    let secret = Secret::new().await;
    secret.world.tools(&one_file());
    ask(&secret.world.github, "octo/tools", "main", &mine())
        .await
        .unwrap();
    let requests = secret.world.server.requests();
    assert_eq!(requests.by("mine", RequestKind::Reference), 2);
    assert_eq!(requests.by("anonymous", RequestKind::Reference), 0);
}

#[tokio::test]
async fn a_credential_is_enough_where_the_operator_forbids_requests_without_one() {
    let secret = Secret::with(|configuration| configuration.anonymous = false).await;
    secret.ask("main", &mine()).await.unwrap();
    let (reason, _) = secret.refusal("main", &Access::Anonymous).await;
    assert_eq!(reason, Reason::CredentialRequired);
}

#[tokio::test]
async fn what_a_credential_cannot_see_does_not_exist_and_the_message_names_the_credential() {
    let secret = Secret::new().await;
    let used = "the credential of SecretInventory theirs was used";
    assert_eq!(
        secret.refusal("main", &theirs()).await,
        missing("main", "branch or tag", used)
    );
    assert_eq!(
        secret.refusal(&secret.commit, &theirs()).await,
        missing(&secret.commit, "commit", used)
    );
}

#[tokio::test]
async fn a_credential_that_is_not_accepted_is_not_shown_again_until_the_secret_changes() {
    let secret = Secret::new().await;
    secret.world.tools(&one_file());
    let server = &secret.world.server;
    let text = |repository: &str| {
        format!(
            "{repository}@main: `{}` does not accept the credential of SecretInventory mine (HTTP 401): it is wrong, expired or \
             revoked; put a valid one into its Secret",
            server.api_host()
        )
    };
    server.remove_token("mine").unwrap();
    assert_eq!(
        secret.refusal("main", &mine()).await,
        (Reason::AuthFailed, text("octo/secret"))
    );
    server.reset_requests();
    let error = ask(&secret.world.github, "octo/tools", "main", &mine())
        .await
        .unwrap_err();
    assert_eq!(
        (error.reason, error.message),
        (Reason::AuthFailed, text("octo/tools"))
    );
    assert_eq!(server.requests().total(), 0, "nobody was asked");

    // The new secret has nothing to do with the old one.
    server.set_token("mine", Token::for_repositories("ghp_new", ["octo/secret"]));
    secret.ask("main", &token("mine", "ghp_new")).await.unwrap();
    // Nor is the old one held back for ever.
    server.set_token("mine", Token::for_repositories(MINE, ["octo/secret"]));
    secret.world.clock.advance(Duration::from_secs(30));
    secret.ask("main", &mine()).await.unwrap();
}

#[tokio::test]
async fn each_refusal_of_a_credential_says_what_to_do_with_it() {
    let secret = Secret::new().await;
    let set = |contents, refusal| {
        let token = Token {
            contents,
            refusal,
            ..Token::for_repositories(MINE, ["octo/secret"])
        };
        secret.world.server.set_token("mine", token);
    };
    let host = secret.world.server.api_host();
    set(true, Some(TokenRefusal::SingleSignOn));
    let text = format!(
        "octo/secret@main: the organisation at `{host}` wants the credential of SecretInventory mine to be authorised for \
         single sign-on (HTTP 403); authorise it in the token's settings"
    );
    assert_eq!(secret.refusal("main", &mine()).await, (Reason::SsoRequired, text));
    set(false, None);
    let text = format!(
        "octo/secret@refs/heads/main: `{host}` refuses the credential of SecretInventory mine (HTTP 403); check that it may \
         read the contents of the repository"
    );
    assert_eq!(
        secret.refusal("refs/heads/main", &mine()).await,
        (Reason::Forbidden, text)
    );
}

#[tokio::test]
async fn a_classic_token_with_scopes_is_a_warning_on_the_source() {
    let secret = Secret::new().await;
    let set = |token: Token| secret.world.server.set_token("mine", token);
    let plain = || Token::for_repositories(MINE, ["octo/secret"]);
    set(plain().scopes("repo, workflow"));
    let warning = "the token of SecretInventory mine may do more than read files (scopes `repo`, `workflow`); use a \
                   fine-grained token that may only read contents, or a GitHub App";
    // The first answer tells, and those from memory repeat it.
    for _ in 0..2 {
        assert_eq!(secret.ask("main", &mine()).await.unwrap().warnings, [warning]);
        assert_eq!(
            secret.ask(&secret.commit, &mine()).await.unwrap().warnings,
            [warning]
        );
    }
    for narrow in [plain().scopes(""), plain()] {
        set(narrow);
        secret.world.clock.advance(Duration::from_secs(30));
        assert_eq!(secret.ask("main", &mine()).await.unwrap().warnings, [""; 0]);
    }
}

#[tokio::test]
async fn an_anonymous_asker_is_told_that_none_was_used() {
    let world = World::new().await;
    let secret = Secret {
        commit: String::new(),
        world,
    };
    assert_eq!(
        secret.refusal("main", &Access::Anonymous).await,
        missing("main", "branch or tag", "no credential was used")
    );
}
