//! GitHub Apps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use codeworkspace_source::{Access, Credential, Github, ManualClock, SourceErrorReason as Reason};
use futures::future::join_all;
use github_server::{App, AppKey, Installation, RequestKind};
use jiff::{SignedDuration, Timestamp};

use super::{Secret, ask};
use crate::world::{configuration, one_file};

/// A private repository, and an App that is installed for it as number 7.
struct Installed {
    secret: Secret,
    key: AppKey,
}

impl Installed {
    async fn new() -> Self {
        let secret = Secret::new().await;
        let key = AppKey::generate().unwrap();
        let app = App::installed(&key.public_pem, 7, ["octo/secret", "octo/more"]);
        secret.world.server.set_app("123", app).unwrap();
        Self { secret, key }
    }

    fn change(&self, change: impl FnOnce(&mut Installation)) {
        let mut app = App::installed(&self.key.public_pem, 7, ["octo/secret", "octo/more"]);
        change(app.installations.get_mut(&7).unwrap());
        self.secret.world.server.set_app("123", app).unwrap();
    }

    fn access(&self, installation: Option<&[u8]>) -> Access {
        let key = self.key.private_pem.as_bytes();
        Access::Credential(Credential::app("SecretInventory app", b"123", installation, key).unwrap())
    }

    async fn refusal(&self, installation: Option<&[u8]>) -> (Reason, String) {
        self.secret.refusal("main", &self.access(installation)).await
    }

    fn count(&self, kind: RequestKind) -> u64 {
        self.secret.world.server.requests().of(kind)
    }
}

#[tokio::test]
async fn an_app_gets_one_token_for_the_one_repository_and_for_reading_its_contents() {
    let installed = Installed::new().await;
    let access = installed.access(None);
    for reference in ["main", "refs/heads/main", &installed.secret.commit] {
        installed.secret.ask(reference, &access).await.unwrap();
    }
    let server = &installed.secret.world.server;
    let issued: Vec<_> = server
        .issued("123")
        .into_iter()
        .map(|issued| (issued.installation, issued.repositories, issued.permissions))
        .collect();
    let permissions = BTreeMap::from([("contents".to_owned(), "read".to_owned())]);
    assert_eq!(issued, [(7, ["octo/secret".to_owned()].into(), permissions)]);
    let requests = server.requests();
    assert_eq!(requests.by("app", RequestKind::Installation), 1);
    assert_eq!(requests.by("app", RequestKind::AccessToken), 1);
    assert_eq!(requests.by("installation-7", RequestKind::Reference), 3);
    assert_eq!(requests.by("installation-7", RequestKind::Tarball), 1);
    assert_eq!(requests.credentials.get(&RequestKind::Download), None);
}

#[tokio::test]
async fn an_installation_that_the_secret_names_need_not_be_found() {
    let installed = Installed::new().await;
    installed
        .secret
        .ask("main", &installed.access(Some(b"7\n")))
        .await
        .unwrap();
    assert_eq!(installed.count(RequestKind::Installation), 0);
    assert_eq!(installed.count(RequestKind::AccessToken), 1);
}

#[tokio::test]
async fn each_repository_has_a_token_of_its_own() {
    let installed = Installed::new().await;
    let server = &installed.secret.world.server;
    let more = server.create("octo/more").unwrap();
    more.commit(&one_file()).unwrap();
    more.set_private(true).unwrap();
    let access = installed.access(None);
    for repository in ["octo/secret", "octo/more", "octo/secret"] {
        ask(&installed.secret.world.github, repository, "main", &access)
            .await
            .unwrap();
    }
    let repositories: Vec<_> = server
        .issued("123")
        .into_iter()
        .map(|issued| issued.repositories)
        .collect();
    assert_eq!(
        repositories,
        [["octo/secret".to_owned()].into(), ["octo/more".to_owned()].into()]
    );
}

#[tokio::test]
async fn those_who_need_the_same_token_at_the_same_time_wait_for_one() {
    let installed = Installed::new().await;
    let access = installed.access(None);
    let references = ["main", "refs/heads/main", installed.secret.commit.as_str()];
    let asked = references
        .iter()
        .cycle()
        .take(30)
        .map(|reference| installed.secret.ask(reference, &access));
    for answer in join_all(asked).await {
        answer.unwrap();
    }
    assert_eq!(installed.count(RequestKind::AccessToken), 1);
}

#[tokio::test]
async fn a_token_is_replaced_five_minutes_before_it_ends() {
    let installed = Installed::new().await;
    let access = installed.access(None);
    let clock = &installed.secret.world.clock;
    installed.secret.ask("main", &access).await.unwrap();
    // The server's clock is the machine's, which goes on while this runs: a minute is left to it.
    clock.advance(Duration::from_mins(54));
    installed.secret.ask("main", &access).await.unwrap();
    assert_eq!(installed.count(RequestKind::AccessToken), 1);
    clock.advance(Duration::from_mins(1) + Duration::from_secs(5));
    installed.secret.ask("main", &access).await.unwrap();
    assert_eq!(installed.secret.world.server.issued("123").len(), 2);
    // The new one lasts as long as the first, by our clock.
    clock.advance(Duration::from_mins(54));
    installed.secret.ask("main", &access).await.unwrap();
    assert_eq!(installed.secret.world.server.issued("123").len(), 2);
}

