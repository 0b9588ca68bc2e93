//! Private repositories, tokens and Apps, as callers see them over HTTP.

#![expect(
    clippy::unwrap_used,
    reason = "a step that fails is a failed test, helpers included"
)]

use github_server::{AppKey, Commit, GithubServer, RequestKind, ServerOptions};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::{Client, Method, Response, StatusCode, redirect};
use serde_json::{Value, json};

fn client() -> Client {
    Client::builder()
        .user_agent("tests")
        .redirect(redirect::Policy::none())
        .build()
        .unwrap()
}

async fn get(url: &str, token: &str) -> Response {
    client().get(url).bearer_auth(token).send().await.unwrap()
}

async fn body(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or(Value::Null)
}

async fn control(server: &GithubServer, method: Method, path: &str, document: Value) -> (StatusCode, Value) {
    let url = format!("http://{}/_control/{path}", server.api_host());
    let response = client()
        .request(method, url)
        .json(&document)
        .send()
        .await
        .unwrap();
    (response.status(), body(response).await)
}

/// A server with the private repository `octo/secret`, and its commit.
async fn secret() -> (GithubServer, String, String) {
    let server = GithubServer::start().await.unwrap();
    let repository = server.create("octo/secret").unwrap();
    let commit = repository.commit(&Commit::on("main").file("a.txt", "a")).unwrap();
    repository.set_private(true).unwrap();
    let url = format!("{}/repos/octo/secret", server.api_base());
    (server, url, commit)
}

#[tokio::test]
async fn a_token_opens_what_it_names_and_is_counted_by_its_name() {
    let (server, url, commit) = secret().await;
    let token = json!({ "token": "ghp_a", "repositories": ["octo/secret"], "scopes": "repo, workflow" });
    control(&server, Method::PUT, "tokens/mine", token).await;
    control(&server, Method::PUT, "tokens/other", json!({ "token": "ghp_b" })).await;

    let mine = get(&url, "ghp_a").await;
    assert_eq!(mine.headers()["x-oauth-scopes"], "repo, workflow");
    assert_eq!(body(mine).await["private"], true);
    assert_eq!(get(&url, "ghp_b").await.status(), StatusCode::NOT_FOUND);
    assert_eq!(get(&url, "ghp_c").await.status(), StatusCode::UNAUTHORIZED);
    for (token, count) in [("mine", 1), ("other", 1), ("unknown", 1), ("anonymous", 0)] {
        assert_eq!(
            server.requests().by(token, RequestKind::Repository),
            count,
            "{token}"
        );
    }

    // An archive lies behind an address with a token of its own, and is not found without.
    let archive = get(&format!("{url}/tarball/{commit}"), "ghp_a").await;
    let address = archive.headers()["location"].to_str().unwrap();
    let (bare, _) = address.split_once("?token=").unwrap();
    let plain = async |address: &str| client().get(address).send().await.unwrap().status();
    assert_eq!(plain(address).await, StatusCode::OK);
    assert_eq!(plain(bare).await, StatusCode::NOT_FOUND);
    assert_eq!(server.requests().by("anonymous", RequestKind::Download), 2);

    control(&server, Method::DELETE, "tokens/mine", Value::Null).await;
    assert_eq!(get(&url, "ghp_a").await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_token_can_be_refused_in_each_of_githubs_ways() {
    let (server, url, commit) = secret().await;
    let set = async |more: Value| {
        let mut token = json!({ "token": "ghp_a", "repositories": ["octo/secret"] });
        token
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        control(&server, Method::PUT, "tokens/mine", token).await;
    };
    let commit = format!("{url}/git/commits/{commit}");
    set(json!({ "contents": false })).await;
    assert_eq!(get(&url, "ghp_a").await.status(), StatusCode::OK);
    assert_eq!(get(&commit, "ghp_a").await.status(), StatusCode::FORBIDDEN);
    set(json!({ "refusal": "singleSignOn" })).await;
    let refused = get(&commit, "ghp_a").await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert!(
        refused.headers()["x-github-sso"]
            .to_str()
            .unwrap()
            .starts_with("required; url=")
    );
    set(json!({ "refusal": "secondaryLimit" })).await;
    let limited = get(&commit, "ghp_a").await;
    assert_eq!(
        (limited.status(), limited.headers().get("retry-after")),
        (StatusCode::FORBIDDEN, None)
    );
    assert!(
        body(limited).await["message"]
            .as_str()
            .unwrap()
            .contains("secondary rate limit")
    );
}

#[tokio::test]
async fn each_credential_has_its_own_limit_and_a_confirmation_costs_nothing() {
    let (server, url, _) = secret().await;
    for (name, value) in [("one", "ghp_1"), ("two", "ghp_2")] {
        let token = json!({ "token": value, "repositories": ["octo/secret"] });
        control(&server, Method::PUT, &format!("tokens/{name}"), token).await;
    }
    let limit = json!({ "limit": 10, "remaining": 2, "reset": 4_000_000_000_i64 });
    control(&server, Method::PUT, "tokens/one/rate-limit", limit).await;
    let first = get(&url, "ghp_1").await;
    let tag = first.headers()["etag"].to_str().unwrap().to_owned();
    let again = async |token: &str| {
        let request = client()
            .get(&url)
            .bearer_auth(token)
            .header("if-none-match", &tag);
        let response = request.send().await.unwrap();
        (
            response.status(),
            response.headers()["x-ratelimit-remaining"]
                .to_str()
                .unwrap()
                .to_owned(),
        )
    };
    assert_eq!(again("ghp_1").await, (StatusCode::NOT_MODIFIED, "1".to_owned()));
    assert_eq!(again("ghp_2").await, (StatusCode::OK, "4999".to_owned()));
    assert_eq!(server.requests().confirmed, 1);
    get(&url, "ghp_1").await;
    assert_eq!(get(&url, "ghp_1").await.status(), StatusCode::FORBIDDEN);
    let (_, left) = control(&server, Method::GET, "tokens/two/rate-limit", Value::Null).await;
    assert_eq!(left["remaining"], 4999);
}

fn assertion(key: &AppKey, claims: &Value) -> String {
    let key = EncodingKey::from_rsa_pem(key.private_pem.as_bytes()).unwrap();
    jsonwebtoken::encode(&Header::new(Algorithm::RS256), claims, &key).unwrap()
}

#[tokio::test]
async fn an_app_signs_for_itself_and_gets_a_long_narrowed_token_that_can_be_revoked() {
    let (server, url, _) = secret().await;
    let key = AppKey::generate().unwrap();
    let app = json!({
        "publicKey": key.public_pem,
        "installations": { "7": { "repositories": ["octo/secret", "octo/else"] } },
    });
    assert_eq!(
        control(&server, Method::PUT, "apps/123", app).await.0,
        StatusCode::NO_CONTENT
    );
    let now = jiff::Timestamp::now().as_second();
    let word = |key: &AppKey, issued: i64, until: i64| {
        assertion(
            key,
            &json!({ "iss": "123", "iat": now + issued, "exp": now + until }),
        )
    };
    let installation = format!("{url}/installation");
    let found = get(&installation, &word(&key, -60, 500)).await;
    assert_eq!(body(found).await["id"], 7);
    let stranger = AppKey::generate().unwrap();
    for refused in [
        word(&stranger, -60, 500),
        word(&key, 100, 500),
        word(&key, -60, 700),
        word(&key, -600, -1),
    ] {
        assert_eq!(
            get(&installation, &refused).await.status(),
            StatusCode::UNAUTHORIZED
        );
    }
    // The App's word for itself opens nothing.
    assert_eq!(
        get(&url, &word(&key, -60, 500)).await.status(),
        StatusCode::UNAUTHORIZED
    );

    let issue = async |document: Value| {
        let address = format!("{}/app/installations/7/access_tokens", server.api_base());
        let request = client()
            .post(address)
            .bearer_auth(word(&key, -60, 500))
            .json(&document);
        let response = request.send().await.unwrap();
        (response.status(), body(response).await)
    };
    let narrow = json!({ "repositories": ["secret"], "permissions": { "contents": "read" } });
    let (status, issued) = issue(narrow).await;
    assert_eq!(status, StatusCode::CREATED);
    let token = issued["token"].as_str().unwrap();
    assert_eq!(token.len(), 520);
    assert!(token.contains('.') && token.contains('-') && token.contains('_'));
    assert_eq!(get(&url, token).await.status(), StatusCode::OK);
    let (_, listed) = control(&server, Method::GET, "apps/123/tokens", Value::Null).await;
    assert_eq!(listed[0]["repositories"], json!(["octo/secret"]));
    assert_eq!(listed[0]["permissions"], json!({ "contents": "read" }));
    for document in [
        json!({ "repositories": ["missing"] }),
        json!({ "permissions": { "issues": "read" } }),
    ] {
        assert_eq!(issue(document).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    }
    control(&server, Method::DELETE, "apps/123/tokens", Value::Null).await;
    assert_eq!(get(&url, token).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_private_repository_stays_private_under_its_new_name_and_its_old_one_tells_nothing() {
    let (server, url, _) = secret().await;
    let token = json!({ "token": "ghp_a", "repositories": ["octo/better"] });
    control(&server, Method::PUT, "tokens/mine", token).await;
    server
        .repository("octo/secret")
        .unwrap()
        .rename("octo/better")
        .unwrap();
    assert_eq!(get(&url, "ghp_a").await.status(), StatusCode::MOVED_PERMANENTLY);
    for address in [url.clone(), url.replace("secret", "better")] {
        let anonymous = client().get(address).send().await.unwrap();
        assert_eq!(anonymous.status(), StatusCode::NOT_FOUND);
    }
    // Somebody takes the old name.
    server.create("octo/secret").unwrap();
    assert_eq!(body(client().get(url).send().await.unwrap()).await["id"], 2);
}

#[tokio::test]
async fn the_api_can_lie_below_a_path() {
    let options = ServerOptions {
        api_path: "/api/v3".to_owned(),
        ..ServerOptions::default()
    };
    let server = GithubServer::start_with(options).await.unwrap();
    server.create("octo/tools").unwrap();
    let url = format!("{}/repos/octo/tools", server.api_base());
    assert!(url.contains("/api/v3/repos/"));
    let described = body(client().get(&url).send().await.unwrap()).await;
    assert_eq!(described["url"], url);
    let beside = url.replace("/api/v3", "");
    assert_eq!(
        client().get(beside).send().await.unwrap().status(),
        StatusCode::NOT_FOUND
    );
}