#[tokio::test]
async fn a_clock_that_is_wrong_by_twenty_minutes_costs_one_more_request() {
    let installed = Installed::new().await;
    let server = &installed.secret.world.server;
    let access = installed.access(None);
    for wrong in [SignedDuration::from_mins(20), SignedDuration::from_mins(-20)] {
        server.reset_requests();
        let clock = Arc::new(ManualClock::new(Timestamp::now() + wrong));
        let github = Github::new(configuration(server), clock.clone()).unwrap();
        for minutes in [0, 50] {
            clock.advance(Duration::from_mins(minutes));
            ask(&github, "octo/secret", "main", &access).await.unwrap();
        }
        let requests = server.requests();
        assert_eq!(requests.of(RequestKind::Installation), 2, "{wrong}");
        assert_eq!(requests.of(RequestKind::AccessToken), 1, "{wrong}");
    }
}

#[tokio::test]
async fn a_token_that_ended_before_its_time_is_replaced_once() {
    let installed = Installed::new().await;
    let (access, server) = (installed.access(None), &installed.secret.world.server);
    installed.secret.ask("main", &access).await.unwrap();
    assert_eq!(server.revoke("123").revoked, 1);
    installed.secret.world.clock.advance(Duration::from_secs(30));
    server.reset_requests();
    installed.secret.ask("refs/heads/main", &access).await.unwrap();
    assert_eq!(installed.count(RequestKind::AccessToken), 1);
    assert_eq!(installed.count(RequestKind::Reference), 2);
}

#[tokio::test]
async fn an_app_whose_tokens_are_never_accepted_is_given_up_after_the_second() {
    let installed = Installed::new().await;
    installed.secret.world.answer(RequestKind::Reference, 401, &[]);
    let text = format!(
        "octo/secret@refs/heads/main: `{}` does not accept the credential of SecretInventory app (HTTP 401): it is wrong, \
         expired or revoked; put a valid one into its Secret",
        installed.secret.world.server.api_host()
    );
    let refusal = installed
        .secret
        .refusal("refs/heads/main", &installed.access(None))
        .await;
    assert_eq!(refusal, (Reason::AuthFailed, text));
    assert_eq!(installed.count(RequestKind::AccessToken), 2);
    assert_eq!(installed.count(RequestKind::Reference), 2);
}

#[tokio::test]
async fn each_fault_of_an_app_says_where_to_mend_it() {
    let installed = Installed::new().await;
    let host = installed.secret.world.server.api_host();
    let told = |reason, text: &str| (reason, format!("octo/secret@main: {text}"));
    let wait = || installed.secret.world.clock.advance(Duration::from_secs(30));

    installed.change(|installation| installation.repositories.clear());
    let text = "the repository does not exist, or the GitHub App of SecretInventory app is not installed for it; check `repo`, or \
                install the App for the repository";
    assert_eq!(
        installed.refusal(None).await,
        told(Reason::RepoOrRefNotFound, text)
    );
    assert_eq!(
        installed.refusal(Some(b"7")).await,
        told(Reason::RepoOrRefNotFound, text)
    );
    let text = "the GitHub App of SecretInventory app has no installation with this `installationId`; correct it in the \
                Secret, or leave it out";
    assert_eq!(
        installed.refusal(Some(b"8")).await,
        told(Reason::AuthFailed, text)
    );

    wait();
    installed.change(|installation| installation.permissions.clear());
    let text = "the GitHub App of SecretInventory app may not read contents; grant it the repository permission `Contents: \
                read`";
    assert_eq!(installed.refusal(Some(b"7")).await, told(Reason::Forbidden, text));

    wait();
    installed.change(|installation| installation.suspended = true);
    let text = format!(
        "`{host}` refuses the credential of SecretInventory app (HTTP 403); check that it may read the contents of the \
         repository"
    );
    assert_eq!(
        installed.refusal(Some(b"7")).await,
        told(Reason::Forbidden, &text)
    );

    wait();
    let other = AppKey::generate().unwrap();
    let app = App::installed(other.public_pem, 7, ["octo/secret"]);
    installed.secret.world.server.set_app("123", app).unwrap();
    let text = format!(
        "`{host}` does not accept the credential of SecretInventory app (HTTP 401): it is wrong, expired or revoked; put a \
         valid one into its Secret"
    );
    assert_eq!(
        installed.refusal(Some(b"7")).await,
        told(Reason::AuthFailed, &text)
    );
}

#[tokio::test]
async fn a_renamed_repository_is_asked_for_by_its_number() {
    let installed = Installed::new().await;
    let server = &installed.secret.world.server;
    server
        .repository("octo/secret")
        .unwrap()
        .rename("octo/more")
        .unwrap();
    let found = installed
        .secret
        .ask("main", &installed.access(None))
        .await
        .unwrap();
    assert_eq!(found.revision.as_str(), installed.secret.commit);
    assert_eq!(
        server.issued("123")[0].repositories,
        ["octo/more".to_owned()].into()
    );
    assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
}
